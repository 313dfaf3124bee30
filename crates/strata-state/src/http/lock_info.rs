//! The lock as OpenTofu's protocol describes it.

use serde::{Deserialize, Serialize};

use crate::{LockOwner, ProcessMark};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct LockInfo {
    #[serde(rename = "ID")]
    pub(crate) id: String,
    pub(crate) operation: String,
    /// Strata puts its own description of the holder here.
    pub(crate) info: String,
    pub(crate) who: String,
    pub(crate) version: String,
    pub(crate) created: String,
    pub(crate) path: String,
}

impl LockInfo {
    pub(crate) fn of(owner: &LockOwner, key: &str) -> Self {
        Self {
            id: owner.id.clone(),
            operation: owner.operation.clone(),
            info: serde_json::to_string(owner).unwrap_or_default(),
            who: owner.who.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            created: owner.since.clone(),
            path: key.to_owned(),
        }
    }

    /// With an id that says which process holds the lock: of all that a lock says, GitLab keeps the id alone.
    pub(crate) fn marked(owner: &LockOwner, key: &str) -> Self {
        Self { id: marked_id(owner), ..Self::of(owner, key) }
    }

    /// Whoever holds the lock: a run of Strata, or of something else.
    pub(crate) fn owner(self) -> LockOwner {
        let described: Option<LockOwner> = serde_json::from_str(&self.info).ok();
        let mark = read_mark(&self.id);
        let id = mark.as_ref().map_or(self.id.as_str(), |(id, ..)| id);
        // What GitLab gives back as the holder's is what the one who asks had sent; only the id, the name and the time are the holder's.
        let echoed = described.as_ref().is_some_and(|owner| owner.id != id);
        if let Some(owner) = described.filter(|_| !echoed) {
            return owner;
        }
        let or = |text: String, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text };
        let (pid, process) = mark.as_ref().map_or((0, None), |(_, pid, mark)| (*pid, Some(mark.clone())));
        LockOwner {
            id: id.to_owned(),
            who: or(self.who, "somebody"),
            operation: if echoed { LockOwner::unknown().operation } else { or(self.operation, "?") },
            since: or(self.created, "?"),
            pid,
            process,
        }
    }
}

/// `id~pid~started~namespace~witness~boot`, with nothing in it that an address would have to encode. An owner without a mark has a plain id.
pub(crate) fn marked_id(owner: &LockOwner) -> String {
    let marked = owner.process.as_ref().and_then(|ProcessMark { boot, namespace, started, witness }| {
        let namespace = namespace.strip_prefix("pid:[")?.strip_suffix(']')?;
        let witness = witness.as_deref().unwrap_or_default();
        Some(format!("{}~{}~{started}~{namespace}~{witness}~{boot}", owner.id, owner.pid))
    });
    marked.unwrap_or_else(|| owner.id.clone())
}

fn read_mark(text: &str) -> Option<(String, u32, ProcessMark)> {
    let parts: Vec<&str> = text.splitn(6, '~').collect();
    // Without a witness, as former versions wrote it.
    let (id, pid, started, namespace, witness, boot) = match parts[..] {
        [id, pid, started, namespace, witness, boot] => (id, pid, started, namespace, witness, boot),
        [id, pid, started, namespace, boot] => (id, pid, started, namespace, "", boot),
        _ => return None,
    };
    let (pid, started) = (pid.parse().ok()?, started.parse().ok()?);
    let mark = ProcessMark {
        boot: boot.to_owned(),
        namespace: format!("pid:[{namespace}]"),
        started,
        witness: (!witness.is_empty()).then(|| witness.to_owned()),
    };
    Some((id.to_owned(), pid, mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_description_survives_and_a_strangers_is_taken_as_it_is() {
        let owner = LockOwner { id: "1".into(), pid: 7, ..LockOwner::unknown() };
        let json = serde_json::to_vec(&LockInfo::of(&owner, "dev/web")).unwrap();
        let info: LockInfo = serde_json::from_slice(&json).unwrap();
        assert_eq!(info.owner(), owner);
        let tofu = r#"{"ID":"abc","Operation":"OperationTypeApply","Info":"","Who":"a@b","Version":"1.12.6","Created":"2026-01-01T00:00:00Z","Path":""}"#;
        let owner = serde_json::from_str::<LockInfo>(tofu).unwrap().owner();
        assert_eq!(owner.to_string(), "a@b for `OperationTypeApply` since 2026-01-01T00:00:00Z");
        assert_eq!(serde_json::from_str::<LockInfo>("{}").unwrap().owner(), LockOwner::unknown());
    }

    #[test]
    fn the_process_is_known_from_the_id_alone() {
        let witness = Some("ab12".to_owned());
        let process =
            ProcessMark { boot: "0b-1c".into(), namespace: "pid:[4026531836]".into(), started: 42, witness };
        let holder = LockOwner { id: "1".into(), pid: 7, process: Some(process), ..LockOwner::unknown() };
        let asking = LockOwner { id: "2".into(), operation: "apply".into(), ..LockOwner::unknown() };
        let answer = LockInfo {
            id: marked_id(&holder),
            who: "ann".into(),
            created: "2026-01-01T00:00:00Z".into(),
            ..LockInfo::of(&asking, "dev/web")
        };
        let told = answer.owner();
        assert_eq!((&told.id, told.pid, &told.process), (&holder.id, 7, &holder.process));
        assert_eq!(told.to_string(), "ann (pid 7) since 2026-01-01T00:00:00Z");
        assert_eq!(marked_id(&told), marked_id(&holder));
        assert_eq!(read_mark("a~b~c~d~e"), None);
        let former = read_mark("1~7~42~4026531836~0b-1c").unwrap().2;
        assert_eq!((former.boot.as_str(), former.witness), ("0b-1c", None));
        assert_eq!(marked_id(&asking), "2");
    }
}
