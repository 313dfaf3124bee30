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
use super::sdn::ids;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Answer, Call, Param, Perm, Refusal, Route, get, int, no};
use crate::world::{Firewall, GuestKind, World};

/// Where a firewall is in the API: its base path, and whom it is for.
#[derive(Debug, Clone, Copy)]
pub enum Site {
    Cluster,
    Node,
    Vm,
    Container,
    Vnet,
}

impl Site {
    const ALL: [Self; 5] = [Self::Cluster, Self::Node, Self::Vm, Self::Container, Self::Vnet];
    /// Those that have aliases and IP sets.
    const WITH_SETS: [Self; 3] = [Self::Cluster, Self::Vm, Self::Container];

    fn own(self) -> Vec<Param> {
        match self {
            Self::Cluster => vec![],
            Self::Node => vec![usual::node()],
            Self::Vm | Self::Container => vec![usual::node(), usual::vmid()],
            Self::Vnet => vec![ids::vnet()],
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
            Self::Vnet => Perm::Anyone,
        }
    }

    fn change(self) -> Perm {
        match self {
            Self::Cluster => on("/", &["Sys.Modify"]),
            Self::Node => on("/nodes/{node}", &["Sys.Modify"]),
            Self::Vm | Self::Container => on("/vms/{vmid}", &["VM.Config.Network"]),
            Self::Vnet => Perm::Anyone,
        }
    }

    /// The path of a part. Routes live as long as the program, and so do their paths.
    fn path(self, part: &str) -> &'static str {
        let base = match self {
            Self::Cluster => "/cluster/firewall",
            Self::Node => "/nodes/{node}/firewall",
            Self::Vm => "/nodes/{node}/qemu/{vmid}/firewall",
            Self::Container => "/nodes/{node}/lxc/{vmid}/firewall",
            Self::Vnet => "/cluster/sdn/vnets/{vnet}/firewall",
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
        routes.push(get(site.path("/log"), console.clone(), site.with(log()), |_| Ok(no_file())));
    }
    routes.push(get(Site::Vnet.path(""), Perm::Root, Site::Vnet.own(), |_| {
        listing("name", &["rules", "options"])
    }));
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

/// A guest that never dropped anything has no log yet.
fn no_file() -> Answer {
    let text = "unable to open file - No such file or directory";
    Answer { data: json!([{ "n": 1, "t": text }]), total: Some(1), ..Answer::default() }
}

/// Nothing is ever dropped here.
fn no_log() -> Answer {
    Answer { data: json!([{ "n": 1, "t": "no content" }]), total: Some(1), ..Answer::default() }
}

/// Only a network that runs has a firewall, and its zone decides who may look at it or change it.
fn check_vnet(call: &Call<'_>, privs: &[&str]) -> Result<(), Refusal> {
    let Some(id) = call.args.text("vnet") else { return Ok(()) };
    let Some(vnet) = call.world.cluster.section("sdn/running/vnets", id) else {
        let source = "at /usr/share/perl5/PVE/API2/Firewall/Helpers.pm line 37.";
        return Err(no(format!("invalid vnet specified {source}")));
    };
    let zone = vnet.props.get("zone").map_or("", String::as_str);
    call.check_any(&format!("/sdn/zones/{zone}/{id}"), privs)
}

fn may_look(call: &Call<'_>) -> Result<(), Refusal> {
    check_vnet(call, &["SDN.Audit", "SDN.Allocate"])
}

fn may_change(call: &Call<'_>) -> Result<(), Refusal> {
    check_vnet(call, &["SDN.Allocate"])
}

/// The firewall that a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Node(String),
    Guest(u32),
    Vnet(String),
}

impl Scope {
    pub fn of(call: &Call<'_>) -> Self {
        if let Some(vnet) = call.args.owned("vnet") {
            Self::Vnet(vnet)
        } else if call.args.has("vmid") {
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
            Self::Vnet(id) => format!("vnet/{id}"),
        }
    }

    /// What rules of this scope call it.
    pub fn environment(&self, world: &World) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Node(_) => "host",
            Self::Vnet(_) => "vnet",
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
