//! Drives: their slots, their property strings, and what kind of drive one is.

use std::sync::LazyLock;

use crate::api::format::{disk_size, parse_size, parse_volume_id, print_size, urlencoded, volume_id};
use crate::api::{Param, Properties, PropertyString, flag, int, number, text};

/// The buses with their number of slots, in the order in which a boot disk is looked for.
const BUSES: &[(&str, u32)] = &[("ide", 4), ("scsi", 31), ("virtio", 16), ("sata", 6)];

const IMAGE_FORMATS: &[&str] = &["raw", "qcow", "qed", "qcow2", "vmdk", "cloop"];

/// Every slot a drive can have, `efidisk0` and `tpmstate0` last.
pub static SLOTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut slots: Vec<String> =
        BUSES.iter().flat_map(|(bus, count)| (0..*count).map(move |n| format!("{bus}{n}"))).collect();
    slots.push("efidisk0".into());
    slots.push("tpmstate0".into());
    slots
});

/// For parameter tables, which keep their values for ever.
pub static SLOT_NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| SLOTS.iter().map(|slot| &*Box::leak(slot.clone().into_boxed_str())).collect());

/// The bus of a slot, if it is one.
pub fn bus(slot: &str) -> Option<&'static str> {
    match slot {
        "efidisk0" => return Some("efidisk"),
        "tpmstate0" => return Some("tpmstate"),
        _ => {}
    }
    BUSES.iter().find_map(|(bus, count)| {
        let number = slot.strip_prefix(bus)?;
        let plain = number == "0" || !number.starts_with('0');
        let n: u32 = number.parse().ok()?;
        (plain && number.bytes().all(|b| b.is_ascii_digit()) && n < *count).then_some(*bus)
    })
}

pub fn is_slot(key: &str) -> bool {
    bus(key).is_some()
}

