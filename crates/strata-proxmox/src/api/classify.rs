//! What the texts of the server mean. Proxmox VE tells failures apart by sentences alone: they are read here, into kinds, and nowhere else.

use std::collections::BTreeMap;

use super::{ApiError, ApiErrorKind};

/// In an answer and in the status of a task alike.
const HOTPLUG: &str = "hotplug problem";

/// Why a task failed, as far as its status says something that is acted upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskFailureKind {
    /// It met somebody else's lock at its beginning, and did nothing.
    HeldUp,
    StorageFull,
    /// A guest did not do in time what it was asked to.
    NoAnswer,
    /// As [`ApiErrorKind::NotHotplugged`].
    NotHotplugged,
    Other,
}

/// A task that began and failed, with its status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status}")]
pub(crate) struct TaskFailure {
    pub(crate) status: String,
    pub(crate) kind: TaskFailureKind,
}

impl TaskFailure {
    pub(crate) fn read(status: impl Into<String>) -> Self {
        let status = status.into();
        Self { kind: task_kind(&status), status }
    }
}

/// The status of a task that did its work and warns of something.
pub(crate) fn only_warns(status: &str) -> bool {
    status.starts_with("WARNINGS")
}

fn task_kind(status: &str) -> TaskFailureKind {
    let lower = status.to_ascii_lowercase();
    let has = |texts: &[&str]| texts.iter().any(|text| lower.contains(text));
    if has(&["can't lock file", "vm is locked (", "ct is locked (", "cfs-lock '"]) {
        TaskFailureKind::HeldUp
    } else if has(&[
        "no space left",
        "not enough free space",
        "out of space",
        "insufficient space",
        "insufficient free space",
    ]) {
        TaskFailureKind::StorageFull
    } else if has(&[HOTPLUG]) {
        TaskFailureKind::NotHotplugged
    } else if has(&["got timeout", "timed out"]) {
        TaskFailureKind::NoAnswer
    } else {
        TaskFailureKind::Other
    }
}

impl ApiError {
    /// The very guest that is asked for has no configuration on the node that is asked.
    pub(crate) fn says_no_guest(&self, node: &str, folder: &str, vmid: u32) -> bool {
        let file = format!("Configuration file 'nodes/{node}/{folder}/{vmid}.conf' does not exist");
        let found =
            |word: &str| format!("unable to find configuration file for {word} {vmid} on node '{node}'");
        [file, found("VM"), found("CT")].contains(&self.reason)
    }

    /// This very storage is not defined.
    pub(crate) fn says_no_storage(&self, storage: &str) -> bool {
        self.reason == format!("storage '{storage}' does not exist")
            || self.errors.get("storage").is_some_and(|text| text == &format!("No such storage '{storage}'"))
    }

    /// The cluster has no member of this name, as the node that answers knows it.
    pub(crate) fn says_no_node(&self, node: &str) -> bool {
        self.reason.contains(&format!("no such cluster node '{node}'"))
    }

    /// It is about this very storage, and none of the other kinds: switched off, not mounted, not on this node.
    pub(crate) fn says_storage_away(&self, storage: &str) -> bool {
        self.kind == ApiErrorKind::Other && self.reason.contains(&format!("storage '{storage}'"))
    }

    /// The node does not remember the task that was asked for.
    pub(crate) fn says_no_task(&self) -> bool {
        self.status == 400 && self.errors.get("upid").is_some_and(|text| text == "no such task")
    }

    /// A guest has this VMID, whoever may see it.
    pub(crate) fn says_taken(&self, vmid: u32) -> bool {
        let text = format!("VM {vmid} already exists");
        self.status == 400 && self.errors.get("vmid").is_some_and(|said| *said == text)
    }
}

