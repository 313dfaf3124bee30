//! Errors of the API, told apart by status, reason phrase and text.

use std::collections::BTreeMap;

use super::answers::Failure;

/// What an error means for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiErrorKind {
    /// 401: the token or the ticket is not accepted.
    NotAuthenticated,
    /// 403: `privileges` (any of them) are missing on `path`.
    Denied {
        path: String,
        privileges: Vec<String>,
    },
    /// The key can only be set by root@pam with a ticket.
    RootOnly {
        key: String,
    },
    /// 400: by parameter.
    BadParameter,
    /// Something that the call needs does not exist. Which of them is proven by the exact text alone: see `says_no_guest` and its
    /// like.
    Missing,
    /// The name of the node does not resolve: there is none, or its name service fails. Nothing was done.
    NoSuchNode,
    AlreadyExists,
    /// The digest sent with the request is not the current one.
    Changed,
    /// The guest is locked by a running operation.
    Locked {
        lock: String,
    },
    /// The lock of the configuration was waited for and not got: nothing was done.
    LockTimeout,
    /// The worker for a task could not be started. What the call did before it began the task stays: see `leaves_a_lock`.
    NoWorker,
    /// The node that should answer could not be reached: nothing was done.
    NodeUnreachable,
    /// The node was reached and did not answer: what it did is unknown.
    AnswerLost,
    Other,
}

/// An answer that is no success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct ApiError {
    pub status: u16,
    /// The first line of the message, without a newline.
    pub reason: String,
    /// The other lines of the message: the reason is often there.
    pub details: Vec<String>,
    /// What is wrong with single parameters.
    pub errors: BTreeMap<String, String>,
    pub kind: ApiErrorKind,
    pub method: String,
    pub path: String,
}

impl ApiError {
    /// Reads an error from an answer. The reason phrase is used where there is no body, as with 401.
    pub(crate) fn read(method: &str, path: &str, status: u16, phrase: &str, body: &[u8]) -> Self {
        let failure: Failure = serde_json::from_slice(body).unwrap_or_default();
        let message = failure.message.unwrap_or_default();
        let reason =
            message.lines().next().filter(|line| !line.is_empty()).unwrap_or(phrase).trim().to_owned();
        let lines = message.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
        let details: Vec<String> = lines.skip(1).collect();
        let errors: BTreeMap<String, String> = failure
            .errors
            .unwrap_or_default()
            .into_iter()
            .map(|(key, text)| (key, text.as_str().split_whitespace().collect::<Vec<_>>().join(" ")))
            .collect();
        let kind = classify(status, &reason, &errors);
        Self { status, reason, details, errors, kind, method: method.to_owned(), path: path.to_owned() }
    }

    /// What the server said: the reason, or better, what is wrong with which parameter.
    pub fn text(&self) -> String {
        if self.errors.is_empty() {
            let reason = match self.reason.is_empty() {
                true => format!("status {}", self.status),
                false => self.reason.clone(),
            };
            return std::iter::once(reason)
                .chain(self.details.iter().cloned())
                .collect::<Vec<_>>()
                .join("; ");
        }
        let errors = self.errors.iter().map(|(key, text)| format!("`{key}`: {text}"));
        errors.collect::<Vec<_>>().join("; ")
    }

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

    /// The node does not remember the task that was asked for.
    pub(crate) fn says_no_task(&self) -> bool {
        self.status == 400 && self.errors.get("upid").is_some_and(|text| text == "no such task")
    }

    /// A guest has this VMID, whoever may see it.
    pub(crate) fn says_taken(&self, vmid: u32) -> bool {
        let text = format!("VM {vmid} already exists");
        self.status == 400 && self.errors.get("vmid").is_some_and(|said| *said == text)
    }

    /// A create or clone claims its VMID with a lock before it begins its task.
    pub(crate) fn leaves_a_lock(&self) -> bool {
        let makes = ["/qemu", "/lxc", "/clone"].iter().any(|end| self.path.ends_with(end));
        self.kind == ApiErrorKind::NoWorker && self.method == "POST" && makes
    }

    /// The server did nothing, for certain.
    pub(crate) fn did_nothing(&self) -> bool {
        // 501: there is no such method.
        let unknown = matches!(self.kind, ApiErrorKind::AnswerLost | ApiErrorKind::Other);
        self.status == 501 || !(unknown || self.leaves_a_lock())
    }
}

fn classify(status: u16, reason: &str, errors: &BTreeMap<String, String>) -> ApiErrorKind {
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
    fn single_parameters_are_named() {
        let error = read(
            400,
            "Parameter verification failed.",
            r#"{"data":null,"errors":{"name":"invalid format - value does not look like a valid DNS name\n"},"message":"Parameter verification failed.\n"}"#,
        );
        assert_eq!(error.kind, ApiErrorKind::BadParameter);
        assert_eq!(error.text(), "`name`: invalid format - value does not look like a valid DNS name");
        let error = read(400, "", r#"{"errors":{"skiplock":"Only root may use this option."}}"#);
        assert_eq!(error.kind, ApiErrorKind::RootOnly { key: "skiplock".into() });
        assert_eq!(read(400, "", r#"{"errors":{"upid":"no such task"}}"#).kind, ApiErrorKind::Missing);
    }

    #[test]
    fn an_empty_body_leaves_the_reason_phrase() {
        let error = read(401, "Authentication failed!", "");
        assert_eq!(
            (error.kind.clone(), error.text().as_str()),
            (ApiErrorKind::NotAuthenticated, "Authentication failed!")
        );
        assert_eq!(read(501, "", "<html>").text(), "status 501");
    }
}