pub fn is_unused(key: &str) -> bool {
    key.strip_prefix("unused").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn path_or_volume(value: &str) -> Result<(), String> {
    if value.starts_with('/') { Ok(()) } else { volume_id(value) }
}

fn path_or_volume_or_word(value: &str) -> Result<(), String> {
    if matches!(value, "none" | "cdrom") { Ok(()) } else { path_or_volume(value) }
}

fn base() -> Vec<Param> {
    let mut params = vec![
        text("file").format(path_or_volume_or_word),
        text("media").one_of(&["cdrom", "disk"]).opt(),
        flag("snapshot").opt(),
        text("cache").one_of(&["none", "writethrough", "writeback", "unsafe", "directsync"]).opt(),
        text("format").one_of(IMAGE_FORMATS).opt(),
        text("size").format(disk_size).opt(),
        flag("backup").opt(),
        flag("replicate").opt(),
        text("rerror").one_of(&["ignore", "report", "stop"]).opt(),
        text("werror").one_of(&["enospc", "ignore", "report", "stop"]).opt(),
        text("aio").one_of(&["native", "threads", "io_uring"]).opt(),
        text("discard").one_of(&["ignore", "on"]).opt(),
        flag("detect_zeroes").opt(),
        text("serial").format(urlencoded).max_len(60).opt(),
        flag("shared").opt(),
        text("import-from").format(path_or_volume).opt(),
    ];
    for key in
        ["bps", "bps_rd", "bps_wr", "iops", "iops_rd", "iops_wr", "iops_max", "iops_rd_max", "iops_wr_max"]
    {
        params.push(int(key).opt());
    }
    for key in ["mbps", "mbps_rd", "mbps_wr", "mbps_max", "mbps_rd_max", "mbps_wr_max"] {
        params.push(number(key).opt());
    }
    for key in LENGTHS {
        params.push(int(*key).min(1.0).opt());
    }
    params
}

const LENGTHS: &[&str] = &[
    "bps_max_length",
    "bps_rd_max_length",
    "bps_wr_max_length",
    "iops_max_length",
    "iops_rd_max_length",
    "iops_wr_max_length",
];

fn schema(extra: Vec<Param>) -> Properties {
    let mut properties =
        Properties::new(base().into_iter().chain(extra)).default_key("file").alias("volume", "file");
    for key in ["bps_rd", "bps_wr", "iops_rd", "iops_wr"] {
        properties = properties.alias(&format!("{key}_length"), &format!("{key}_max_length"));
    }
    properties
}

fn ssd() -> Param {
    flag("ssd").opt()
}

fn wwn() -> Param {
    text("wwn").pattern("0x[0-9a-fA-F]{16}").opt()
}

fn small(extra: Vec<Param>) -> Properties {
    let own = vec![
        text("file").format(path_or_volume_or_word),
        text("size").format(disk_size).opt(),
        text("import-from").format(path_or_volume).opt(),
    ];
    Properties::new(own.into_iter().chain(extra)).default_key("file").alias("volume", "file")
}

static IDE: LazyLock<Properties> =
    LazyLock::new(|| schema(vec![text("model").format(urlencoded).max_len(120).opt(), ssd(), wwn()]));
static SATA: LazyLock<Properties> = LazyLock::new(|| schema(vec![ssd(), wwn()]));
static VIRTIO: LazyLock<Properties> =
    LazyLock::new(|| schema(vec![flag("iothread").opt(), flag("ro").opt()]));
static SCSI: LazyLock<Properties> = LazyLock::new(|| {
    schema(vec![
        flag("iothread").opt(),
        text("product").pattern(r"[A-Za-z0-9\-_\s]{0,16}").opt(),
        int("queues").min(2.0).opt(),
        flag("ro").opt(),
        flag("scsiblock").opt(),
        ssd(),
        text("vendor").pattern(r"[A-Za-z0-9\-_\s]{0,8}").opt(),
        wwn(),
    ])
});
static EFIDISK: LazyLock<Properties> = LazyLock::new(|| {
    small(vec![
        text("format").one_of(IMAGE_FORMATS).opt(),
        text("efitype").one_of(&["2m", "4m"]).opt(),
        flag("pre-enrolled-keys").opt(),
        text("ms-cert").one_of(&["2011", "2023", "2023w", "2023k"]).opt(),
    ])
});
static TPMSTATE: LazyLock<Properties> = LazyLock::new(|| {
    small(vec![
        text("format").one_of(&["raw", "qcow2", "vmdk"]).opt(),
        text("version").one_of(&["v1.2", "v2.0"]).opt(),
    ])
});
static UNUSED: LazyLock<Properties> = LazyLock::new(|| {
    Properties::new([text("file").format(volume_id)]).default_key("file").alias("volume", "file")
});

pub fn unused_schema() -> &'static Properties {
    &UNUSED
}

/// The schema of a bus' drives, as parameter tables want it.
pub fn schema_of(bus: &str) -> fn() -> &'static Properties {
    match bus {
        "ide" => || &IDE,
        "sata" => || &SATA,
        "virtio" => || &VIRTIO,
        "efidisk" => || &EFIDISK,
        "tpmstate" => || &TPMSTATE,
        _ => || &SCSI,
    }
}

/// A parsed drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Drive {
    pub slot: String,
    pub props: PropertyString,
}

/// What the `file` of a drive asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    Nothing,
    /// `storage:cloudinit`.
    CloudInit(String),
    /// `storage:GIB`; no storage means the default one.
    New(Option<String>, f64),
    Existing,
}

impl Drive {
    /// None if the options do not go together.
    pub fn parse(slot: &str, value: &str) -> Option<Self> {
        let schema = if is_unused(slot) { unused_schema() } else { schema_of(bus(slot)?)() };
        let mut props = schema.parse(value, slot).ok()?;
        for (plain, mega) in [("bps", "mbps"), ("bps_rd", "mbps_rd"), ("bps_wr", "mbps_wr")] {
            if let Some(bytes) = props.remove(plain).and_then(|v| v.parse::<f64>().ok()) {
                if props.get(mega).is_some() {
                    return None;
                }
                props.set(mega, format!("{:.3}", bytes / 1_048_576.0));
            }
        }
        let both = |a: &str, b: &str| props.get(a).is_some() && props.get(b).is_some();
        let without = |a: &str, b: &str| props.get(a).is_some() && props.get(b).is_none();
        if both("mbps_rd", "mbps")
            || both("mbps_wr", "mbps")
            || both("iops_rd", "iops")
            || both("iops_wr", "iops")
        {
            return None;
        }
        if without("mbps_max", "mbps")
            || without("mbps_rd_max", "mbps_rd")
            || without("mbps_wr_max", "mbps_wr")
        {
            return None;
        }
        let cdrom = props.get("media") == Some("cdrom");
        if cdrom && (props.is_set("snapshot") || props.get("format").is_some() || slot.starts_with("virtio"))
        {
            return None;
        }
        if let Some(size) = props.get("size") {
            let size = print_size(parse_size(size)?);
            props.set("size", size);
        }
        Some(Self { slot: slot.to_owned(), props })
    }