pub(super) fn classify(status: u16, reason: &str, errors: &BTreeMap<String, String>) -> ApiErrorKind {
    match status {
        401 => return ApiErrorKind::NotAuthenticated,
        403 if reason.contains("does not exist") => return ApiErrorKind::Missing,
        403 => return root_only(reason).map_or_else(|| denied(reason), |key| ApiErrorKind::RootOnly { key }),
        400 => return bad_parameter(errors),
        595 => return ApiErrorKind::NodeUnreachable,
        502..=504 | 596..=599 => return ApiErrorKind::AnswerLost,
        _ => {}
    }
    if let Some(key) = root_only(reason) {
        return ApiErrorKind::RootOnly { key };
    }
    if let Some(lock) = between(reason, "is locked (", ")") {
        return ApiErrorKind::Locked { lock: lock.to_owned() };
    }
    let has = |text: &str| reason.contains(text);
    if has("can't lock file") || has("cfs-lock") || has("got lock timeout") || has("got lock request timeout")
    {
        ApiErrorKind::LockTimeout
    } else if has("checksum mismatch (file change") || has("detected modified configuration") {
        ApiErrorKind::Changed
    } else if has("got no worker upid - start worker failed") {
        ApiErrorKind::NoWorker
    } else if has(HOTPLUG) {
        ApiErrorKind::NotHotplugged
    } else if has("already a pool member") || has("is not a pool member") {
        ApiErrorKind::PoolAsAsked
    } else if has("already exists") {
        ApiErrorKind::AlreadyExists
    } else if reason.starts_with("hostname lookup '") {
        ApiErrorKind::NoSuchNode
    } else if has("does not exist") || has("no such") || has("unable to find configuration file for ") {
        ApiErrorKind::Missing
    } else {
        ApiErrorKind::Other
    }
}

/// `Permission check failed (/vms/110, VM.Config.Disk|VM.Config.CPU)`
fn denied(reason: &str) -> ApiErrorKind {
    let inside = between(reason, "(", ")").unwrap_or_default();
    let (path, privileges) = inside.split_once(", ").unwrap_or((inside, ""));
    let privileges = privileges.split('|').filter(|privilege| !privilege.is_empty());
    ApiErrorKind::Denied { path: path.to_owned(), privileges: privileges.map(str::to_owned).collect() }
}

fn bad_parameter(errors: &BTreeMap<String, String>) -> ApiErrorKind {
    if errors.values().any(|text| text.contains(HOTPLUG)) {
        return ApiErrorKind::NotHotplugged;
    }
    for (key, text) in errors {
        if text.contains("Only root may use this option") {
            return ApiErrorKind::RootOnly { key: key.clone() };
        }
        if text.contains("no such task") || text.contains("No such storage") {
            return ApiErrorKind::Missing;
        }
    }
    ApiErrorKind::BadParameter
}

