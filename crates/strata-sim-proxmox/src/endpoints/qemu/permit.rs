//! Which privilege each option of a VM needs. Values matter too: a passed-through device is for root alone.

use super::drive::{self, Drive, Wanted};
use super::{net, schema};
use crate::api::format::parse_volume_id;
use crate::api::{Call, Refusal, no, wrong};
use crate::endpoints::guest::{check_bridge, check_volume, parse_name};
use crate::world::guest::Config;

const CPU: &[&str] =
    &["cores", "cpu", "runningcpu", "cpulimit", "cpuunits", "numa", "smp", "sockets", "vcpus"];
const MEMORY: &[&str] = &["memory", "balloon", "shares", "allow-ksm"];
const HARDWARE: &[&str] = &[
    "acpi",
    "hotplug",
    "kvm",
    "machine",
    "runningmachine",
    "scsihw",
    "smbios1",
    "tablet",
    "vga",
    "watchdog",
    "audio0",
    "rng0",
];
const GENERAL: &[&str] = &[
    "agent",
    "autostart",
    "bios",
    "description",
    "keyboard",
    "localtime",
    "migrate_downtime",
    "migrate_speed",
    "name",
    "onboot",
    "ostype",
    "protection",
    "reboot",
    "startdate",
    "startup",
    "tdf",
    "template",
];
const DISK: &[&str] = &["boot", "bootdisk", "vmstatestorage"];
pub const CLOUDINIT: &[&str] =
    &["cicustom", "cipassword", "citype", "ciuser", "ciupgrade", "nameserver", "searchdomain", "sshkeys"];

fn numbered(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a key's permission depends on its value and is checked with it.
fn by_value(key: &str) -> bool {
    drive::is_slot(key)
        || key == "cdrom"
        || key == "tags"
        || ["unused", "serial", "usb", "hostpci", "virtiofs"].iter().any(|prefix| numbered(key, prefix))
}

/// The privileges for options by name alone.
pub fn check_keys<'k>(
    call: &Call<'_>,
    vmid: u32,
    pool: Option<&str>,
    keys: impl Iterator<Item = &'k str>,
) -> Result<(), Refusal> {
    if call.caller.is_root() {
        return Ok(());
    }
    for key in keys.filter(|key| !by_value(key)) {
        let need = |privs: &[&str]| call.check_vm(vmid, pool, privs);
        if CPU.contains(&key) || numbered(key, "numa") {
            need(&["VM.Config.CPU"])?;
        } else if MEMORY.contains(&key) {
            need(&["VM.Config.Memory"])?;
        } else if HARDWARE.contains(&key) {
            need(&["VM.Config.HWType"])?;
        } else if GENERAL.contains(&key) {
            need(&["VM.Config.Options"])?;
            if key == "startup" {
                // The order of start concerns the whole host.
                call.check("/", &["Sys.Modify"])?;
            }
        } else if key == "freeze" {
            need(&["VM.PowerMgmt"])?;
        } else if DISK.contains(&key) {
            need(&["VM.Config.Disk"])?;
        } else if numbered(key, "net") {
            need(&["VM.Config.Network"])?;
        } else if CLOUDINIT.contains(&key) || numbered(key, "ipconfig") {
            let any = ["VM.Config.Cloudinit", "VM.Config.Network"];
            let by_pool = pool.is_some_and(|pool| call.check_any(&format!("/pool/{pool}"), &any).is_ok());
            if !by_pool {
                call.check_any(&format!("/vms/{vmid}"), &any)?;
            }
        } else if key == "vmstate" {
            need(&["VM.Config.Disk", "VM.PowerMgmt"])?;
        } else if let Some(refusal) = missing_script(call, key) {
            return Err(refusal);
        } else {
            return Err(no(format!("only root can set '{key}' config")));
        }
    }
    Ok(())
}

