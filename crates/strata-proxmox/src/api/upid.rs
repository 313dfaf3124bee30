//! Task ids: `UPID:node:PID8:PSTART8:TIME8:type:id:user[!token]:`.

use std::fmt;
use std::str::FromStr;

/// A task, as named by its UPID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upid {
    text: String,
    pub node: String,
    /// Seconds since 1970, by the clock of the node.
    pub started: i64,
    /// `qmcreate`, `qmclone`, …
    pub kind: String,
    /// What it is about: a VMID, a file name, or nothing.
    pub id: String,
    /// `user@realm` or `user@realm!token`.
    pub user: String,
}

impl Upid {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// It only hands a request on to the manager of high availability.
    pub(crate) fn is_of_ha(&self) -> bool {
        self.kind.starts_with("ha")
    }
}

impl FromStr for Upid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || format!("`{text}` is not a task id");
        let rest = text.strip_prefix("UPID:").and_then(|rest| rest.strip_suffix(':')).ok_or_else(refuse)?;
        let parts: Vec<&str> = rest.split(':').collect();
        // The id in the middle may hold encoded characters but no colon.
        let [node, _pid, _pstart, started, kind, id, user] = parts[..] else { return Err(refuse()) };
        Ok(Self {
            text: text.to_owned(),
            node: node.to_owned(),
            started: i64::from_str_radix(started, 16).map_err(|_| refuse())?,
            kind: kind.to_owned(),
            id: id.to_owned(),
            user: user.to_owned(),
        })
    }
}

impl fmt::Display for Upid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_parts() {
        let text = "UPID:pve:000002C0:0007187D:6AFA0AD4:qmcreate:100:root@pam!test:";
        let upid: Upid = text.parse().unwrap();
        assert_eq!((upid.node.as_str(), upid.kind.as_str(), upid.id.as_str()), ("pve", "qmcreate", "100"));
        assert_eq!((upid.user.as_str(), upid.started), ("root@pam!test", 0x6AFA_0AD4));
        assert_eq!(upid.to_string(), text);
        assert_eq!("UPID:pve:1:2:6AFA0AD4:imgcopy::root@pam:".parse::<Upid>().unwrap().id, "");
    }

    #[test]
    fn refuses_what_is_none() {
        for text in ["", "UPID:", "UPID:a:b:c:d:e:f:g", "UPID:a:b:c:zz:e:f:g:", "upid:a:b:c:1:e:f:g:"] {
            assert!(text.parse::<Upid>().is_err(), "{text}");
        }
    }
}
