//! What a plan has to say about an operation besides its changes.

use strata_engine::{Finding, Operation};
use strata_state::Action;

use super::{firewall, network, token};
use crate::kinds;

pub(crate) fn remarks(operation: &Operation) -> Option<Finding> {
    let spec = &operation.spec;
    let remark = match (operation.address.kind(), operation.action) {
        (kinds::STORAGE, Action::Delete) => {
            "only its definition goes, with its password and what others may do there: what is stored stays where it is"
        }
        (kinds::TOKEN, Action::Create) if !spec.contains_key("secret") => {
            "nobody gets to know its value: `secret: NAME` keeps it, encrypted"
        }
        (kinds::TOKEN, _) if token::is_remade(operation) => {
            "it is made anew: whoever uses its old value is locked out"
        }
        (kinds::FIREWALL, _) if locks_out(operation) => {
            "the hosts then drop what no rule lets in, except from their own network"
        }
        (kinds::NETWORK, _) => return Some(Finding::remark(operation, network::remark(operation))),
        _ => return None,
    };
    Some(Finding::remark(operation, remark))
}

/// The firewall begins to filter what comes to the hosts, or does so in another way.
fn locks_out(operation: &Operation) -> bool {
    let begins = operation.action != Action::Update || operation.touches("options");
    begins && firewall::keeps_out(operation)
}
