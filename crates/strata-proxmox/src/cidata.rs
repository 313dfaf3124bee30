//! NoCloud ISOs: a volume labelled `cidata` with the files that cloud-init reads.
//!
//! Equal files give equal bytes. No tool of the system is used.

mod iso;

use std::collections::BTreeMap;

/// The label by which cloud-init finds the volume.
const LABEL: &str = "cidata";

/// The ISO image with these files (`user-data`, `meta-data`, …) at its root.
pub fn build(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    iso::write(LABEL, files)
}

/// The file name of the ISO of one VM: lineage and VMID prove whose it is, the hash says what is in it.
pub fn volume_name(lineage_short: &str, vmid: u32, hash: &str) -> String {
    let hash = hash.get(..12).unwrap_or(hash);
    format!("strata-{lineage_short}-{vmid}-{hash}.iso")
}
