//! Snapshots: the identity of a cluster in a file that can be checked.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::EtcdCluster;

/// The first line of a snapshot, so that people who open one see what it is.
const TITLE: &str = "strata-sim etcd snapshot\n";

impl EtcdCluster {
    pub fn snapshot(&self) -> Vec<u8> {
        let content = json!({
            "cluster": self.id, "talos": self.talos, "revision": self.revision,
            "members": self.members.iter().map(|member| &member.name).collect::<Vec<_>>(),
        });
        let mut bytes = format!("{TITLE}{content}\n").into_bytes();
        // The size of a small real one, so that it travels in more than one piece.
        bytes.resize(bytes.len().max(160 << 10), b'\n');
        let digest = Sha256::digest(&bytes);
        bytes.extend_from_slice(&digest);
        bytes
    }
}

/// The identity of the cluster that a snapshot is of; the complaint of etcd's tool about any other file.
pub fn read(bytes: &[u8], check_hash: bool) -> Result<String, String> {
    let body = match bytes.len().checked_sub(32) {
        Some(end) if check_hash => {
            let (body, digest) = bytes.split_at(end);
            if Sha256::digest(body).as_slice() != digest {
                return Err("snapshot missing hash but --skip-hash-check=false".to_owned());
            }
            body
        }
        _ => bytes,
    };
    let text = String::from_utf8_lossy(body);
    let line = text.strip_prefix(TITLE).and_then(|rest| rest.lines().next()).ok_or("invalid database")?;
    let content: Value = serde_json::from_str(line).map_err(|_| "invalid database")?;
    content["cluster"].as_str().map(str::to_owned).ok_or_else(|| "invalid database".to_owned())
}
