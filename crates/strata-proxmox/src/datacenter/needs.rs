//! What an operation on the datacenter needs: privileges, and for one thing a ticket.

use strata_engine::{ErrorClass, Operation, ProviderError};
use strata_resource::{Spec, Value};
use strata_state::Action;

use super::family::spec_text;
use crate::client::Client;
use crate::kinds;

/// Any of these privileges, on any of these paths, for a purpose that completes "it is needed to …"; or all of the others on one path.
pub(crate) struct DatacenterNeed {
    pub(crate) any_of: &'static [&'static str],
    pub(crate) paths: Vec<String>,
    pub(crate) or_all: Option<(Vec<String>, String)>,
    pub(crate) purpose: &'static str,
}

impl From<(&'static [&'static str], Vec<String>, &'static str)> for DatacenterNeed {
    fn from((any_of, paths, purpose): (&'static [&'static str], Vec<String>, &'static str)) -> Self {
        Self { any_of, paths, or_all: None, purpose }
    }
}

type Plain = (&'static [&'static str], Vec<String>, &'static str);

pub(crate) fn needs_of(operation: &Operation) -> Vec<DatacenterNeed> {
    let mut needs: Vec<DatacenterNeed> = plain(operation).into_iter().map(DatacenterNeed::from).collect();
    if operation.address.kind() == kinds::ACL {
        needs.push(permission_to_permit(operation));
    }
    needs
}

fn plain(operation: &Operation) -> Vec<Plain> {
    let spec = &operation.spec;
    let purpose = match operation.action {
        Action::Create => "make",
        Action::Update => "change",
        Action::Delete => "delete",
    };
    let on = |path: &str| vec![path.to_owned()];
    match operation.address.kind() {
        kinds::POOL => {
            let pool = vec![format!("/pool/{}", spec_text(spec, "pool"))];
            vec![(&["Pool.Audit"], pool.clone(), "look at"), (&["Pool.Allocate"], pool, purpose)]
        }
        kinds::ROLE => vec![(&["Sys.Modify"], on("/access"), purpose)],
        kinds::GROUP => vec![
            (&["Sys.Audit", "Group.Allocate"], on("/access/groups"), "look at"),
            (&["Group.Allocate"], on("/access/groups"), purpose),
        ],
        kinds::USER => user(operation, purpose),
        kinds::TOKEN => vec![(&["User.Modify"], on("/access/groups"), purpose)],
        kinds::STORAGE => vec![
            (
                &["Datastore.Audit", "Datastore.AllocateSpace"],
                vec![format!("/storage/{}", spec_text(spec, "storage"))],
                "look at",
            ),
            (&["Datastore.Allocate"], on("/storage"), purpose),
        ],
        kinds::MAPPING => {
            let bus = format!("/mapping/{}", spec_text(spec, "bus"));
            vec![(&["Mapping.Modify"], vec![bus], purpose)]
        }
        kinds::FIREWALL | kinds::ALIAS | kinds::IPSET | kinds::SECURITY_GROUP => {
            vec![(&["Sys.Audit"], on("/"), "look at"), (&["Sys.Modify"], on("/"), purpose)]
        }
        kinds::DNS | kinds::TIMEZONE | kinds::NETWORK => {
            let node = ["dns", "clock", "network"].iter().find_map(|field| spec.get(*field)?.as_text());
            let node = vec![format!("/nodes/{}", node.unwrap_or_default())];
            let mut needs: Vec<Plain> =
                vec![(&["Sys.Audit"], node.clone(), "look at"), (&["Sys.Modify"], node, purpose)];
            // Bridges are shown to those who may use them.
            let interfaces = spec.get("interfaces").and_then(Value::as_map).into_iter().flat_map(Spec::keys);
            for name in interfaces {
                let path = format!("/sdn/zones/localnetwork/{name}");
                needs.push((&["SDN.Audit", "SDN.Use"], vec![path], "see the bridges of"));
            }
            needs
        }
        _ => Vec::new(),
    }
}

fn user(operation: &Operation, purpose: &'static str) -> Vec<Plain> {
    let spec = &operation.spec;
    // Rights on the groups of a user are rights on the user; on all groups, on every user.
    let groups = spec.get("groups").and_then(Value::as_list).into_iter().flatten().filter_map(Value::as_text);
    let mut paths = vec!["/access/groups".to_owned()];
    paths.extend(groups.map(|group| format!("/access/groups/{group}")));
    let mut needs: Vec<Plain> =
        vec![(&["Sys.Audit", "User.Modify"], paths.clone(), "look at"), (&["User.Modify"], paths, purpose)];
    if operation.action != Action::Update || operation.touches("password") {
        let realm = spec_text(spec, "user").rsplit('@').next().unwrap_or_default();
        needs.push((&["Realm.AllocateUser"], vec![format!("/access/realm/{realm}")], purpose));
    }
    needs
}

/// Who may give rights away: `Permissions.Modify`; or, below a storage, guest or pool, whoever manages it and has every privilege of the
/// role itself.
fn permission_to_permit(operation: &Operation) -> DatacenterNeed {
    let path = spec_text(&operation.spec, "path");
    let below = |start: &str| path.strip_prefix(start).is_some_and(|rest| !rest.is_empty());
    let manages = if below("/storage/") {
        Some("Datastore.Allocate")
    } else if below("/vms/") {
        Some("VM.Allocate")
    } else if below("/pool/") {
        Some("Pool.Allocate")
    } else {
        None
    };
    let role = operation.spec.get(GRANTED).and_then(Value::as_list);
    let or_all = manages.zip(role).map(|(manages, role)| {
        let own = role.iter().filter_map(Value::as_text).map(str::to_owned);
        (std::iter::once(manages.to_owned()).chain(own).collect(), path.to_owned())
    });
    let purpose = match operation.action {
        Action::Delete => "take away",
        Action::Create | Action::Update => "give",
    };
    DatacenterNeed { any_of: &["Permissions.Modify"], paths: vec![path.to_owned()], or_all, purpose }
}

/// The privileges of the role that an entry gives, where the preflight found them out.
pub(crate) const GRANTED: &str = "granted_privileges";

/// Passwords that would have to be changed, where nothing but an API token is at hand.
pub(crate) fn forbidden_passwords(client: &Client, operations: &[Operation]) -> Vec<ProviderError> {
    if client.has_login() {
        return Vec::new();
    }
    let changes = |operation: &&Operation| {
        let kind = operation.address.kind();
        kind == kinds::USER && operation.action == Action::Update && sets_password(&operation.spec, operation)
    };
    operations
        .iter()
        .filter(changes)
        .map(|operation| {
            let message = format!(
                "`{}`: an API token cannot change a password; it can only give one to a user that it makes",
                operation.address
            );
            let mut error = ProviderError::new(ErrorClass::Refused, message).field("password").hint(
                "give the target `login: {user: root@pam, password: …}`, or change it in Proxmox and take `password` out here",
            );
            error.nothing_done = true;
            error
        })
        .collect()
}

fn sets_password(spec: &Spec, operation: &Operation) -> bool {
    spec.contains_key("password") && operation.touches("password")
}
