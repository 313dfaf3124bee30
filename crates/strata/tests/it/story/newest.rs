//! Stories of what is staged, done later by managers, or kept by services of the datacenter: networks, high availability, realms, options.

use super::{Layer, Source, Story, edited, without};
use crate::high_availability;
use crate::layer0::{ACME, HOSTS, REALMS, SDN, SERVICES};

/// What a part of the source says whole, with less, and otherwise.
struct Part {
    names: [&'static str; 4],
    layer: Layer,
    whole: String,
    fewer: String,
    changed: String,
}

fn networks() -> Part {
    let fewer = edited(
        SDN,
        &[
            ("    routed: {type: evpn, controller: core, vrfVxlan: 10000, exitNodes: [pve1]}\n", ""),
            ("    back: {zone: tunnel, tag: 5000, isolatePorts: true}\n", ""),
            (", 10.66.0.70-10.66.0.80]", "]"),
        ],
    );
    let changed = edited(
        SDN,
        &[
            ("mtu: 1400", "mtu: 1500"),
            ("exitNodes: [pve1]", "advertiseSubnets: true"),
            ("alias: web servers", "alias: servers"),
            ("snat: true, ", ""),
            ("asn: 65000", "asn: 65001"),
            ("    back: {zone: tunnel, tag: 5000", "    other: {zone: tunnel, tag: 5000"),
        ],
    );
    let names = [
        "networks made, then partly removed",
        "networks changed, then put back",
        "networks destroyed, then made again",
        "networks partly removed, then destroyed",
    ];
    Part { names, layer: Layer::Datacenter, whole: SDN.to_owned(), fewer, changed }
}

fn services() -> Part {
    let fewer = edited(
        SERVICES,
        &[
            ("  keyboard: de\n", ""),
            ("  graphs: {type: graphite, server: 192.0.2.41, port: 2003, enabled: false}\n", ""),
            ("targets: [ops, chat]", "targets: [ops]"),
        ],
    );
    let fewer = without(&fewer, "    chat: ", "    phone: ");
    let changed = edited(
        SERVICES,
        &[
            ("keyboard: de", "keyboard: fr"),
            ("shape: full, colors: {prod: ff0000}", "shape: dense"),
            ("protocol: https, bucket: pve", "protocol: http, organization: lab"),
            ("port: 2003, enabled: false", "port: 2004"),
            (", comment: for ops", ", author: Proxmox"),
            ("headers: {Content-Type: application/json}", "headers: {X-One: one}, method: put"),
            ("users: [root@pam]", "to: [root@example.test], enabled: false"),
            ("severities: [error, warning]", "severities: [error], mode: any, invert: true"),
        ],
    );
    let names = [
        "services made, then partly removed",
        "services changed, then put back",
        "services destroyed, then made again",
        "services partly removed, then destroyed",
    ];
    Part { names, layer: Layer::Datacenter, whole: SERVICES.to_owned(), fewer, changed }
}

fn realms() -> Part {
    let fewer = without(REALMS, "  sso: ", "users:");
    let changed = edited(
        REALMS,
        &[
            ("mode: ldaps, verify: true", "mode: ldap+starttls, port: 1389"),
            (", comment: everybody", ", filter: \"(mail=*)\""),
            ("clientId: pve", "clientId: other, scopes: email, autocreate: true"),
            ("  ann@corp: {}", "  ann@corp: {email: ann@example.test}"),
        ],
    );
    let names = [
        "realms made, then partly removed",
        "realms changed, then put back",
        "realms destroyed, then made again",
        "realms partly removed, then destroyed",
    ];
    Part { names, layer: Layer::Datacenter, whole: REALMS.to_owned(), fewer, changed }
}

fn hosts() -> Part {
    let fewer = edited(
        HOSTS,
        &[
            ("    startDelay: 30\n", ""),
            ("      ndp: false\n", ""),
            (
                "        - {direction: in, action: ACCEPT, protocol: tcp, destinationPort: \"8006\", source: 192.0.2.0/24}\n",
                "",
            ),
        ],
    );
    let changed = edited(
        HOSTS,
        &[
            ("on the left", "on the right"),
            (", interface: vmbr0", ""),
            ("logLevelIn: warning", "logLevelIn: info"),
            ("destinationPort: \"9100\"", "destinationPort: \"9101\""),
            ("[192.0.2.60]", "[192.0.2.61]"),
        ],
    );
    let names = [
        "hosts set, then partly left",
        "hosts changed, then put back",
        "hosts left, then set again",
        "hosts partly left, then left",
    ];
    Part { names, layer: Layer::Datacenter, whole: HOSTS.to_owned(), fewer, changed }
}

fn authorities() -> Part {
    let fewer = edited(
        ACME,
        &[
            ("    spare: {api: hetzner, enabled: false}\n", ""),
            (", {domain: pve.example.test, plugin: zone, alias: proof.example.test}", ""),
        ],
    );
    let changed = edited(
        ACME,
        &[
            ("validationDelay: 60", "validationDelay: 90"),
            ("CF_Token: {env: PBS_PASSWORD}, ", ""),
            ("enabled: false", "nodes: [pve3]"),
            ("pve2.example.test", "other.example.test"),
        ],
    );
    let names = [
        "ACME plugins made, then partly removed",
        "ACME plugins changed, then put back",
        "ACME plugins destroyed, then made again",
        "ACME plugins partly removed, then destroyed",
    ];
    Part { names, layer: Layer::Datacenter, whole: ACME.to_owned(), fewer, changed }
}

fn managed() -> Part {
    let whole = high_availability::STACK;
    let fewer = edited(
        whole,
        &[
            ("    replication: [{target: pve3, schedule: \"*/30\", rate: 10}]\n", ""),
            ("  here: {guests: [vms.web], nodes: [\"pve1:2\", pve2], comment: near the disks}\n", ""),
        ],
    );
    let changed = edited(
        whole,
        &[
            ("maxRestart: 3, comment: the shop", "maxRelocate: 2, failback: false"),
            ("nodes: [\"pve1:2\", pve2], comment: near the disks", "nodes: [pve1, pve2], strict: true"),
            ("schedule: \"*/30\", rate: 10", "enabled: false, comment: later"),
        ],
    );
    let names = [
        "managed guests made, then partly let off",
        "managed guests changed, then put back",
        "managed guests destroyed, then made again",
        "managed guests partly let off, then destroyed",
    ];
    Part { names, layer: Layer::Guests, whole: whole.to_owned(), fewer, changed }
}

pub(crate) fn stories() -> Vec<Story> {
    [networks(), services(), realms(), hosts(), authorities(), managed()]
        .into_iter()
        .flat_map(Part::stories)
        .collect()
}

impl Part {
    fn stories(self) -> [Story; 4] {
        let Self { names: [made, altered, destroyed, reduced], layer, whole, fewer, changed } = self;
        let first = Some(whole.clone());
        let (whole, fewer) = (Source::Text(whole), Source::Text(fewer));
        let story = |name, first: &Option<String>, begun: &Source, then: &Source| Story {
            name,
            layer,
            first: first.clone(),
            begun: begun.clone(),
            then: then.clone(),
        };
        [
            story(made, &None, &whole, &fewer),
            story(altered, &first, &Source::Text(changed), &whole),
            story(destroyed, &first, &Source::Destroyed, &whole),
            story(reduced, &first, &fewer, &Source::Destroyed),
        ]
    }
}
