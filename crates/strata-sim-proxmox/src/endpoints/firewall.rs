//! Firewalls of the cluster, of nodes and of guests: options, rules, aliases, IP sets, security groups.

mod aliases;
mod groups;
mod ipsets;
mod macros;
mod options;
mod refs;
mod rules;
mod spec;
mod verify;

use serde_json::{Value, json};

use super::index::listing;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Answer, Call, Param, Perm, Route, get, int};
use crate::world::{Firewall, GuestKind, World};

/// Where a firewall is in the API: its base path, and whom it is for.
#[derive(Debug, Clone, Copy)]
pub enum Site {
    Cluster,
    Node,
    Vm,
    Container,
}

impl Site {
    const ALL: [Self; 4] = [Self::Cluster, Self::Node, Self::Vm, Self::Container];
    /// Those that have aliases and IP sets.
    const WITH_SETS: [Self; 3] = [Self::Cluster, Self::Vm, Self::Container];

    fn own(self) -> Vec<Param> {
        match self {
            Self::Cluster => vec![],
            Self::Node => vec![usual::node()],
            Self::Vm | Self::Container => vec![usual::node(), usual::vmid()],
        }
    }

    fn with(self, more: impl IntoIterator<Item = Param>) -> Vec<Param> {
        self.own().into_iter().chain(more).collect()
    }

    fn look(self) -> Perm {
        match self {
            Self::Cluster => on("/", &["Sys.Audit"]),
            Self::Node => on("/nodes/{node}", &["Sys.Audit"]),
            Self::Vm | Self::Container => on("/vms/{vmid}", &["VM.Audit"]),
        }
    }

    fn change(self) -> Perm {
        match self {
            Self::Cluster => on("/", &["Sys.Modify"]),
            Self::Node => on("/nodes/{node}", &["Sys.Modify"]),
            Self::Vm | Self::Container => on("/vms/{vmid}", &["VM.Config.Network"]),
        }
    }

    /// The path of a part. Routes live as long as the program, and so do their paths.
    fn path(self, part: &str) -> &'static str {
        let base = match self {
            Self::Cluster => "/cluster/firewall",
            Self::Node => "/nodes/{node}/firewall",
            Self::Vm => "/nodes/{node}/qemu/{vmid}/firewall",
            Self::Container => "/nodes/{node}/lxc/{vmid}/firewall",
        };
        Box::leak(format!("{base}{part}").into_boxed_str())
    }
}

pub fn routes() -> Vec<Route> {
    let log = || ["start", "limit", "since", "until"].map(|name| int(name).min(0.0).opt());
    let console = on("/vms/{vmid}", &["VM.Console"]);
    let mut routes = vec![
        get("/cluster/firewall", Perm::Anyone, vec![], |_| {
            listing("name", &["aliases", "rules", "options", "groups", "ipset", "macros", "refs"])
        }),
        get(Site::Node.path(""), Perm::Anyone, Site::Node.own(), |_| {
            listing("name", &["rules", "options", "log"])
        }),
        get(Site::Node.path("/log"), on("/nodes/{node}", &["Sys.Syslog"]), Site::Node.with(log()), |_| {
            Ok(no_log())
        }),
    ];
    for site in [Site::Vm, Site::Container] {
        routes.push(get(site.path(""), Perm::Anyone, site.own(), |_| {
            listing("name", &["rules", "aliases", "ipset", "refs", "options"])
        }));
        routes.push(get(site.path("/log"), console.clone(), site.with(log()), |_| Ok(no_log())));
    }
    routes.extend(macros::routes());
    routes.extend(groups::routes());
    for site in Site::ALL {
        routes.extend(options::routes(site));
        routes.extend(rules::routes(site));
    }
    for site in Site::WITH_SETS {
        routes.extend(aliases::routes(site));
        routes.extend(ipsets::routes(site));
        routes.push(refs::route(site));
    }
    routes
}

/// Nothing is ever dropped here.
fn no_log() -> Answer {
    Answer { data: json!([{ "n": 1, "t": "no content" }]), total: Some(1), ..Answer::default() }
}

/// The firewall that a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Node(String),
    Guest(u32),
}

impl Scope {
    pub fn of(call: &Call<'_>) -> Self {
        if call.args.has("vmid") {
            Self::Guest(call.vmid())
        } else if call.args.has("node") {
            Self::Node(call.node())
        } else {
            Self::Cluster
        }
    }

    fn key(&self) -> String {
        match self {
            Self::Cluster => "cluster".to_owned(),
            Self::Node(name) => format!("node/{name}"),
            Self::Guest(vmid) => format!("guest/{vmid}"),
        }
    }

    /// What rules of this scope call it.
    pub fn environment(&self, world: &World) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Node(_) => "host",
            Self::Guest(vmid) => match world.guests.get(vmid).map(|guest| guest.kind) {
                Some(GuestKind::Lxc) => "ct",
                _ => "vm",
            },
        }
    }
}

impl World {
    /// A firewall; one that nobody touched is empty.
    pub fn firewall_of(&self, scope: &Scope) -> Firewall {
        self.firewall.get(&scope.key()).cloned().unwrap_or_default()
    }

    /// Keeps a firewall, unless there is nothing in it.
    pub fn keep_firewall(&mut self, scope: &Scope, firewall: Firewall) {
        if firewall == Firewall::default() {
            self.firewall.remove(&scope.key());
        } else {
            self.firewall.insert(scope.key(), firewall);
        }
    }
}

/// The digest of a list or map of texts.
fn digest_of(value: &Value) -> String {
    crate::world::made_up::sha1_hex(&value.to_string())
}
