//! Clusters: networks that have room and do not overlap, and names, labels and taints that Kubernetes takes.

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::Map;

use crate::cluster::Cluster;
use crate::cluster::topology::NodeSettings;
use crate::repository::Repository;
use crate::value::address::Cidr;

/// What Talos takes where nobody says otherwise.
const PODS: &str = "10.244.0.0/16";
const SERVICES: &str = "10.96.0.0/12";
/// The network of pods that each node gets.
const OF_NODE: (u8, u8) = (24, 64);
/// Services need the addresses of the API and of the DNS server, the tenth.
const SMALLEST_SERVICES: (u8, u8) = (28, 124);
const LONGEST_NAME: usize = 63;

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    for stack in repository.effective() {
        let Some(cluster) = stack.cluster() else { continue };
        // What is wrong with the topology itself is reported where the guests are collected.
        let machines = cluster.machines(&stack.name, &mut Diagnostics::new());
        networks(cluster, machines.len(), diagnostics);
        domain(cluster, diagnostics);
        for machine in &machines {
            if !is_label(&machine.name) {
                let message =
                    format!("`{}` cannot be the name of a node: Kubernetes takes a DNS label", machine.name);
                let hint = "lower-case letters, digits and `-`, not at either end, at most 63; `naming` and `clusterName` make it up";
                diagnostics.push(Diagnostic::error("invalid-name", message).at(machine.span).hint(hint));
            }
        }
        for settings in all_settings(cluster) {
            marks(settings, diagnostics);
        }
    }
}

/// A network of the cluster, as it is written or as Talos has it.
struct Network {
    what: &'static str,
    cidr: Cidr,
    written: Option<Span>,
}

fn networks(cluster: &Cluster, nodes: usize, diagnostics: &mut Diagnostics) {
    let kubernetes = cluster.cluster.kubernetes.as_ref();
    let usual = |text: &str| text.parse::<Cidr>().ok();
    let network = |what, written: Option<&strata_yaml::Spanned<Cidr>>, default: &str| {
        let cidr = written.map(|cidr| cidr.value).or_else(|| usual(default))?;
        Some(Network { what, cidr, written: written.map(|cidr| cidr.span) })
    };
    let pods = network("pods", kubernetes.and_then(|own| own.pod_cidr.as_ref()), PODS);
    let services = network("services", kubernetes.and_then(|own| own.service_cidr.as_ref()), SERVICES);
    let own = cluster.cluster.network.as_ref().map(|network| &network.cidr);
    let own = own.map(|cidr| Network { what: "machines", cidr: cidr.value, written: Some(cidr.span) });
    let all: Vec<&Network> = pods.iter().chain(&services).chain(&own).collect();
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            diagnostics.extend(overlap(one, other));
        }
    }
    diagnostics.extend(pods.as_ref().and_then(|pods| too_few_pods(pods, nodes)));
    diagnostics.extend(services.as_ref().and_then(too_few_services));
}

fn overlap(one: &Network, other: &Network) -> Option<Diagnostic> {
    let clash = one.cidr.contains(other.cidr.address) || other.cidr.contains(one.cidr.address);
    let at = other.written.or(one.written).filter(|_| clash)?;
    let message = format!(
        "the network of {}, `{}`, overlaps with the network of {}, `{}`",
        other.what, other.cidr, one.what, one.cidr
    );
    let problem = Diagnostic::error("overlapping-networks", message).at(at);
    let problem = match one.written.filter(|span| *span != at) {
        Some(span) => problem.also(span, format!("the network of {}", one.what)),
        None => problem,
    };
    let unwritten = [one, other].into_iter().find(|network| network.written.is_none());
    Some(match unwritten {
        Some(usual) => {
            let key = if usual.what == "pods" { "podCidr" } else { "serviceCidr" };
            problem.hint(format!(
                "`{}` is what Talos takes; give the cluster another `kubernetes.{key}`",
                usual.cidr
            ))
        }
        None => {
            problem.hint("packets to one of them would never leave; choose networks that nobody else has")
        }
    })
}

fn of_family(cidr: Cidr, (v4, v6): (u8, u8)) -> u8 {
    if cidr.address.is_ipv4() { v4 } else { v6 }
}

