//! How much of a disk image is really on the disk. Nothing writes to a blank one but the tool that made it.

use super::volume::Volume;

const KIB: u64 = 1024;
/// The unit in which a qcow2 image grows.
const CLUSTER: u64 = 64 * KIB;
/// What one table of a qcow2 image reaches.
const REACH: u64 = 512 * 1024 * KIB;
/// The smallest piece of a file that is kept.
const PAGE: u64 = 4 * KIB;
/// The clusters of an address drive that are not empty.
const DRIVE: u64 = 3 * CLUSTER;

/// The tables that an image of this size has.
fn tables(size: u64) -> u64 {
    size.div_ceil(REACH)
}

impl Volume {
    /// Becomes larger. A list of tables that grows is written again; the tables themselves are only written while no guest runs.
    pub fn grow(&mut self, size: u64, online: bool) {
        // While a guest runs, the list takes the place of an earlier one if there is any.
        if tables(size) > tables(self.size) && (!online || self.relisted == 0) {
            self.relisted += 1;
        }
        self.tabled = if online { Some(self.tabled.unwrap_or(self.size)) } else { None };
        self.size = size;
    }

    /// Bytes of a disk image that are on the disk: all of one that something was written to.
    pub fn allocated(&self, name: &str) -> u64 {
        let written =
            self.medium.is_some() || self.bootable || self.sha256.is_some() || self.parent.is_some();
        if written || self.content != "images" {
            return self.size;
        }
        match self.format.as_str() {
            "raw" => PAGE,
            // Header, two levels of reference counts, a list of tables, and the tables, are written when the image is made.
            "qcow2" => {
                let made = 3 * CLUSTER + PAGE + tables(self.tabled.unwrap_or(self.size)) * CLUSTER;
                let drive = if name.contains("cloudinit") { DRIVE } else { 0 };
                made + u64::from(self.relisted) * PAGE + drive
            }
            _ => self.size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_image_has_its_tables_only() {
        let gib = 1 << 30;
        let mut image =
            Volume { content: "images".into(), format: "qcow2".into(), size: gib, ..Volume::default() };
        assert_eq!(image.allocated("vm-1-disk-0"), 331_776);
        image.grow(gib + gib / 2, false);
        image.grow(2 * gib, false);
        image.grow(2 * gib + gib / 4, true);
        assert_eq!(image.allocated("vm-1-disk-0"), 471_040);
        let drive = Volume { size: 4 << 20, ..image.clone() };
        assert_eq!(Volume { relisted: 0, tabled: None, ..drive }.allocated("vm-1-cloudinit"), 462_848);
        assert_eq!(Volume { format: "raw".into(), ..image }.allocated("vm-1-disk-0"), 4096);
    }
}
