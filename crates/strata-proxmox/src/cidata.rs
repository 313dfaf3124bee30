//! NoCloud ISOs: a volume labelled `cidata` with the files that cloud-init reads.
//!
//! Equal files give equal bytes. No tool of the system is used.

mod iso;

use std::collections::BTreeMap;

use strata_resource::{Spec, Value};

/// The label by which cloud-init finds the volume.
const LABEL: &str = "cidata";

/// The ISO image with these files (`user-data`, `meta-data`, …) at its root.
pub fn build(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    iso::write(LABEL, files)
}

/// The contents of the files that a spec names; the name of the first whose content is not at hand.
pub(crate) fn files(files: &Spec) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let content = |(name, value): (&String, &Value)| {
        let bytes = match value {
            Value::Secret(secret) => secret.plain().map(|plain| plain.expose().as_bytes().to_vec()),
            Value::Text(text) => Some(text.clone().into_bytes()),
            _ => None,
        };
        Ok((name.clone(), bytes.ok_or_else(|| name.clone())?))
    };
    files.iter().map(content).collect()
}

/// The file name of the ISO of one VM: lineage and VMID prove whose it is, the hash says what is in it.
pub fn volume_name(lineage_short: &str, vmid: u32, hash: &str) -> String {
    let hash = hash.get(..12).unwrap_or(hash);
    format!("strata-{lineage_short}-{vmid}-{hash}.iso")
}
