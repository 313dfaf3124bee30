//! What an etcd database tells about the cluster that it belongs to: its members, the nodes of its Kubernetes, and the authority that
//! Kubernetes gives to every namespace. Read from a snapshot before anything is restored from it.

mod pages;

use std::collections::BTreeSet;

use prost::Message;

use self::pages::Pages;

/// etcd puts a checksum of this length behind a snapshot; the database itself is made of whole sectors.
const CHECKSUM: usize = 32;
const SECTOR: usize = 512;
const NODES: &[u8] = b"/registry/minions/";
const CONFIG_MAPS: &[u8] = b"/registry/configmaps/";
/// The config map in which each namespace finds the authority of the Kubernetes API.
const ROOT_CA: &[u8] = b"/kube-root-ca.crt";
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Whose database it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtcdDatabase {
    pub members: Vec<DatabaseMember>,
    /// Names of Kubernetes' nodes.
    pub nodes: BTreeSet<String>,
    /// Certificates of the Kubernetes API's authorities: the base64 of each, without line breaks.
    pub authorities: BTreeSet<String>,
}

/// A member, as the database has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseMember {
    pub name: String,
    pub peer_urls: Vec<String>,
    pub is_learner: bool,
}

/// A key and its value, as etcd stores them.
#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

impl EtcdDatabase {
    /// Reads a snapshot, or the database file of a member. None if it is neither, or damaged.
    pub fn read(content: &[u8]) -> Option<Self> {
        let hashed = content.len() % SECTOR == CHECKSUM;
        let file = &content[..content.len() - if hashed { CHECKSUM } else { 0 }];
        let pages = Pages::open(file)?;
        let mut own = Self::default();
        for (_, value) in pages.bucket(b"members")? {
            own.members.push(member(value)?);
        }
        for (_, value) in pages.bucket(b"key")? {
            // A mark that something was deleted has no value; what is no pair of ours is not looked at.
            let Ok(stored) = KeyValue::decode(value) else { continue };
            if let Some(name) = stored.key.strip_prefix(NODES) {
                own.nodes.insert(String::from_utf8_lossy(name).into_owned());
            } else if stored.key.starts_with(CONFIG_MAPS) && stored.key.ends_with(ROOT_CA) {
                own.authorities.extend(certificates(&String::from_utf8_lossy(&stored.value)));
            }
        }
        Some(own)
    }

    /// The voting members.
    pub fn voters(&self) -> impl Iterator<Item = &DatabaseMember> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    /// Whether Kubernetes' authority is one of these certificates, in PEM; nothing if the database does not tell.
    pub fn has_authority(&self, pem: &str) -> Option<bool> {
        let wanted = certificates(pem);
        (!self.authorities.is_empty()).then(|| wanted.iter().any(|one| self.authorities.contains(one)))
    }
}

fn member(stored: &[u8]) -> Option<DatabaseMember> {
    let stored: serde_json::Value = serde_json::from_slice(stored).ok()?;
    let urls = stored["peerURLs"].as_array().into_iter().flatten();
    Some(DatabaseMember {
        name: stored["name"].as_str().unwrap_or_default().to_owned(),
        peer_urls: urls.filter_map(|url| url.as_str().map(str::to_owned)).collect(),
        is_learner: stored["isLearner"].as_bool().unwrap_or(false),
    })
}

/// Every certificate in a text, also where its line breaks are written as `\n`.
fn certificates(text: &str) -> Vec<String> {
    let bodies = text.split(BEGIN).skip(1).filter_map(|rest| rest.split(END).next());
    bodies
        .map(|body| body.replace("\\n", "").chars().filter(|char| !char.is_whitespace()).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_the_same_however_their_lines_break() {
        let pem = format!("{BEGIN}\nQUJD\nREVG\n{END}\n");
        let json = serde_json::json!({ "data": { "ca.crt": pem } }).to_string();
        assert_eq!(certificates(&pem), ["QUJDREVG"]);
        assert_eq!(certificates(&json), certificates(&pem));
        let two = format!("{pem}{}", pem.replace("QUJD", "WFla"));
        assert_eq!(certificates(&two).len(), 2);
        let database =
            EtcdDatabase { authorities: certificates(&two).into_iter().collect(), ..Default::default() };
        assert_eq!(database.has_authority(&pem), Some(true));
        assert_eq!(database.has_authority(&pem.replace("QUJD", "AAAA")), Some(false));
        assert_eq!(EtcdDatabase::default().has_authority(&pem), None);
    }

    #[test]
    fn what_is_no_database_is_refused() {
        for content in [&b""[..], b"not a snapshot", &[0; 4096], &[0; 512 + 32]] {
            assert_eq!(EtcdDatabase::read(content), None);
        }
    }
}
