//! Files that clients bring in: which names each content takes, and what is inside.

use crate::api::format::only;
use crate::api::{Refusal, no, wrong};
use crate::world::{Storage, Volume};

/// A name and where it will be.
#[derive(Debug, Clone)]
pub struct Target {
    pub content: String,
    /// As the storage knows it: `iso/name`.
    pub volume: String,
    /// As messages show it.
    pub path: String,
    /// As lists show it.
    pub format: String,
}

/// Only the last part of the name, with every strange character replaced.
pub fn normal_name(name: &str) -> String {
    let name = name.strip_suffix('\n').unwrap_or(name);
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' }).collect()
}

/// Where a file of that content and name goes; the name must fit the content.
pub fn target(storage: &Storage, content: &str, name: &str) -> Result<Target, Refusal> {
    let name = normal_name(name);
    let format = format_of(content, &name)?;
    let volume = format!("{content}/{name}");
    let path = storage.path(&volume);
    Ok(Target { content: content.to_owned(), volume, path, format })
}

fn format_of(content: &str, name: &str) -> Result<String, Refusal> {
    let lower = name.to_ascii_lowercase();
    // There must be something before the extension.
    let ends = |extension: &str| {
        let stem = lower.strip_suffix(extension)?;
        (!stem.is_empty()).then(|| extension.trim_start_matches('.').to_owned())
    };
    match content {
        "iso" => match ends(".iso").or_else(|| ends(".img")) {
            Some(_) => Ok("iso".to_owned()),
            None => Err(wrong("filename", "wrong file extension")),
        },
        "vztmpl" => {
            for (extension, format) in [
                (".tar.gz", "tgz"),
                (".tar.xz", "txz"),
                (".tar.zst", "tzst"),
                (".tar.bz2", "tbz2"),
                (".tar", "tar"),
            ] {
                if ends(extension).is_some() {
                    return Ok(format.to_owned());
                }
            }
            Err(wrong("filename", "wrong file extension"))
        }
        "import" => {
            let found = [".ova", ".qcow2", ".raw", ".vmdk"]
                .iter()
                .find_map(|e| name.strip_suffix(e).filter(|stem| !stem.is_empty()).map(|_| &e[1..]));
            match found.filter(|_| only(name, "-.+=_")) {
                Some(format) => Ok(format.to_owned()),
                None => Err(wrong("filename", "invalid filename or wrong extension")),
            }
        }
        other => Err(wrong("content", format!("upload content type '{other}' not allowed"))),
    }
}

/// What is known about the bytes of a file.
#[derive(Debug, Clone, Default)]
pub struct Bytes {
    pub size: u64,
    pub sha256: String,
    /// The beginning, as far as it was kept.
    pub head: Vec<u8>,
    /// Made up by the simulator; holds whatever its name says.
    pub synthetic: bool,
}

/// A qcow2 image that is smaller than this has no data in it, only its own tables.
const EMPTY_QCOW2: u64 = 512 << 10;

impl Bytes {
    /// The size of the disk inside, for an image in this format.
    fn virtual_size(&self, format: &str) -> Option<u64> {
        if self.synthetic && matches!(format, "qcow2" | "vmdk" | "ova") {
            // Between one and two GiB, in steps that every storage can hold.
            let steps = u64::from(self.sha256.as_bytes().first().copied().unwrap_or_default() % 16);
            return Some((1 << 30) + steps * (64 << 20));
        }
        match format {
            "qcow2" => {
                let size = self.head.get(24..32)?.try_into().ok()?;
                self.head.starts_with(b"QFI\xfb").then(|| u64::from_be_bytes(size))
            }
            "raw" => Some(self.size.next_multiple_of(512)),
            _ => Some(self.size.next_multiple_of(512)),
        }
    }

    /// The volume that this file becomes, or why it cannot be one.
    pub fn volume(&self, target: &Target, now: i64) -> Result<Volume, Refusal> {
        let virtual_size = match target.content.as_str() {
            "import" => match self.virtual_size(&target.format) {
                Some(size) => Some(size),
                None => {
                    let text = "failed to query file information with qemu-img";
                    return Err(no(text));
                }
            },
            _ => None,
        };
        Ok(Volume {
            content: target.content.clone(),
            format: target.format.clone(),
            size: self.size,
            virtual_size,
            ctime: now,
            sha256: Some(self.sha256.clone()),
            bootable: self.is_bootable(target),
            ..Volume::default()
        })
    }

    fn is_bootable(&self, target: &Target) -> bool {
        match (target.content.as_str(), target.format.as_str()) {
            _ if self.synthetic => true,
            ("import", "qcow2") => self.size >= EMPTY_QCOW2,
            _ => self.head.iter().any(|byte| *byte != 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_is_strange() {
        assert_eq!(normal_name("../a b:c.iso"), "a_b_c.iso");
        assert_eq!(normal_name("C:\\x\\y.iso\n"), "y.iso");
    }

    #[test]
    fn each_content_has_its_extensions() {
        assert_eq!(format_of("iso", "a.IMG").unwrap(), "iso");
        assert!(format_of("iso", ".iso").is_err());
        assert_eq!(format_of("vztmpl", "a.tar.zst").unwrap(), "tzst");
        assert_eq!(format_of("import", "a.qcow2").unwrap(), "qcow2");
        assert!(format_of("import", "a.img").is_err());
    }
}
