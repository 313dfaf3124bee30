//! Named sets of rules, in the firewall.

use std::collections::BTreeMap;

use async_trait::async_trait;
use strata_engine::Operation;
use strata_resource::{KindTable, Value, kind};
use strata_state::Action;

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED, MAY_LOCK_OUT};
use crate::datacenter::{Family, NamedList, row_text, rule_call, rules_of};
use crate::firewall::LiveFirewall;
use crate::preflight::Needs;

kind! {
    /// A named set of rules, in the firewall.
    "securitygroup" {
        called: "security group {security_group}",
        identity: &["security_group"],
        proof: MARK_IN_COMMENT,
        digest_on: "rules",
        shares: &[MARKED, MAY_LOCK_OUT],
        ..DATACENTER
    }
    /// its name
    "security_group": Text => InPlace [remote("group")];
    /// rules in their order
    "rules": List => InPlace;
}

pub(super) struct SecurityGroup;

#[async_trait]
impl ManagedKind for SecurityGroup {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    fn family(&self) -> Option<&'static dyn Family> {
        Some(&ITEMS)
    }

    fn needs(&self, operation: &Operation, needs: &mut Needs<'_>) {
        needs.datacenter(operation);
    }
}

static ITEMS: NamedList = NamedList {
    word: "security group",
    id: ("security_group", "group"),
    path: "/cluster/firewall/groups",
    read: |live, rows| {
        let rows = rows.into_iter().map(|row| {
            let texts = row
                .iter()
                .filter_map(|(key, _)| Some((key.clone(), crate::api::Scalar(row_text(&row, key)?))));
            texts.collect()
        });
        let rules = LiveFirewall::new(BTreeMap::new(), rows.collect());
        live.file_digest = rules.rules_digest;
        live.spec.insert("rules".to_owned(), Value::List(rules.rules));
    },
    edit: |list, job, live| {
        let wanted = match job.work.operation.action {
            Action::Delete => Vec::new(),
            _ => rules_of(job.spec()).unwrap_or_default(),
        };
        rule_call(job, &list.one(job.spec()), live, &wanted)
    },
    forced: false,
};
