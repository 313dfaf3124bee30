//! The lock as OpenTofu's protocol describes it.

use serde::{Deserialize, Serialize};

use crate::LockOwner;

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

    /// Whoever holds the lock: a run of Strata, or of something else.
    pub(crate) fn owner(self) -> LockOwner {
        let ours: Option<LockOwner> = serde_json::from_str(&self.info).ok();
        if let Some(owner) = ours.filter(|owner| owner.id == self.id) {
            return owner;
        }
        let or = |text: String, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text };
        LockOwner {
            id: self.id,
            who: or(self.who, "somebody"),
            operation: or(self.operation, "?"),
            since: or(self.created, "?"),
            pid: 0,
            process: None,
        }
    }
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
}