    pub fn file(&self) -> &str {
        self.props.get("file").unwrap_or_default()
    }

    pub fn size(&self) -> Option<u64> {
        self.props.get("size").and_then(parse_size)
    }

    pub fn set_size(&mut self, bytes: u64) {
        self.props.set("size", print_size(bytes));
    }

    pub fn is_cloudinit(&self) -> bool {
        is_cloudinit(self.file())
    }

    pub fn is_cdrom(&self) -> bool {
        self.props.get("media") == Some("cdrom")
    }

    /// A CD drive that is not the cloud-init drive.
    pub fn is_plain_cdrom(&self) -> bool {
        self.is_cdrom() && !self.is_cloudinit()
    }

    pub fn wanted(&self) -> Wanted {
        let file = self.file();
        match file {
            "" | "none" | "cdrom" => return Wanted::Nothing,
            _ => {}
        }
        let (storage, rest) = match file.split_once(':') {
            Some((storage, rest)) => (Some(storage.to_owned()), rest),
            None => (None, file),
        };
        let numeric = !rest.is_empty()
            && rest.split('.').count() <= 2
            && rest.split('.').all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
        match storage {
            Some(storage) if rest == "cloudinit" => Wanted::CloudInit(storage),
            storage if numeric => Wanted::New(storage, rest.parse().unwrap_or_default()),
            _ => Wanted::Existing,
        }
    }

    /// The volume it has, if it is one that a storage keeps.
    pub fn volid(&self) -> Option<&str> {
        parse_volume_id(self.file()).map(|_| self.file())
    }

    /// The file first, then everything else by name.
    pub fn print(&self) -> String {
        let mut rest: Vec<_> = self.props.0.iter().filter(|(k, _)| *k != "file").collect();
        rest.sort();
        let mut out = self.file().to_owned();
        for (key, value) in rest {
            out.push_str(&format!(",{key}={value}"));
        }
        out
    }
}

/// `storage:cloudinit`, or a volume that was made for it.
pub fn is_cloudinit(file: &str) -> bool {
    let name = file.rsplit([':', '/']).next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let stem = match stem.strip_prefix("vm-") {
        Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('-'),
        None => stem,
    };
    stem == "cloudinit" && file.contains(':')
}

/// The drives of a configuration by slot, in alphabetical order of the slot.
pub fn drives(config: &crate::world::guest::Config) -> impl Iterator<Item = Drive> {
    config.iter().filter(|(key, _)| is_slot(key)).filter_map(|(key, value)| Drive::parse(key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_counted() {
        assert_eq!(bus("scsi30"), Some("scsi"));
        assert_eq!(bus("scsi31"), None);
        assert_eq!(bus("scsi01"), None);
        assert_eq!(bus("scsihw"), None);
        assert_eq!(bus("efidisk0"), Some("efidisk"));
        assert!(is_unused("unused12") && !is_unused("unused"));
    }

    #[test]
    fn a_drive_prints_its_file_then_sorted_options() {
        let drive = Drive::parse("scsi0", "ssd=1,local:1,discard=on,iothread=on").unwrap();
        assert_eq!(drive.print(), "local:1,discard=on,iothread=1,ssd=1");
        assert_eq!(drive.wanted(), Wanted::New(Some("local".into()), 1.0));
        let cloud = Drive::parse("ide2", "local:cloudinit").unwrap();
        assert_eq!(cloud.wanted(), Wanted::CloudInit("local".into()));
        assert!(Drive::parse("ide2", "local:1/vm-1-cloudinit.qcow2,media=cdrom").unwrap().is_cloudinit());
        assert!(Drive::parse("virtio0", "local:iso/x.iso,media=cdrom").is_none());
    }
}
