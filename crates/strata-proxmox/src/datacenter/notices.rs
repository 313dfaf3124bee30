//! What a plan has to say about an operation besides its changes.

use strata_engine::Operation;
use strata_resource::{Kind, Value};
use strata_state::Action;

use super::{network, token};

pub(crate) fn notices(operation: &Operation) -> Vec<String> {
    let mut notices: Vec<&str> = Vec::new();
    let spec = &operation.spec;
    match (operation.address.kind(), operation.action) {
        (Kind::Storage, Action::Delete) => {
            notices.push("only its definition goes: what is stored there stays where it is");
        }
        (Kind::Token, Action::Create) if !spec.contains_key("secret") => {
            notices.push("nobody gets to know its value: `secret: NAME` keeps it, encrypted");
        }
        (Kind::Token, _) if token::is_remade(operation) => {
            notices.push("it is made anew: whoever uses its old value is locked out");
        }
        (Kind::Firewall, Action::Create | Action::Update) if locks_out(operation) => {
            notices.push("the hosts then drop what no rule lets in, except from their own network");
        }
        (Kind::Network, _) => return vec![network::notice(operation)],
        _ => {}
    }
    notices.into_iter().map(str::to_owned).collect()
}

/// The firewall begins to filter what comes to the hosts.
fn locks_out(operation: &Operation) -> bool {
    let option = |name: &str| operation.spec.get("options")?.as_map()?.get(name);
    let on = option("enable").and_then(Value::as_bool) == Some(true);
    let drops = option("policy_in").and_then(Value::as_text).is_none_or(|policy| policy != "ACCEPT");
    let begins = operation.action == Action::Create
        || operation.changes.iter().any(|change| change.path.starts_with(&["options"]));
    on && drops && begins
}