/// `only root can set 'args' config`, and what containers say.
fn root_only(reason: &str) -> Option<String> {
    if let Some(key) = between(reason, "only root can set '", "'") {
        return Some(key.to_owned());
    }
    let lower = reason.to_ascii_lowercase();
    let root = lower.contains("only allowed for root@pam")
        || lower.contains("only supported for root@pam")
        || lower.contains("only root can ");
    root.then(|| if lower.contains("feature flags") { "features" } else { "" }.to_owned())
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, phrase: &str, body: &str) -> ApiError {
        ApiError::read("GET", "/x", status, phrase, body.as_bytes())
    }

    fn kind(status: u16, reason: &str) -> ApiErrorKind {
        read(status, reason, &format!("{{\"data\":null,\"message\":\"{reason}\\n\"}}")).kind
    }

    #[test]
    fn tells_texts_of_the_real_server_apart() {
        use ApiErrorKind::*;
        let locked = |lock: &str| Locked { lock: lock.to_owned() };
        let root = |key: &str| RootOnly { key: key.to_owned() };
        for (text, expected) in [
            ("Configuration file 'nodes/pve/qemu-server/999.conf' does not exist", Missing),
            ("storage 'nope' does not exist", Missing),
            ("no such cluster node 'nope'", Missing),
            ("hostname lookup 'nope' failed - failed to get address info", NoSuchNode),
            ("unable to find configuration file for VM 999 on node 'pve'", Missing),
            ("got no worker upid - start worker failed", NoWorker),
            ("Not Found", Other),
            ("unable to create VM 130: config file already exists", AlreadyExists),
            ("VM 110 already exists on node 'pve'", AlreadyExists),
            ("checksum mismatch (file change by other user?)", Changed),
            ("detected modified configuration - file changed by other user? Try again.", Changed),
            ("VM is locked (backup)", locked("backup")),
            ("CT is locked (disk)", locked("disk")),
            ("can't lock file '/var/lock/qemu-server/lock-121.conf' - got timeout", LockTimeout),
            ("only root can set 'args' config", root("args")),
            ("only root can set 'hostpci0' config for non-mapped devices", root("hostpci0")),
            ("changing feature flags (except nesting) is only allowed for root@pam", root("features")),
            ("no options specified", Other),
        ] {
            assert_eq!(kind(500, text), expected, "{text}");
        }
        assert_eq!(kind(595, "No route to host"), NodeUnreachable);
        assert_eq!(kind(596, "broken pipe"), AnswerLost);
        assert_eq!(kind(403, "Permission check failed (pool 'nope' does not exist)"), Missing);
        let features =
            "Permission check failed (changing feature flags (except nesting) is only allowed for root@pam)";
        assert_eq!(kind(403, features), root("features"));
    }

    #[test]
    fn a2_only_the_exact_text_about_an_object_says_that_it_is_missing() {
        let said = |reason: &str| read(500, reason, "");
        for text in [
            "Configuration file 'nodes/pve/qemu-server/999.conf' does not exist",
            "unable to find configuration file for VM 999 on node 'pve'",
        ] {
            assert!(said(text).says_no_guest("pve", "qemu-server", 999), "{text}");
            assert!(!said(text).says_no_guest("pve", "qemu-server", 99), "{text}");
            assert!(!said(text).says_no_guest("pve2", "qemu-server", 999), "{text}");
        }
        for text in [
            "hostname lookup 'pve' failed - failed to get address info",
            "Not Found",
            "404 page not found",
            "storage 'tank' does not exist",
            "failed: Configuration file 'nodes/pve/qemu-server/999.conf' does not exist",
        ] {
            assert!(!said(text).says_no_guest("pve", "qemu-server", 999), "{text}");
        }
        assert!(said("storage 'tank' does not exist").says_no_storage("tank"));
        assert!(!said("storage 'tank2' does not exist").says_no_storage("tank"));
    }

    #[test]
    fn a_refusal_names_path_and_privileges() {
        assert_eq!(
            kind(403, "Permission check failed (/vms/110, VM.Config.Disk|VM.Config.CPU)"),
            ApiErrorKind::Denied {
                path: "/vms/110".into(),
                privileges: vec!["VM.Config.Disk".into(), "VM.Config.CPU".into()]
            }
        );
    }

    #[test]
    fn a_task_that_met_a_lock_is_told_from_one_that_failed() {
        let kind = |status: &str| TaskFailure::read(status).kind;
        for text in [
            "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout",
            "VM is locked (snapshot)",
            "CT is locked (backup)",
            "cfs-lock 'storage-nas' error: got lock request timeout",
        ] {
            assert_eq!(kind(text), TaskFailureKind::HeldUp, "{text}");
        }
        assert_eq!(kind("command 'lvcreate' failed: exit code 5"), TaskFailureKind::Other);
        assert_eq!(kind("unable to lock the screen"), TaskFailureKind::Other);
        assert_eq!(kind("write error: No space left on device"), TaskFailureKind::StorageFull);
        assert_eq!(kind("VM quit/powerdown failed - got timeout"), TaskFailureKind::NoAnswer);
        assert_eq!(kind("lxc-stop timed out"), TaskFailureKind::NoAnswer);
        assert_eq!(kind("hotplug problem - cannot unplug"), TaskFailureKind::NotHotplugged);
    }

    /// What was written and not taken by a running guest is no refusal.
    #[test]
    fn a_value_that_waits_for_a_restart_was_written() {
        let body = r#"{"data":null,"errors":{"net0":"hotplug problem - error on hot-unplugging"}}"#;
        let error = read(400, "", body);
        assert_eq!(error.kind, ApiErrorKind::NotHotplugged);
        assert!(!error.did_nothing());
        assert_eq!(kind(500, "hotplug problem - cannot unplug"), ApiErrorKind::NotHotplugged);
        assert_eq!(kind(500, "VM 110 is already a pool member"), ApiErrorKind::PoolAsAsked);
    }
}
