//! The shape of the tables: which key says which field, how, and what a change of it needs.

use strata_resource::{Kind, Value};

use super::form::Form;
use super::property::PropertyString;
use crate::kinds;

/// The two kinds of guests, which share most of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum GuestKind {
    Qemu,
    Lxc,
}

impl GuestKind {
    pub(crate) fn of(kind: Kind) -> Option<Self> {
        kinds::of(kind)?.guest()
    }

    /// As in paths and listings.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }

    /// As people say.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Qemu => "VM",
            Self::Lxc => "container",
        }
    }

    /// The kind whose field rules apply.
    pub(crate) fn resource_kind(self) -> Kind {
        table(self).kind
    }
}

/// One key of the configuration, or all keys with a prefix and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// `cores`
    Exact(&'static str),
    /// `net` for `net0`, `net1`, …
    Slot(&'static str),
}

impl Key {
    /// `netN` stands for all of them with a number.
    #[doc(hidden)]
    pub const fn of(key: &'static str) -> Self {
        match key.as_bytes() {
            [.., b'N'] => Self::Slot(key.split_at(key.len() - 1).0),
            _ => Self::Exact(key),
        }
    }
}

/// One part of a property string.
#[derive(Debug)]
pub struct Part {
    pub(crate) key: &'static str,
    /// Other names of it, in other versions.
    pub(crate) also: &'static [&'static str],
    pub(crate) field: &'static str,
    pub(crate) form: Form,
}

impl Part {
    /// A part without other names.
    pub const fn new(key: &'static str, field: &'static str, form: Form) -> Self {
        Self { key, also: &[], field, form }
    }

    /// What other versions of the remote call it: what is there keeps its name.
    #[must_use]
    pub const fn also(mut self, names: &'static [&'static str]) -> Self {
        self.also = names;
        self
    }

    /// The name that a text uses for it.
    pub(crate) fn name_in(&self, text: &PropertyString) -> &'static str {
        let used = self.also.iter().find(|name| text.get(name).is_some());
        if text.get(self.key).is_some() { self.key } else { used.copied().unwrap_or(self.key) }
    }

    pub(crate) fn read(&self, text: &PropertyString) -> Option<Value> {
        self.form.read(text.get(self.name_in(text))?)
    }

    pub(crate) fn is(&self, key: &str) -> bool {
        self.key == key || self.also.contains(&key)
    }
}

/// The parts of a property string that a spec has fields for.
#[derive(Debug)]
pub struct Property {
    /// The part that may stand first without its name; empty where each has one.
    pub default_key: &'static str,
    /// In no order: a property string keeps its own.
    pub parts: &'static [Part],
}

/// What a key's text is made of.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// One value: `cores: 2`.
    Value(Form),
    /// A property string: `cpu: host,flags=+aes`.
    Parts(&'static Property),
    /// A network of a VM: the model is the name of the part that holds the MAC.
    QemuNet(&'static Property),
    /// A volume with options: made new, or attached and edited.
    Volume(&'static Property),
    /// A drive of a VM: a disk, a CD-ROM or Proxmox' own cloud-init drive.
    Drive(&'static Property),
    /// Notes and mark.
    Description,
    /// Told by the server, set by a call of its own.
    ReadOnly(Form),
}

/// How one key is written and read.
#[derive(Debug)]
pub struct KeyRule {
    pub(crate) key: Key,
    /// Where in the spec: the field, the map of the parts, or the map of the slots.
    pub(crate) path: &'static [&'static str],
    pub(crate) content: Content,
    /// The privilege on `/vms/<id>` that a change needs.
    pub(crate) privilege: &'static str,
    /// Taken at creation only.
    pub(crate) create_only: bool,
}

impl KeyRule {
    /// A key that needs no privilege of its own.
    pub const fn new(key: Key, path: &'static [&'static str], content: Content) -> Self {
        Self { key, path, content, privilege: "", create_only: false }
    }

    /// A change of it needs this privilege on the guest.
    #[must_use]
    pub const fn needs(mut self, privilege: &'static str) -> Self {
        self.privilege = privilege;
        self
    }

    /// Only the request that makes the guest takes it.
    #[must_use]
    pub const fn at_creation(mut self) -> Self {
        self.create_only = true;
        self
    }

    pub(crate) fn matches(&self, key: &str) -> bool {
        match self.key {
            Key::Exact(name) => name == key,
            Key::Slot(prefix) => key.strip_prefix(prefix).is_some_and(|number| {
                !number.is_empty() && number.len() <= 3 && number.bytes().all(|byte| byte.is_ascii_digit())
            }),
        }
    }
}

/// The keys of a kind of guest. Made with [`crate::keys!`].
#[derive(Debug)]
pub struct Table {
    /// Whose fields they say: its table has types, defaults and what a change of each asks for.
    pub kind: Kind,
    /// The rule that is first to match a key counts.
    pub keys: &'static [KeyRule],
}

impl Table {
    pub(crate) fn rule(&self, key: &str) -> Option<&'static KeyRule> {
        self.keys.iter().find(|rule| rule.matches(key))
    }
}

/// The table of a kind of guest.
pub(crate) fn table(kind: GuestKind) -> &'static Table {
    match kind {
        GuestKind::Qemu => &super::qemu::TABLE,
        GuestKind::Lxc => &super::lxc::TABLE,
    }
}

/// The privilege on the guest that a change of a key needs; none for a key that the table does not have.
pub(crate) fn privilege_of(kind: GuestKind, key: &str) -> Option<&'static str> {
    table(kind).rule(key).map(|rule| rule.privilege)
}

