//! The privileges that a token needs for everything that stacks can come to.

use std::collections::BTreeSet;

use strata_engine::{Action, Operation};
use strata_proxmox::Version;
use strata_resource::{Address, Resource, Spec, diff_specs};
use strata_session::StackSession;

use crate::AllProviders;

/// Everything that Proxmox can be asked for these stacks: made from nothing, brought from what the state knows to what the source says,
/// destroyed. All at once: where one of several privileges is enough, one that another stack needs anyway costs nothing.
///
/// The names are those of the servers' version, the newest where none answers or where they differ. With `acts` it is enough for what is done outside of plans, too.
pub async fn required_role(providers: &AllProviders, sessions: &[StackSession], acts: bool) -> Vec<String> {
    let operations: Vec<Operation> = sessions.iter().flat_map(whole_life).collect();
    let connected = providers.proxmox();
    let named: BTreeSet<&str> = operations.iter().map(|operation| operation.target.as_str()).collect();
    let mut newest: Option<Version> = None;
    for provider in named.iter().filter_map(|target| connected.get(*target)) {
        let version = provider.client().version().await.ok();
        newest = newest.into_iter().chain(version).max_by_key(|version| !version.is_before_9());
    }
    let unwritten = |session: &StackSession| {
        let asked = session.unwritten().iter().filter_map(|address| session.view().graph.get(address));
        asked.into_iter().any(|resource| strata_proxmox::has_agent(&resource.spec))
    };
    let asks = sessions.iter().any(unwritten);
    let privileges = strata_proxmox::required_role(&operations, asks, newest.as_ref());
    let mut names: BTreeSet<String> =
        privileges.iter().map(|privilege| privilege.as_str().to_owned()).collect();
    if acts && !names.is_empty() {
        names.extend(ACTS.iter().map(|privilege| (*privilege).to_owned()));
    }
    names.into_iter().collect()
}

/// What backups, snapshots and restores of guests take, and hosts that are emptied, updated and rebooted.
const ACTS: [&str; 12] = [
    "Datastore.AllocateSpace",
    "Datastore.Audit",
    "Sys.Audit",
    "Sys.Modify",
    "Sys.PowerMgmt",
    "VM.Allocate",
    "VM.Audit",
    "VM.Backup",
    "VM.Migrate",
    "VM.PowerMgmt",
    "VM.Snapshot",
    "VM.Snapshot.Rollback",
];

fn whole_life(session: &StackSession) -> Vec<Operation> {
    let (view, state) = (session.view(), &session.state().document);
    let operation = |action, address: &Address, target: &str, spec: &Spec, changes| Operation {
        action,
        address: address.clone(),
        target: target.to_owned(),
        lineage: view.lineage.clone(),
        spec: spec.clone(),
        recorded: None,
        observed: None,
        changes,
        restart: true,
        replacement: false,
        awaited: false,
        payload: None,
    };
    let ours = |address: &Address| strata_proxmox::kinds::is_proxmox(address.kind());
    let mut all = Vec::new();
    for Resource { address, target, spec, .. } in view.graph.iter().filter(|one| ours(&one.address)) {
        let known = state.resources.get(address);
        let changes = known
            .map(|known| diff_specs(address.kind().rules(), spec, Some(&known.spec), &known.spec).changes);
        all.push(operation(Action::Create, address, target, spec, Vec::new()));
        all.push(operation(Action::Update, address, target, spec, changes.unwrap_or_default()));
        all.push(operation(Action::Delete, address, target, spec, Vec::new()));
    }
    let left = state.resources.iter();
    let left = left.filter(|(address, _)| ours(address) && view.graph.get(address).is_none());
    all.extend(
        left.map(|(address, known)| {
            operation(Action::Delete, address, &known.target, &known.spec, Vec::new())
        }),
    );
    all
}