/// Of a VM that is there, a script is looked for before anybody is asked whether it may be set.
fn missing_script(call: &Call<'_>, key: &str) -> Option<Refusal> {
    let volid = call.args.text(key).filter(|_| key == "hookscript")?;
    call.world.guests.get(&call.vmid())?;
    let found = call.world.volume(volid, call.args.must("node")).is_some();
    (!found).then(|| wrong(key, format!("script '{volid}' does not exist\n")))
}

/// The privileges for devices whose value decides.
pub fn check_devices(call: &Call<'_>, vmid: u32, pool: Option<&str>, values: &Config) -> Result<(), Refusal> {
    if call.caller.is_root() {
        return Ok(());
    }
    for (key, value) in values {
        check_device(call, vmid, pool, key, value)?;
    }
    Ok(())
}

pub fn check_device(
    call: &Call<'_>,
    vmid: u32,
    pool: Option<&str>,
    key: &str,
    value: &str,
) -> Result<(), Refusal> {
    if call.caller.is_root() {
        return Ok(());
    }
    let hardware = || call.check_vm(vmid, pool, &["VM.Config.HWType"]);
    if numbered(key, "serial") {
        if value == "socket" {
            return hardware();
        }
        return Err(no(format!("only root can set '{key}' config for real devices")));
    }
    if numbered(key, "usb") {
        hardware()?;
        let usb = schema::parse_usb(value);
        return match (usb.get("host"), usb.get("mapping")) {
            (Some(host), _) if host.eq_ignore_ascii_case("spice") => Ok(()),
            (Some(_), _) => Err(no(format!("only root can set '{key}' config for real devices"))),
            (None, Some(mapping)) => call.check(&format!("/mapping/usb/{mapping}"), &["Mapping.Use"]),
            (None, None) => Err(no("either 'host' or 'mapping' must be set.")),
        };
    }
    if numbered(key, "hostpci") {
        let device = schema::parse_hostpci(value);
        match (device.get("host"), device.get("mapping")) {
            (Some(_), _) => {
                return Err(no(format!("only root can set '{key}' config for non-mapped devices")));
            }
            (None, Some(mapping)) => {
                call.check(&format!("/mapping/pci/{mapping}"), &["Mapping.Use"])?;
                hardware()?;
            }
            (None, None) => return Err(no("either 'host' or 'mapping' must be set.")),
        }
        if device.get("romfile").is_some() {
            return Err(wrong(key, "only root@pam can set 'romfile' option"));
        }
        return Ok(());
    }
    if numbered(key, "rng") {
        hardware()?;
        if schema::parse_rng(value).get("source") == Some("/dev/hwrng") {
            call.check("/mapping/hwrng", &["Mapping.Use"])?;
        }
    } else if numbered(key, "virtiofs") {
        call.check_vm(vmid, pool, &["VM.Config.Disk"])?;
        let share = schema::parse_virtiofs(value);
        let id = share.get("dirid").unwrap_or_default();
        call.check(&format!("/mapping/dir/{id}"), &["Mapping.Use"])?;
    } else if numbered(key, "net") {
        check_bridge(call, &net::parse(value))?;
    }
    Ok(())
}

/// Whether the caller may use the storages and volumes that drives ask for. The drives are parsed already.
pub fn check_storages(
    call: &Call<'_>,
    vmid: u32,
    drives: &[Drive],
    unused: &Config,
    default: Option<&str>,
) -> Result<(), Refusal> {
    for drive in drives {
        match drive.wanted() {
            Wanted::Nothing if drive.file() == "cdrom" => call.check("/", &["Sys.Console"])?,
            Wanted::Nothing | Wanted::CloudInit(_) => {}
            Wanted::New(storage, _) if !drive.is_cdrom() => {
                let Some(storage) = storage.as_deref().or(default) else {
                    return Err(no("no storage ID specified (and no default storage)"));
                };
                call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
                if !call.world.storage(storage)?.holds("images") {
                    return Err(wrong("storage", format!("storage '{storage}' does not support vm images")));
                }
            }
            Wanted::New(..) | Wanted::Existing => {
                check_volume(call, Some(vmid), drive.file())?;
                if let Some((storage, name)) = parse_volume_id(drive.file()) {
                    let named = parse_name(call.world, storage, name)?;
                    if !matches!(named.content, "images" | "iso") {
                        return Err(wrong(&drive.slot, "content type needs to be 'images' or 'iso'"));
                    }
                }
            }
        }
        if let Some(source) = drive.props.get("import-from") {
            check_import(call, vmid, drive, source)?;
        }
    }
    for (key, value) in unused.iter().filter(|(key, _)| drive::is_unused(key)) {
        let Some(drive) = Drive::parse(key, value) else {
            return Err(wrong(key, format!("failed to parse value '{value}'")));
        };
        check_volume(call, Some(vmid), drive.file())?;
    }
    if let Some(storage) = unused.get("vmstatestorage") {
        call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    }
    Ok(())
}

