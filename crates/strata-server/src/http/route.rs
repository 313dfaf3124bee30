//! Addresses and methods.

use http::{Method, StatusCode};

use super::answer::Problem;
use strata_storage::StateName;

/// What an address stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// As OpenTofu knows it.
    State(StateName),
    Lock(StateName),
    /// As Strata knows it.
    List,
    Document(StateName),
    Versions(StateName),
    Diff(StateName),
    Restore(StateName),
    Lease(StateName),
    Journal(StateName),
}

/// What is to be done; its name goes to the audit log and the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Read,
    Write,
    Delete,
    Lock,
    Unlock,
    Holder,
    List,
    Versions,
    Diff,
    Restore,
    AddVersion,
    Heartbeat,
    ReadJournal,
    AppendJournal,
    ClearJournal,
}

impl Verb {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Lock => "lock",
            Self::Unlock => "unlock",
            Self::Holder => "holder",
            Self::List => "list",
            Self::Versions => "versions",
            Self::Diff => "diff",
            Self::Restore => "restore",
            Self::AddVersion => "add-version",
            Self::Heartbeat => "heartbeat",
            Self::ReadJournal => "read-journal",
            Self::AppendJournal => "append-journal",
            Self::ClearJournal => "clear-journal",
        }
    }
}

impl Target {
    pub(super) fn read(path: &str) -> Result<Self, Problem> {
        let name = |path: &str| {
            StateName::from_address(path)
                .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))
        };
        if let Some(rest) = path.strip_prefix("/states/").or_else(|| path.strip_prefix("/tfstate/")) {
            return match rest.strip_suffix("/lock") {
                Some(rest) => name(rest).map(Self::Lock),
                None => name(rest).map(Self::State),
            };
        }
        let unknown = || Problem::new(StatusCode::NOT_FOUND, "there is nothing at this address");
        let (kind, rest) = match path.strip_prefix("/v1/").ok_or_else(unknown)?.split_once('/') {
            None if path == "/v1/states" => return Ok(Self::List),
            None => return Err(unknown()),
            Some(found) => found,
        };
        let target = match kind {
            "states" => Self::Document,
            "versions" => Self::Versions,
            "diff" => Self::Diff,
            "restore" => Self::Restore,
            "leases" => Self::Lease,
            "journal" => Self::Journal,
            _ => return Err(unknown()),
        };
        name(rest).map(target)
    }

    pub(super) fn name(&self) -> Option<&StateName> {
        match self {
            Self::List => None,
            Self::State(name)
            | Self::Lock(name)
            | Self::Document(name)
            | Self::Versions(name)
            | Self::Diff(name)
            | Self::Restore(name)
            | Self::Lease(name)
            | Self::Journal(name) => Some(name),
        }
    }

    pub(super) fn verb(&self, method: &Method) -> Option<Verb> {
        let verb = match (self, method.as_str()) {
            (Self::State(_) | Self::Document(_), "GET" | "HEAD") => Verb::Read,
            (Self::State(_), "POST" | "PUT") | (Self::Document(_), "PUT") => Verb::Write,
            (Self::State(_) | Self::Document(_), "DELETE") => Verb::Delete,
            (Self::State(_), "LOCK") | (Self::Lock(_), "LOCK" | "PUT" | "POST") => Verb::Lock,
            (Self::State(_), "UNLOCK") | (Self::Lock(_), "UNLOCK" | "DELETE") => Verb::Unlock,
            (Self::Lock(_) | Self::Lease(_), "GET") => Verb::Holder,
            (Self::List, "GET") => Verb::List,
            (Self::Versions(_), "GET") => Verb::Versions,
            (Self::Versions(_), "PUT") => Verb::AddVersion,
            (Self::Diff(_), "GET") => Verb::Diff,
            (Self::Restore(_), "POST") => Verb::Restore,
            (Self::Lease(_), "POST") => Verb::Lock,
            (Self::Lease(_), "PUT") => Verb::Heartbeat,
            (Self::Lease(_), "DELETE") => Verb::Unlock,
            (Self::Journal(_), "GET") => Verb::ReadJournal,
            (Self::Journal(_), "POST") => Verb::AppendJournal,
            (Self::Journal(_), "DELETE") => Verb::ClearJournal,
            _ => return None,
        };
        Some(verb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        let name = |text| StateName::parse(text).unwrap();
        let read = |path| Target::read(path).map_err(|problem| problem.code());
        assert_eq!(read("/states/a/b"), Ok(Target::State(name("a/b"))));
        assert_eq!(read("/tfstate/a/b/lock"), Ok(Target::Lock(name("a/b"))));
        assert_eq!(read("/v1/states"), Ok(Target::List));
        assert_eq!(read("/v1/states/a/lock/b"), Ok(Target::Document(name("a/lock/b"))));
        assert_eq!(read("/v1/leases/a"), Ok(Target::Lease(name("a"))));
        for path in [
            "/states/",
            "/states/lock",
            "/states/a/lock/lock",
            "/states/..",
            "/states/a//lock",
            "/v1/states/",
        ] {
            assert_eq!(read(path), Err(400), "{path}");
        }
        for path in
            ["/", "/states", "/statesa", "/v1", "/v1/", "/v1/leases", "/v2/states", "/v1/x/y", "*", ""]
        {
            assert_eq!(read(path), Err(404), "{path}");
        }
    }
}