fn too_few_pods(pods: &Network, nodes: usize) -> Option<Diagnostic> {
    let each = of_family(pods.cidr, OF_NODE);
    let room =
        each.checked_sub(pods.cidr.prefix).map(|bits| 1_u128.checked_shl(bits.into()).unwrap_or(u128::MAX));
    let message = match room {
        Some(room) if room >= nodes as u128 => return None,
        Some(room) => {
            let room = if room == 1 { "one node".to_owned() } else { format!("{room} nodes") };
            format!("`{}` has room for the pods of {room}, and the cluster has {nodes}", pods.cidr)
        }
        None => format!("`{}` is too small for the pods of one node, which get a /{each}", pods.cidr),
    };
    let problem = Diagnostic::error("small-network", message).at(pods.written?);
    Some(
        problem.hint(format!(
            "each node gets a /{each} of it; a running cluster cannot change it, so leave room"
        )),
    )
}

fn too_few_services(services: &Network) -> Option<Diagnostic> {
    let smallest = of_family(services.cidr, SMALLEST_SERVICES);
    if services.cidr.prefix <= smallest {
        return None;
    }
    let message =
        format!("`{}` is too small for services: the DNS server has the tenth address", services.cidr);
    let problem = Diagnostic::error("small-network", message).at(services.written?);
    Some(
        problem.hint(format!(
            "a /{smallest} is the smallest; a running cluster cannot change it, so leave room"
        )),
    )
}

fn domain(cluster: &Cluster, diagnostics: &mut Diagnostics) {
    let Some(kubernetes) = &cluster.cluster.kubernetes else { return };
    let Some(domain) = &kubernetes.dns_domain else { return };
    if domain.len() > 253 || !domain.split('.').all(is_label) {
        let message = format!("`{domain}` is no DNS domain");
        let problem = Diagnostic::error("invalid-name", message).at(kubernetes.places.value("dnsDomain"));
        diagnostics.push(problem.hint("write labels with dots between: `cluster.local`"));
    }
}

fn all_settings(cluster: &Cluster) -> impl Iterator<Item = &NodeSettings> {
    let topology = cluster.cluster.topology.as_ref();
    let pools = topology.into_iter().flat_map(|topology| {
        let named = topology.pools.iter().map(|named| &named.pool);
        topology.control_plane.iter().chain(&topology.workers).chain(named)
    });
    let nodes = cluster.cluster.nodes.iter().map(|(_, node)| &node.settings);
    pools.map(|pool| &pool.settings).chain(nodes)
}

/// Labels, annotations and taints of nodes.
fn marks(settings: &NodeSettings, diagnostics: &mut Diagnostics) {
    let keys = |what: &str, map: &Map<String>, diagnostics: &mut Diagnostics| {
        for (key, _) in map.iter().filter(|(key, _)| !is_key(key)) {
            let message = format!("`{key}` cannot be the key of a {what}");
            let hint = "letters, digits, `-`, `_` and `.`, at most 63, with a DNS name and `/` before them or not: `example.com/zone`";
            diagnostics.push(Diagnostic::error("invalid-name", message).at(key.span).hint(hint));
        }
    };
    keys("label", &settings.labels, diagnostics);
    keys("annotation", &settings.annotations, diagnostics);
    keys("taint", &settings.taints, diagnostics);
    for (key, value) in settings.labels.iter().filter(|(_, value)| !is_value(value)) {
        let message = format!("`{value}` cannot be the value of the label `{key}`");
        let hint = "letters, digits, `-`, `_` and `.`, at most 63, or nothing";
        diagnostics.push(Diagnostic::error("invalid-value", message).at(key.span).hint(hint));
    }
    for (key, taint) in &settings.taints {
        let (value, effect) = taint.rsplit_once(':').unwrap_or(("", taint));
        if !matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute") || !is_value(value) {
            let message = format!("`{taint}` is no effect of the taint `{key}`");
            let hint = "write `NoSchedule`, `PreferNoSchedule` or `NoExecute`, with a value before it or not: `gpu:NoSchedule`";
            diagnostics.push(Diagnostic::error("invalid-value", message).at(key.span).hint(hint));
        }
    }
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= LONGEST_NAME
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The part of a key after the slash.
fn is_word(text: &str) -> bool {
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= LONGEST_NAME
        && text.bytes().all(inner)
        && edge(text.bytes().next())
        && edge(text.bytes().next_back())
}

fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => prefix.len() <= 253 && prefix.split('.').all(is_label) && is_word(name),
        None => is_word(text),
    }
}

fn is_value(text: &str) -> bool {
    text.is_empty() || is_word(text)
}
