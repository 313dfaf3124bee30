//! What we may do where, as the server tells it: for each path of the access control, the privileges that hold there.

use std::collections::BTreeMap;
use std::sync::Arc;

use strata_engine::{Look, ProviderError};

use super::needs::Need;
use crate::api::{Params, Scalar};
use crate::client::Client;

/// Privileges by path. A value of 1 reaches down to paths below, 0 does not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Permissions(BTreeMap<String, BTreeMap<String, bool>>);

impl Permissions {
    /// As the server knows them now.
    pub(crate) async fn read(client: &Client) -> Result<Self, ProviderError> {
        let answer = client.get("/access/permissions", Params::new()).await;
        Ok(Self::new(answer.map_err(|error| error.explain("read the permissions of the token"))?))
    }

    /// The same as a part of a look.
    pub(crate) async fn read_in(client: &Client, look: &Look) -> Result<Arc<Self>, ProviderError> {
        let question = format!("{} permissions", client.endpoint());
        let read = look.once(question, || async { Self::read(client).await.map(Arc::new) }).await;
        read.as_ref().clone()
    }

    fn new(answer: BTreeMap<String, BTreeMap<String, Scalar>>) -> Self {
        let privileges = |row: BTreeMap<String, Scalar>| {
            row.into_iter().map(|(name, reaches_down)| (name, reaches_down.as_str() == "1")).collect()
        };
        Self(answer.into_iter().map(|(path, row)| (path, privileges(row))).collect())
    }

    /// Whether any of a need's privileges holds on any of its paths.
    pub(super) fn meet(&self, need: &Need) -> bool {
        let all = |(privileges, path): &(Vec<String>, String)| {
            privileges.iter().all(|privilege| self.has(path, privilege))
        };
        need.paths.iter().any(|path| need.any_of.iter().any(|privilege| self.has(path, privilege)))
            || need.or_all.as_ref().is_some_and(all)
    }

    /// The nearest path that the server lists decides. A `*` stands for any one part that it lists.
    pub(crate) fn has(&self, path: &str, privilege: &str) -> bool {
        if let Some((before, after)) = path.split_once('*') {
            return self.0.keys().any(|listed| {
                let part = listed.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                part.is_some_and(|part| !part.is_empty() && !part.contains('/'))
                    && self.has(listed, privilege)
            });
        }
        let mut at = path;
        loop {
            if let Some(privileges) = self.0.get(at) {
                return privileges.get(privilege).is_some_and(|reaches_down| *reaches_down || at == path);
            }
            at = match at.rfind('/') {
                Some(0) if at.len() > 1 => "/",
                Some(cut) if cut > 0 => &at[..cut],
                _ => return false,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(json: &str) -> Permissions {
        Permissions::new(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn the_nearest_listed_path_decides() {
        let permissions = permissions(
            r#"{"/": {"Sys.Audit": 1, "VM.Audit": 0}, "/vms": {"VM.Allocate": 1}, "/vms/110": {"VM.Audit": 0},
                "/sdn/zones/z1/net1": {"SDN.Use": 1}}"#,
        );
        for (path, privilege, expected) in [
            ("/vms/100", "VM.Allocate", true),
            ("/vms/110", "VM.Allocate", false),
            ("/vms/110", "VM.Audit", true),
            ("/nodes/pve", "Sys.Audit", true),
            ("/nodes/pve", "VM.Audit", false),
            ("/", "VM.Audit", true),
            ("/sdn/zones/*/net1", "SDN.Use", true),
            ("/sdn/zones/*/net2", "SDN.Use", false),
        ] {
            assert_eq!(permissions.has(path, privilege), expected, "{path} {privilege}");
        }
        assert!(!Permissions::default().has("/vms/1", "VM.Audit"));
    }
}
