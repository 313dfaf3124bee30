//! Stories of what `hypervisors/` describes.

use super::{Layer, Source, Story, edited};
use crate::layer0::{DATACENTER, changed};

fn fewer() -> String {
    edited(
        DATACENTER,
        &[
            ("  web/dev: {}\n", ""),
            ("  ann@pve!other: {privilegeSeparation: false, expire: 1999999999}\n", ""),
            ("  - {path: /, role: PVEAuditor, user: ann@pve, propagate: false}\n", ""),
            (
                "  media: {type: nfs, server: 192.0.2.31, export: /media, content: [iso, vztmpl], options: {prune-backups: keep-last=3}}\n",
                "",
            ),
            ("  usb:\n    key: {devices: [{node: pve2, id: \"1050:0407\"}]}\n", ""),
            ("  vmbr5.50: {address: 10.50.0.1/24, nodes: [pve1]}\n", ""),
            ("    - {direction: group, action: web}\n", ""),
            (
                "  groups:\n    web: {comment: for the web, rules: [{direction: in, action: ACCEPT, protocol: tcp, destinationPort: \"80,443\"}]}\n",
                "",
            ),
        ],
    )
}

pub(crate) fn stories() -> Vec<Story> {
    let story = |name, first: Option<&str>, begun, then| Story {
        name,
        layer: Layer::Datacenter,
        first: first.map(str::to_owned),
        begun,
        then,
    };
    let (all, whole) = (Some(DATACENTER), || Source::text(DATACENTER));
    vec![
        story("a datacenter made, then partly removed", None, whole(), Source::Text(fewer())),
        story("a datacenter changed, then put back", all, Source::Text(changed()), whole()),
        story("a datacenter destroyed, then made again", all, Source::Destroyed, whole()),
        story("a datacenter made, then removed", None, whole(), Source::Removed),
        story("a datacenter partly removed, then kept", all, Source::Text(fewer()), whole()),
        story("a datacenter changed, then destroyed", all, Source::Text(changed()), Source::Destroyed),
    ]
}
