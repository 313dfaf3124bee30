//! The processor models that QEMU has, and the checks on a VM's `cpu` option.

use std::sync::LazyLock;

use crate::api::{Properties, PropertyString, flag, int, text};

/// Vendor, then models; `name:2,3` also exists as `name-v2` and `name-v3`.
const MODELS: &[(&str, &str)] = &[
    ("default", "host kvm32 kvm64 max qemu32 qemu64 x86-64-v2 x86-64-v2-AES x86-64-v3 x86-64-v4"),
    (
        "AuthenticAMD",
        "EPYC:3,4,5 EPYC-Genoa:2 EPYC-IBPB EPYC-Milan:2,3 EPYC-Rome:2,3,4,5 EPYC-Turin Opteron_G1 Opteron_G2 \
         Opteron_G3 Opteron_G4 Opteron_G5 athlon phenom",
    ),
    (
        "GenuineIntel",
        "486 Broadwell Broadwell-IBRS Broadwell-noTSX Broadwell-noTSX-IBRS Cascadelake-Server:2,4,5 \
         Cascadelake-Server-noTSX ClearwaterForest Conroe Cooperlake:2 GraniteRapids:2,3 Haswell Haswell-IBRS \
         Haswell-noTSX Haswell-noTSX-IBRS Icelake-Client Icelake-Client-noTSX Icelake-Server:3,4,5,6,7 \
         Icelake-Server-noTSX IvyBridge IvyBridge-IBRS KnightsMill Nehalem Nehalem-IBRS Penryn SandyBridge \
         SandyBridge-IBRS SapphireRapids:2,3,4 SierraForest:2,3 Skylake-Client:4 Skylake-Client-IBRS \
         Skylake-Client-noTSX-IBRS Skylake-Server:4,5 Skylake-Server-IBRS Skylake-Server-noTSX-IBRS Westmere \
         Westmere-IBRS core2duo coreduo pentium pentium2 pentium3",
    ),
];

/// The flags that a VM's own configuration may switch.
const FLAGS: &[&str] = &[
    "nested-virt",
    "md-clear",
    "pcid",
    "spec-ctrl",
    "ssbd",
    "ibpb",
    "virt-ssbd",
    "amd-ssbd",
    "amd-no-ssb",
    "pdpe1gb",
    "hv-tlbflush",
    "hv-evmcs",
    "aes",
];

/// Every model with its vendor.
pub fn models() -> Vec<(String, &'static str)> {
    let mut all = Vec::new();
    for (vendor, list) in MODELS {
        for entry in list.split_whitespace() {
            let (name, versions) = entry.split_once(':').unwrap_or((entry, ""));
            all.push((name.to_owned(), *vendor));
            all.extend(
                versions.split(',').filter(|v| !v.is_empty()).map(|v| (format!("{name}-v{v}"), *vendor)),
            );
        }
    }
    all
}

fn phys_bits(value: &str) -> Result<(), String> {
    let ok = value == "host" || value.parse::<u8>().is_ok_and(|n| (8..=64).contains(&n));
    if ok { Ok(()) } else { Err("value must be an integer between 8 and 64 or 'host'\n".to_owned()) }
}

static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
    Properties::new([
        text("cputype").opt(),
        text("reported-model").opt(),
        flag("hidden").opt(),
        text("hv-vendor-id").pattern("[a-zA-Z0-9]{1,12}").opt(),
        text("flags").pattern(r"[+-][a-zA-Z0-9\-_\.]+(;[+-][a-zA-Z0-9\-_\.]+)*").opt(),
        int("guest-phys-bits").min(32.0).max(64.0).opt(),
        text("phys-bits").format(phys_bits).opt(),
    ])
    .default_key("cputype")
    .validated(validate)
});

pub fn schema() -> &'static Properties {
    &SCHEMA
}

fn validate(cpu: &PropertyString) -> Result<(), String> {
    let Some(kind) = cpu.get("cputype") else { return Err("CPU is missing cputype\n".to_owned()) };
    if let Some(custom) = kind.strip_prefix("custom-") {
        return Err(format!("Custom cputype '{custom}' not found\n"));
    }
    if !models().iter().any(|(name, _)| name == kind) {
        return Err(format!("Built-in cputype '{kind}' is not defined (missing 'custom-' prefix?)\n"));
    }
    let known = |flag: &str| FLAGS.contains(&flag.trim_start_matches(['+', '-']));
    if cpu.get("flags").is_some_and(|flags| !flags.split(';').all(known)) {
        return Err(format!("VM-specific CPU flags must be a subset of: {}\n", FLAGS.join(", ")));
    }
    if cpu.get("reported-model").is_some() {
        return Err("Property 'reported-model' not allowed in VM-specific CPU config.\n".to_owned());
    }
    Ok(())
}

/// The machine types of this QEMU: version and whether there is a variant of the product's own.
pub const MACHINES: &[&str] = &[
    "10.2",
    "10.1",
    "10.0+pve1",
    "10.0",
    "9.2+pve1",
    "9.2",
    "9.1",
    "9.0",
    "8.2",
    "8.1",
    "8.0",
    "7.2",
    "7.1",
    "7.0",
    "6.2",
    "6.1",
    "6.0",
    "5.2",
];

/// The version of QEMU that runs guests.
pub const QEMU_VERSION: &str = "10.2.1";
