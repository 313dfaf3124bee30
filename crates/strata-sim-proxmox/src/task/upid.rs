//! Unique process ids: `UPID:node:pid:pstart:time:type:id:user:`.

/// The parts of a UPID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upid {
    pub node: String,
    pub pid: u32,
    pub pstart: u64,
    pub start: i64,
    pub kind: String,
    pub id: String,
    /// With `!token`, if it was one.
    pub user: String,
}

impl std::fmt::Display for Upid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { node, pid, pstart, start, kind, id, user } = self;
        write!(f, "UPID:{node}:{pid:08X}:{pstart:08X}:{start:08X}:{kind}:{id}:{user}:")
    }
}

impl Upid {
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let ["UPID", node, pid, pstart, start, kind, id, user, _rest] = parts.as_slice() else { return None };
        let hex = |s: &str, len: std::ops::RangeInclusive<usize>| {
            (len.contains(&s.len()) && s.bytes().all(|b| b.is_ascii_hexdigit()))
                .then(|| u64::from_str_radix(s, 16).ok())
                .flatten()
        };
        Some(Self {
            node: (*node).to_owned(),
            pid: u32::try_from(hex(pid, 8..=8)?).ok()?,
            pstart: hex(pstart, 8..=9)?,
            start: i64::try_from(hex(start, 8..=8)?).ok()?,
            kind: (*kind).to_owned(),
            id: (*id).to_owned(),
            user: (*user).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_upid_reads_back() {
        let text = "UPID:pve:00000121:00071322:6AFA0AC6:qmcreate:900:root@pam!test:";
        let upid = Upid::parse(text).unwrap();
        assert_eq!((upid.kind.as_str(), upid.user.as_str(), upid.pid), ("qmcreate", "root@pam!test", 0x121));
        assert_eq!(upid.to_string(), text);
        assert_eq!(Upid::parse("foo"), None);
        assert_eq!(Upid::parse("UPID:pve:1:1:1:a:b:c:"), None);
    }
}
