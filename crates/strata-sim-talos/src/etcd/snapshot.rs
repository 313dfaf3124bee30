//! Snapshots: everything that an etcd holds, in the file that etcd itself would write, with the SHA-256 of it at the end.

use std::collections::BTreeMap;

use prost::Message;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::EtcdCluster;
use super::bolt::{self, Bucket, Buckets};
use strata_sim_kubernetes::Contents;

const CHECKSUM: usize = 32;
/// A file with its checksum has this many bytes more than whole sectors.
const SECTOR: usize = 512;
const VERSION: &str = "3.6.4";
/// Before the keys of Kubernetes' objects.
const REGISTRY: &str = "/registry/";
/// A bucket that a real etcd does not have: whose snapshot it is.
const OWN: &[u8] = b"simulated";

/// A key and its value, as etcd stores them.
#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(int64, tag = "2")]
    create_revision: i64,
    #[prost(int64, tag = "3")]
    mod_revision: i64,
    #[prost(int64, tag = "4")]
    version: i64,
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

/// What is in a snapshot.
#[derive(Debug)]
pub struct Recovered {
    /// The identity of the etcd cluster that it was made of.
    pub cluster: String,
    pub contents: Contents,
}

/// Kubernetes' own keys for what others look for in a database; all else has the simulator's.
const KNOWN: [(&str, &str); 2] = [("/nodes//", "minions/"), ("/configmaps/", "configmaps/")];

fn stored_key(name: &str) -> String {
    let known =
        KNOWN.iter().find_map(|(own, real)| Some(format!("{REGISTRY}{real}{}", name.strip_prefix(own)?)));
    known.unwrap_or_else(|| format!("{REGISTRY}{name}"))
}

fn object_key(key: &str) -> Option<String> {
    let name = key.strip_prefix(REGISTRY)?;
    let known = KNOWN.iter().find_map(|(own, real)| Some(format!("{own}{}", name.strip_prefix(real)?)));
    Some(known.unwrap_or_else(|| name.to_owned()))
}

fn bucket<const N: usize>(entries: [(&str, Vec<u8>); N]) -> Bucket {
    entries.into_iter().map(|(key, value)| (key.as_bytes().to_vec(), value)).collect()
}

/// The key under which a revision is stored.
fn revision(main: u64) -> Vec<u8> {
    [&main.to_be_bytes()[..], b"_", &0_u64.to_be_bytes()].concat()
}

impl EtcdCluster {
    /// The database with the checksum that etcd puts at the end of a snapshot.
    pub fn snapshot(&self, contents: &Contents) -> Vec<u8> {
        let mut bytes = self.database(contents);
        let digest = Sha256::digest(&bytes);
        bytes.extend_from_slice(&digest);
        bytes
    }

    /// The file that a member has on its disk.
    pub fn database(&self, contents: &Contents) -> Vec<u8> {
        let mut keys = Bucket::new();
        for (name, object) in &contents.objects {
            let number = object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
            let number: u64 = number.unwrap_or(1);
            let stored = KeyValue {
                key: stored_key(name).into_bytes(),
                create_revision: number as i64,
                mod_revision: number as i64,
                version: 1,
                value: object.to_string().into_bytes(),
            };
            keys.insert(revision(number), stored.encode_to_vec());
        }
        let members = self.members.iter().map(|member| {
            let url = [format!("https://{}:2380", member.address)];
            let mut value = json!({ "id": member.id, "peerURLs": url, "name": member.name });
            if member.learner {
                value["isLearner"] = true.into();
            }
            (format!("{:x}", member.id).into_bytes(), value.to_string().into_bytes())
        });
        let own = json!({ "cluster": self.id, "talos": self.talos, "revision": contents.revision });
        let index = self.revision + 10;
        let mut buckets = Buckets::from([
            (b"key".to_vec(), keys),
            (b"members".to_vec(), members.collect()),
            (b"cluster".to_vec(), bucket([("clusterVersion", VERSION.as_bytes().to_vec())])),
            (
                b"meta".to_vec(),
                bucket([
                    ("consistent_index", index.to_be_bytes().to_vec()),
                    ("storageVersion", b"3.6.0".to_vec()),
                    ("term", self.term.to_be_bytes().to_vec()),
                ]),
            ),
            (OWN.to_vec(), bucket([("cluster", own.to_string().into_bytes())])),
        ]);
        for empty in ["alarm", "auth", "authRoles", "authUsers", "lease", "members_removed"] {
            buckets.insert(empty.as_bytes().to_vec(), Bucket::new());
        }
        bolt::write(&buckets)
    }
}

/// What a snapshot holds; the complaint of etcd's tool about any other file.
pub fn read(bytes: &[u8], check_hash: bool) -> Result<Recovered, String> {
    let hashed = bytes.len() % SECTOR == CHECKSUM;
    let (body, digest) = bytes.split_at(if hashed { bytes.len() - CHECKSUM } else { bytes.len() });
    if check_hash && !hashed {
        return Err("snapshot missing hash but --skip-hash-check=false".to_owned());
    }
    let found = Sha256::digest(body);
    if check_hash && found.as_slice() != digest {
        return Err(format!("expected sha256 {digest:?}, got {:?}", found.as_slice()));
    }
    recovered(body).ok_or_else(|| "invalid database".to_owned())
}

fn recovered(body: &[u8]) -> Option<Recovered> {
    let buckets = bolt::read(body)?;
    let own: Value = serde_json::from_slice(buckets.get(OWN)?.get(&b"cluster"[..])?).ok()?;
    let mut objects = BTreeMap::new();
    for value in buckets.get(&b"key"[..])?.values() {
        let stored = KeyValue::decode(value.as_slice()).ok()?;
        let key = String::from_utf8(stored.key).ok()?;
        objects.insert(object_key(&key)?, serde_json::from_slice(&stored.value).ok()?);
    }
    let contents = Contents { revision: own["revision"].as_u64()?, objects };
    Some(Recovered { cluster: own["cluster"].as_str()?.to_owned(), contents })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> EtcdCluster {
        EtcdCluster {
            id: "c1".to_owned(),
            talos: "t1".to_owned(),
            authority: String::new(),
            members: Vec::new(),
            leader: None,
            term: 3,
            revision: 7,
            alarms: Vec::new(),
        }
    }

    #[test]
    fn a_snapshot_holds_the_objects() {
        let object = |number: u64| json!({ "metadata": { "resourceVersion": number.to_string() }, "x": "y".repeat(3000) });
        let objects = (1..=40).map(|number| (format!("/pods/default/p{number}"), object(number))).collect();
        let contents = Contents { revision: 41, objects };
        let bytes = cluster().snapshot(&contents);
        let read = read(&bytes, true).unwrap();
        assert_eq!((read.cluster.as_str(), &read.contents), ("c1", &contents));
    }

    #[test]
    fn anything_else_is_refused() {
        let bytes = cluster().snapshot(&Contents::default());
        assert!(read(&bytes[..bytes.len() - 1], true).unwrap_err().contains("missing hash"));
        let mut damaged = bytes.clone();
        damaged[5000] ^= 1;
        assert!(read(&damaged, true).unwrap_err().contains("expected sha256"));
        assert_eq!(read(&[0; 4096], false).unwrap_err(), "invalid database");
        assert!(read(&bytes[..bytes.len() - CHECKSUM], false).is_ok());
    }
}
