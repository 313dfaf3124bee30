//! Stories of a stack with one of everything.

use super::{Layer, Source, Story, edited, without};
use crate::world::STACK;

fn story(name: &'static str, first: Option<&str>, begun: Source, then: Source) -> Story {
    Story { name, layer: Layer::Guests, first: first.map(str::to_owned), begun, then }
}

fn fewer() -> String {
    let fewer = without(&without(STACK, "  own:\n", "  rescue:\n"), "containers:\n", "outputs:\n");
    edited(&fewer, &[("    count: 2\n", "    count: 1\n")])
}

/// Creates and updates.
pub(crate) fn changes() -> Vec<Story> {
    let more = edited(
        STACK,
        &[
            ("    cores: 2\n    memory: 4096\n", "    cores: 4\n    memory: 6144\n    notes: more\n"),
            ("size: 20}, scsi1: {storage: tank, size: 5}}", "size: 24}, scsi1: {storage: tank, size: 6}}"),
            (
                "gateway: 192.0.2.1}]\n    cloudInit",
                "gateway: 192.0.2.1}, {bridge: vmbr1, vlan: 7}]\n    cloudInit",
            ),
            (
                "destinationPort: \"443\"}]",
                "destinationPort: \"443\"}, {direction: in, action: DROP, protocol: udp}]",
            ),
            ("    pool: production\n", ""),
            ("    memory: 256\n", "    memory: 512\n    tags: [dns]\n"),
        ],
    );
    // Disks only grow, and a removed one is kept as unused; everything else goes back.
    let back = edited(
        STACK,
        &[("size: 20}, scsi1: {storage: tank, size: 5}}", "size: 24}, scsi1: {storage: tank, size: 6}}")],
    );
    vec![
        story("made, then partly removed", None, Source::text(STACK), Source::Text(fewer())),
        story("made, then destroyed", None, Source::text(STACK), Source::Destroyed),
        story("changed, then put back", Some(STACK), Source::Text(more), Source::Text(back)),
    ]
}

/// What goes wrong while something is removed.
pub(crate) fn removals() -> Vec<Story> {
    let whole = || Source::text(STACK);
    vec![
        story("destroyed, then made again", Some(STACK), Source::Destroyed, whole()),
        story("partly removed, then kept", Some(STACK), Source::Text(fewer()), whole()),
        story("destroyed, then removed", Some(STACK), Source::Destroyed, Source::Removed),
        story("partly removed, then destroyed", Some(STACK), Source::Text(fewer()), Source::Destroyed),
        story("removed, then back again", Some(STACK), Source::Removed, whole()),
    ]
}

/// Replaced guests, and templates with other images.
pub(crate) fn images() -> Vec<Story> {
    let recreate = edited(STACK, &[("    tags: [app]\n", "    tags: [app]\n    onChange: recreate\n")]);
    let replaced = edited(&recreate, &[("{user: debian, password", "{user: admin, password")]);
    let others = edited(
        STACK,
        &[
            ("debian-12-genericcloud", "debian-13-genericcloud"),
            ("rescue.iso", "rescue-2.iso"),
            ("userData: \"own.yaml\"", "userData: \"other.yaml\""),
        ],
    );
    vec![
        story("replaced, then put back", Some(&recreate), Source::text(&replaced), Source::text(&recreate)),
        story("replaced, then destroyed", Some(&recreate), Source::Text(replaced), Source::Destroyed),
        story("other images, then the old ones", Some(STACK), Source::text(&others), Source::text(STACK)),
        story("other images, then removed", Some(STACK), Source::Text(others), Source::Removed),
    ]
}
