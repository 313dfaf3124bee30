//! Whether operations can be done at all: asked before the first of them is begun, answered with everything that is wrong.

mod needs;
mod permissions;
mod places;
mod root;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use strata_engine::{ErrorClass, Look, Obstacle, Operation, ProviderError};

use self::needs::{Need, needs_of};
pub(crate) use self::needs::{Needs, SEE_STORAGE, verb};
pub(crate) use self::permissions::Permissions;
pub(crate) use self::places::NamedPlaces;
pub(crate) use self::root::forbidden_keys;
use crate::api::Version;
use crate::client::Client;
use crate::kinds;

/// A privilege of Proxmox, such as `VM.Allocate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Privilege(pub(crate) &'static str);

impl Privilege {
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The privileges of a role that is enough for the operations, and no more than that. With `asks_agents` it may ask guest agents for addresses:
/// without that guests are made all the same, and nobody knows where they are. Before Proxmox VE 9 the privilege for that has another name, which 9 does
/// not know.
pub fn required_role(
    operations: &[Operation],
    asks_agents: bool,
    version: Option<&Version>,
) -> BTreeSet<Privilege> {
    let mut needs: Vec<Need> = operations.iter().flat_map(needs_of).collect();
    if let Some(operation) = operations.first().filter(|_| asks_agents) {
        let (paths, address) = (Vec::new(), operation.address.clone());
        needs.push(Need {
            any_of: if version.is_some_and(Version::is_before_9) {
                needs::ASK_AGENT_BEFORE_9
            } else {
                needs::ASK_AGENT
            },
            paths,
            or_all: None,
            purpose: "ask the guest agent of",
            address,
        });
    }
    let (certain, open): (Vec<&Need>, Vec<&Need>) =
        needs.iter().partition(|need| need.any_of.len() == 1 && need.or_all.is_none());
    let mut role: BTreeSet<Privilege> = certain.iter().map(|need| Privilege(need.any_of[0])).collect();
    for need in open {
        // Where one of several is enough, one that is needed anyway costs nothing.
        let has = |privilege: &str| role.iter().any(|own| own.as_str() == privilege);
        let all = |(privileges, _): &(Vec<String>, String)| privileges.iter().all(|privilege| has(privilege));
        if !need.any_of.iter().any(|privilege| has(privilege)) && !need.or_all.as_ref().is_some_and(all) {
            role.extend(need.any_of.first().map(|privilege| Privilege(privilege)));
        }
    }
    role
}

pub(crate) async fn preflight(
    client: &Client,
    look: &Look,
    operations: &[Operation],
    earlier: &[Operation],
) -> Result<Vec<Obstacle>, ProviderError> {
    if operations.is_empty() {
        return Ok(Vec::new());
    }
    let permissions = Permissions::read_in(client, look).await?;
    let mut complete = operations.to_vec();
    for managed in kinds::all() {
        if operations.iter().any(|operation| operation.address.kind() == managed.table().kind()) {
            managed.complete_needs(client, &mut complete).await?;
        }
    }
    let needs: Vec<Need> = complete.iter().flat_map(needs_of).collect();
    let mut wrong = missing_privileges(&needs, &permissions);
    for operation in operations {
        let managed = kinds::of(operation.address.kind());
        let refusals =
            managed.into_iter().flat_map(|managed| managed.refusals(client, operation, operations));
        wrong.extend(refusals.map(|error| Obstacle { address: operation.address.clone(), error }));
        if let Some(managed) = managed {
            let found = managed.obstacle(client, operation, earlier).await?;
            wrong.extend(found.map(|error| Obstacle { address: operation.address.clone(), error }));
        }
    }
    // Where a privilege is missing, what the server shows is not all there is.
    let blind = |path: &str| {
        needs.iter().any(|need| need.paths.iter().any(|own| own == path) && !permissions.meet(need))
    };
    wrong.extend(places::check(client, look, operations, earlier, &blind).await?);
    Ok(wrong)
}

/// One error for each privilege, however many paths lack it.
fn missing_privileges(needs: &[Need], permissions: &Permissions) -> Vec<Obstacle> {
    let mut missing: BTreeMap<&[&'static str], Vec<&Need>> = BTreeMap::new();
    for need in needs.iter().filter(|need| !permissions.meet(need)) {
        missing.entry(need.any_of).or_default().push(need);
    }
    let refusals = missing.into_iter().map(|(privileges, needs)| {
        let error = refusal(privileges, &needs);
        Obstacle { address: needs[0].address.clone(), error }
    });
    refusals.collect()
}

fn refusal(privileges: &[&str], needs: &[&Need]) -> ProviderError {
    let named: Vec<String> = privileges.iter().map(|privilege| format!("`{privilege}`")).collect();
    let first = needs[0];
    let paths: BTreeSet<&str> = needs.iter().map(|need| need.paths[0].as_str()).collect();
    let more = match paths.len() - 1 {
        0 => String::new(),
        1 => " and one more path".to_owned(),
        more => format!(" and {more} more paths"),
    };
    let message = format!(
        "the privilege {} is missing on `{}`{more}: it is needed to {} `{}`",
        named.join(" or "),
        first.paths[0],
        first.purpose,
        first.address
    );
    let mut error = ProviderError::new(ErrorClass::Refused, message)
        .hint("`strata doctor --role` prints a role with everything that is needed");
    error.nothing_done = true;
    error
}
