//! Named sets of addresses, in the firewall.

use async_trait::async_trait;
use http::Method;
use strata_engine::Operation;
use strata_resource::{KindTable, Spec, Value, kind};
use strata_state::Action;

use super::managed::ManagedKind;
use super::shared::{DATACENTER, MARK_IN_COMMENT, MARKED, MAY_LOCK_OUT};
use crate::api::{Params, encode_path_part};
use crate::datacenter::{Family, Job, LiveObject, NamedList, Row, row_text, spec_text};
use crate::execute::Call;
use crate::preflight::Needs;

kind! {
    /// A named set of addresses, in the firewall.
    "ipset" {
        called: "IP set {ipset}",
        identity: &["ipset"],
        proof: MARK_IN_COMMENT,
        shares: &[MARKED, MAY_LOCK_OUT],
        ..DATACENTER
    }
    /// its name
    "ipset": Text => InPlace [remote("name")];
    /// what is in it
    "addresses": List => InPlace [remote("cidr, nomatch"), set];
}

pub(super) struct IpSet;

#[async_trait]
impl ManagedKind for IpSet {
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
    word: "IP set",
    id: ("ipset", "name"),
    path: "/cluster/firewall/ipset",
    read: |live, rows| {
        let mut addresses: Vec<String> = rows.iter().filter_map(address_of).collect();
        addresses.sort();
        live.spec
            .insert("addresses".to_owned(), Value::List(addresses.into_iter().map(Value::Text).collect()));
        let commented =
            rows.iter().filter(|row| row_text(row, "comment").is_some_and(|text| !text.is_empty()));
        live.unread.extend(commented.filter_map(address_of).map(|address| format!("comment of {address}")));
    },
    edit: edit_addresses,
    forced: true,
};

/// `10.0.0.0/8`, or `!10.1.2.3` for what the set leaves out.
fn address_of(row: &Row) -> Option<String> {
    let cidr = row_text(row, "cidr")?;
    let left_out = row_text(row, "nomatch").is_some_and(|nomatch| nomatch == "1");
    Some(if left_out { format!("!{cidr}") } else { cidr })
}

/// First what is missing, then what is too much.
fn edit_addresses(list: &NamedList, job: &Job<'_>, live: &LiveObject) -> Option<Call> {
    let texts = |spec: &Spec| -> Vec<String> {
        let items = spec.get("addresses").and_then(Value::as_list).into_iter().flatten();
        items.filter_map(Value::as_text).map(str::to_owned).collect()
    };
    if job.work.operation.action == Action::Delete {
        return None;
    }
    let (wanted, there, one) = (texts(job.spec()), texts(&live.spec), list.one(job.spec()));
    let set = spec_text(job.spec(), "ipset");
    let bare = |address: &str| address.trim_start_matches('!').to_owned();
    // An address is in a set once, as part of it or left out.
    let extra = |address: &&String| !wanted.contains(address);
    let turned =
        there.iter().filter(extra).find(|address| wanted.iter().any(|other| bare(other) == bare(address)));
    let remove = |address: &String| {
        let path = format!("{one}/{}", encode_path_part(&bare(address)));
        job.work.call(
            Method::DELETE,
            path,
            Params::new(),
            format!("remove `{address}` from the IP set `{set}`"),
        )
    };
    if let Some(address) = turned {
        return Some(remove(address));
    }
    if let Some(address) = wanted.iter().find(|address| !there.contains(address)) {
        let mut params = Params::new().with("cidr", bare(address));
        if address.starts_with('!') {
            params.set("nomatch", 1);
        }
        return Some(job.work.call(
            Method::POST,
            one,
            params,
            format!("put `{address}` into the IP set `{set}`"),
        ));
    }
    there.iter().find(extra).map(remove)
}
