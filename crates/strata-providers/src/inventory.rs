//! The guests and machines of stacks, out of their states and the source.

use strata_inventory::{Inventory, StackState};
use strata_session::{SessionError, Workspace, layer, plannable};

/// Every guest and machine that was applied. Nothing is asked, and no secret is read.
pub async fn inventory(workspace: &Workspace, stacks: &[String]) -> Result<Inventory, SessionError> {
    let mut read = Vec::new();
    for stack in workspace.select(stacks)?.into_iter().filter(|stack| plannable(stack)) {
        let state = workspace.read_state(&stack.name).await?.document;
        // An ISO can carry an address that no spec says.
        let written = workspace.written_addresses(stack)?;
        read.push((stack, state, written));
    }
    let states = read.iter().map(|(stack, state, written)| StackState {
        stack: &stack.name,
        environment: &stack.environment,
        layer: layer(stack),
        state,
        written,
    });
    Ok(Inventory::of(&states.collect::<Vec<_>>()))
}