/// Whether only root@pam with a ticket may set a key to this value.
pub(crate) fn is_root_only(kind: GuestKind, key: &str, value: &str) -> bool {
    let slot = |prefix: &'static str| KeyRule::new(Key::Slot(prefix), &[], Content::Description).matches(key);
    let mapped = value.split(',').any(|part| part.starts_with("mapping="));
    match kind {
        GuestKind::Qemu => {
            matches!(key, "args" | "hookscript" | "lock" | "affinity" | "hugepages" | "keephugepages")
                || slot("parallel")
                || (slot("hostpci") && !mapped)
                || (slot("usb")
                    && !mapped
                    && value.split(',').next().is_none_or(|first| first != "spice" && first != "host=spice"))
                || (slot("serial") && value != "socket")
        }
        GuestKind::Lxc => {
            matches!(key, "hookscript" | "lock" | "entrypoint" | "env")
                || slot("dev")
                || (slot("mp") && value.starts_with('/'))
                || (key == "features"
                    && value.split(',').any(|part| !part.starts_with("nesting=") && !part.ends_with("=0")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_a_number() {
        let rule = KeyRule::new(Key::of("netN"), &["networks"], Content::Description);
        assert!(rule.matches("net0") && rule.matches("net31"));
        assert!(!rule.matches("net") && !rule.matches("net1x") && !rule.matches("network0"));
    }

    /// Every field that can be written says what a change of it means: one that does not would change in place, unseen.
    #[test]
    fn a15_every_field_of_a_guest_has_a_rule() {
        crate::kinds::register();
        use strata_resource::{ChangeEffect, FieldPath};
        let mut missing = Vec::new();
        for kind in [GuestKind::Qemu, GuestKind::Lxc] {
            let rules = kind.resource_kind().rules();
            let mut check = |path: &[&str]| {
                let path = path.iter().fold(FieldPath::root(), |path, key| path.child(key));
                let ends = |keys: usize| {
                    let above =
                        path.keys()[..keys].iter().fold(FieldPath::root(), |path, key| path.child(key));
                    matches!(rules.rule(&above).effect, ChangeEffect::CreateOnly | ChangeEffect::Computed)
                };
                if !rules.knows(&path) && !(1..path.keys().len()).any(ends) {
                    missing.push(format!("{kind:?} {path}"));
                }
            };
            for rule in table(kind).keys {
                let slot = match rule.key {
                    Key::Exact(_) => None,
                    Key::Slot(prefix) => Some(format!("{prefix}0")),
                };
                let path: Vec<&str> = rule.path.iter().copied().chain(slot.as_deref()).collect();
                let parts = match rule.content {
                    Content::Value(_) | Content::ReadOnly(_) => {
                        check(&path);
                        continue;
                    }
                    Content::Description => continue,
                    Content::Parts(property) | Content::QemuNet(property) | Content::Volume(property) => {
                        property.parts
                    }
                    // A drive is a disk in most cases; the others have fields of their own.
                    Content::Drive(property) => {
                        let disk = slot.clone().unwrap_or_default();
                        for part in property
                            .parts
                            .iter()
                            .map(|part| part.field)
                            .chain(["size", "storage", "format", "import", "anything"])
                        {
                            check(&["disks", &disk, part]);
                        }
                        continue;
                    }
                };
                for part in parts {
                    check(&[&path[..], &[part.field]].concat());
                }
            }
        }
        assert!(missing.is_empty(), "{missing:#?}");
    }

    /// A field's table and the codec name the same key.
    #[test]
    fn the_tables_of_guests_name_the_keys_of_the_codec() {
        let mut wrong = Vec::new();
        for kind in [GuestKind::Qemu, GuestKind::Lxc] {
            let managed = crate::kinds::all().find(|managed| managed.table().kind() == kind.resource_kind());
            let fields: Vec<_> = managed.unwrap().table().all_fields().collect();
            let mut check = |path: String, key: String| {
                let declared = fields.iter().find(|field| field.path == path);
                wrong.extend(
                    declared
                        .filter(|field| field.remote != key)
                        .map(|field| format!("{path}: `{}`, not `{key}`", field.remote)),
                );
            };
            for rule in table(kind).keys {
                let (key, path) = match rule.key {
                    Key::Exact(key) => (key.to_owned(), rule.path.join(".")),
                    Key::Slot(prefix) => (format!("{prefix}N"), format!("{}.*", rule.path.join("."))),
                };
                match rule.content {
                    Content::Value(_) | Content::ReadOnly(_) => check(path, key),
                    Content::Description => {}
                    // One of several keys: a part is named without it.
                    Content::Drive(property) => {
                        for part in property.parts {
                            check(format!("{path}.{}", part.field), part.key.to_owned());
                        }
                    }
                    Content::Parts(property) | Content::QemuNet(property) | Content::Volume(property) => {
                        for part in property.parts {
                            check(format!("{path}.{}", part.field), format!("{key}.{}", part.key));
                        }
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn mapped_devices_need_no_root() {
        for (key, value, root) in [
            ("hostpci0", "0000:01:00.0,pcie=1", true),
            ("hostpci0", "mapping=gpu,pcie=1", false),
            ("usb0", "spice", false),
            ("usb0", "1234:5678", true),
            ("args", "-S", true),
            ("serial0", "socket", false),
            ("serial0", "/dev/ttyS0", true),
            ("cores", "2", false),
        ] {
            assert_eq!(is_root_only(GuestKind::Qemu, key, value), root, "{key} {value}");
        }
        assert!(is_root_only(GuestKind::Lxc, "features", "nesting=1,keyctl=1"));
        assert!(!is_root_only(GuestKind::Lxc, "features", "nesting=1"));
        assert!(is_root_only(GuestKind::Lxc, "mp0", "/mnt/data,mp=/data"));
        assert!(!is_root_only(GuestKind::Lxc, "mp0", "local:8,mp=/data"));
    }
}
