//! The privileges that a token needs for everything that stacks can come to.

use strata_engine::{Action, Operation};
use strata_resource::{Address, Resource, Spec, diff_specs};
use strata_session::StackSession;

/// Everything that Proxmox can be asked for these stacks: made from nothing, brought from what the state knows to what the source says,
/// destroyed. All at once: where one of several privileges is enough, one that another stack needs anyway costs nothing.
pub fn required_role(sessions: &[StackSession]) -> Vec<String> {
    let operations: Vec<Operation> = sessions.iter().flat_map(whole_life).collect();
    let unwritten = |session: &StackSession| {
        let asked = session.unwritten().iter().filter_map(|address| session.view().graph.get(address));
        asked.into_iter().any(|resource| strata_proxmox::has_agent(&resource.spec))
    };
    let privileges = strata_proxmox::required_role(&operations, sessions.iter().any(unwritten));
    privileges.iter().map(|privilege| privilege.as_str().to_owned()).collect()
}

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
