//! The firewall of the whole datacenter: its options and rules.
//!
//! There is always one. It is ours only if there was nothing in it, or if the source says `adopt`.

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Spec, Value, kind};
use strata_state::Action;

use super::managed::ManagedKind;
use super::shared::{ADOPT, DATACENTER, MAY_LOCK_OUT};
use crate::datacenter::{Family, LiveObject, RuleSet, is_begun, option_after};
use crate::preflight::Needs;

kind! {
    /// The firewall of the whole datacenter: options and rules.
    "firewall" {
        called: "firewall of the datacenter",
        identity: &["firewall"],
        proof: "the state, `adopt`, or nothing was in it",
        recovery: "managed if nothing is in it but what was begun",
        digest_on: "rules",
        shares: &[ADOPT, MAY_LOCK_OUT],
        ..DATACENTER
    }
    /// `datacenter`
    "firewall": Text => InPlace;
    /// it is on
    "options.enable": Bool => InPlace [remote("enable"), off_by_default];
    /// what happens to incoming traffic that no rule speaks of
    "options.policy_in": Text => InPlace [remote("policy_in"), default_text("DROP")];
    /// what happens to outgoing traffic that no rule speaks of
    "options.policy_out": Text => InPlace [remote("policy_out"), default_text("ACCEPT")];
    /// rules in their order
    "rules": List => InPlace;
}

static RULES: RuleSet = RuleSet { word: "firewall of the", table: &TABLE, single: Some("datacenter"), opens };

pub(super) struct Firewall;

#[async_trait]
impl ManagedKind for Firewall {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&RULES)
    }

    fn is_on_the_way(&self, begun: &Spec, live: &LiveObject) -> bool {
        is_begun(begun, live)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.datacenter(operation);
    }

    /// The firewall begins to filter what comes to the hosts, or does so in another way.
    fn remark(&self, operation: &Operation) -> Option<String> {
        let begins = operation.action != Action::Update || operation.touches("options");
        let remark = "the hosts then drop what no rule lets in, except from their own network";
        (begins && keeps_out(operation)).then(|| remark.to_owned())
    }
}

fn opens(option: &str, value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(on)) => !on,
        Some(Value::Text(policy)) => policy == "ACCEPT",
        _ => option != "policy_in",
    }
}

/// Whether the hosts drop what no rule lets in, if an operation is done.
fn keeps_out(operation: &Operation) -> bool {
    let on = option_after(operation, "enable").as_ref().and_then(Value::as_bool) == Some(true);
    on && !opens("policy_in", option_after(operation, "policy_in").as_ref())
}