fn check_import(call: &Call<'_>, vmid: u32, drive: &Drive, source: &str) -> Result<(), Refusal> {
    let Some((storage, name)) = parse_volume_id(source) else {
        return check_volume(call, Some(vmid), source);
    };
    let named = parse_name(call.world, storage, name)?;
    if !matches!(named.content, "images" | "import") {
        let text = format!("{source} has wrong type '{}' - needs to be 'images' or 'import'", named.content);
        return Err(wrong(&drive.slot, text));
    }
    match named.vmid {
        Some(owner) => call.check(&format!("/vms/{owner}"), &["VM.Clone"]),
        None => check_volume(call, Some(vmid), source),
    }
}

/// Checks on drives that are about their options, not about permissions; gives them parsed.
pub fn parse_drives(call: &Call<'_>, values: &Config) -> Result<Vec<Drive>, Refusal> {
    let mut drives = Vec::new();
    for (slot, value) in values.iter().filter(|(key, _)| drive::is_slot(key)) {
        let Some(drive) = Drive::parse(slot, value) else {
            return Err(wrong(slot, "unable to parse drive options"));
        };
        if drive.props.get("import-from").is_some() {
            if !matches!(drive.wanted(), Wanted::New(_, size) if size == 0.0) {
                let text = "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>";
                return Err(wrong(slot, text));
            }
            let required: &[&str] = match slot.as_str() {
                "efidisk0" => &["efitype", "pre-enrolled-keys"],
                "tpmstate0" => &["version"],
                _ => &[],
            };
            if let Some(key) = required.iter().find(|key| drive.props.get(key).is_none()) {
                return Err(wrong(slot, format!("need to specify '{key}' when using 'import-from'")));
            }
        }
        if drive.wanted() == Wanted::Existing
            && let Some((storage, name)) = parse_volume_id(drive.file())
            && parse_name(call.world, storage, name)?.content == "iso"
            && !drive.is_cdrom()
        {
            return Err(wrong(slot, "explicit 'media=cdrom' is required for iso images"));
        }
        drives.push(drive);
    }
    Ok(drives)
}

/// What changing this drive needs.
pub fn check_drive(call: &Call<'_>, vmid: u32, drive: &Drive) -> Result<(), Refusal> {
    let privs: &[&str] = if drive.is_cloudinit() {
        &["VM.Config.Cloudinit", "VM.Config.CDROM"]
    } else if drive.is_cdrom() {
        &["VM.Config.CDROM"]
    } else {
        &["VM.Config.Disk"]
    };
    call.check_vm(vmid, None, privs)
}

/// Public keys must be what `ssh-keygen` takes for some.
pub fn check_ssh_keys(encoded: &str) -> Result<(), Refusal> {
    use base64::Engine as _;
    let decoded = percent_encoding::percent_decode_str(encoded).decode_utf8_lossy();
    for line in decoded.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ok = words.windows(2).any(|pair| {
            let blob = base64::engine::general_purpose::STANDARD.decode(pair[1]).unwrap_or_default();
            // A key begins with the length and text of its own type.
            blob.len() > 4 + pair[0].len() && blob[4..].starts_with(pair[0].as_bytes())
        });
        if !ok {
            return Err(no("SSH public key validation error"));
        }
    }
    Ok(())
}
