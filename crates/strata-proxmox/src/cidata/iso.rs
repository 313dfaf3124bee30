//! A writer of ISO 9660 images with Joliet names: one folder, a few files, no dates.
//!
//! ISO 9660 itself allows only capitals, so the true names (`user-data`) stand in a second tree, the Joliet one, which every
//! system reads first. Both trees point to the same content.

use std::collections::{BTreeMap, BTreeSet};

const SECTOR: usize = 2048;
/// The first sectors are left to boot loaders.
const SYSTEM_AREA: usize = 16;
/// Primary and Joliet descriptor, and the end of the list.
const DESCRIPTORS: usize = 3;
/// Little and big endian path tables of both trees, one sector each: there is one folder.
const PATH_TABLES: usize = 4;

/// One file, with its name in both trees and its place.
struct Entry<'a> {
    plain: Vec<u8>,
    joliet: Vec<u8>,
    content: &'a [u8],
    sector: usize,
}

/// The image of a volume with these files.
pub(super) fn write(label: &str, files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut entries = entries(files);
    // The size of a folder does not depend on where things are: work it out first, then place everything.
    let plain_size = folder(Tree::Plain, &entries, 0, 0).len();
    let joliet_size = folder(Tree::Joliet, &entries, 0, 0).len();
    let tables = SYSTEM_AREA + DESCRIPTORS;
    let plain_root = tables + PATH_TABLES;
    let joliet_root = plain_root + plain_size / SECTOR;
    let mut next = joliet_root + joliet_size / SECTOR;
    for entry in &mut entries {
        entry.sector = next;
        next += entry.content.len().div_ceil(SECTOR);
    }
    let mut image = Image(Vec::with_capacity(next * SECTOR));
    image.pad_to(SYSTEM_AREA);
    image.put(&descriptor(Tree::Plain, label, next, tables, plain_root, plain_size));
    image.put(&descriptor(Tree::Joliet, label, next, tables + 2, joliet_root, joliet_size));
    image.put(&terminator());
    for root in [plain_root, joliet_root] {
        image.put(&path_table(root, u16::to_le_bytes, u32::to_le_bytes));
        image.put(&path_table(root, u16::to_be_bytes, u32::to_be_bytes));
    }
    image.put(&folder(Tree::Plain, &entries, plain_root, plain_size));
    image.put(&folder(Tree::Joliet, &entries, joliet_root, joliet_size));
    for entry in &entries {
        image.put(entry.content);
    }
    image.0
}

struct Image(Vec<u8>);

impl Image {
    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(SECTOR), 0);
    }

    fn pad_to(&mut self, sector: usize) {
        self.0.resize(sector * SECTOR, 0);
    }
}

/// Names of both trees; entries of a folder stand in the order of their names.
fn entries(files: &BTreeMap<String, Vec<u8>>) -> Vec<Entry<'_>> {
    let mut taken = BTreeSet::new();
    let mut entries: Vec<Entry<'_>> = files
        .iter()
        .map(|(name, content)| {
            let plain = plain_name(name, &mut taken);
            Entry { plain, joliet: wide(&format!("{name};1")), content, sector: 0 }
        })
        .collect();
    entries.sort_by(|one, other| one.plain.cmp(&other.plain));
    entries
}

/// Capitals, digits and underscores, at most thirty; a number makes it unique.
fn plain_name(name: &str, taken: &mut BTreeSet<String>) -> Vec<u8> {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let stem: String = name.chars().map(allowed).take(24).collect();
    let numbered = std::iter::once(stem.clone()).chain((1..).map(|number| format!("{stem}{number}")));
    let unique = numbered.into_iter().find(|name| !taken.contains(name)).unwrap_or(stem);
    taken.insert(unique.clone());
    format!("{unique}.;1").into_bytes()
}

/// UCS-2, big endian.
fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// The folder's own record, its parent's (the same), and one for each file. No record crosses a sector.
fn folder(tree: Tree, entries: &[Entry<'_>], at: usize, size: usize) -> Vec<u8> {
    const FOLDER: u8 = 2;
    const FILE: u8 = 0;
    let mut records = vec![record(&[0], at, size, FOLDER), record(&[1], at, size, FOLDER)];
    records.extend(entries.iter().map(|entry| {
        let name = if tree == Tree::Plain { &entry.plain } else { &entry.joliet };
        record(name, entry.sector, entry.content.len(), FILE)
    }));
    let mut bytes = Vec::new();
    for record in records {
        let used = bytes.len() % SECTOR;
        if used + record.len() > SECTOR {
            bytes.resize(bytes.len().next_multiple_of(SECTOR), 0);
        }
        bytes.extend_from_slice(&record);
    }
    bytes.resize(bytes.len().next_multiple_of(SECTOR), 0);
    bytes
}

fn record(name: &[u8], sector: usize, size: usize, flags: u8) -> Vec<u8> {
    // A name has a length of one byte; longer ones are cut, the true name stays in the file map's order.
    let name = &name[..name.len().min(220)];
    let length = (33 + name.len()).next_multiple_of(2);
    let mut record = vec![u8::try_from(length).unwrap_or(u8::MAX), 0];
    record.extend_from_slice(&both_u32(sector));
    record.extend_from_slice(&both_u32(size));
    // 1970-01-01, so that equal files give equal bytes.
    record.extend_from_slice(&[70, 1, 1, 0, 0, 0, 0]);
    record.extend_from_slice(&[flags, 0, 0]);
    record.extend_from_slice(&both_u16(1));
    record.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    record.extend_from_slice(name);
    record.resize(length, 0);
    record
}

/// Little endian, then big endian: how this format writes every number.
fn both_u32(number: usize) -> [u8; 8] {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn both_u16(number: u16) -> [u8; 4] {
    let mut bytes = [0; 4];
    bytes[..2].copy_from_slice(&number.to_le_bytes());
    bytes[2..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// The length of a path table with nothing but the root.
const PATH_TABLE_SIZE: usize = 10;

fn path_table(root: usize, short: fn(u16) -> [u8; 2], long: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let mut table = vec![1, 0];
    table.extend_from_slice(&long(u32::try_from(root).unwrap_or(u32::MAX)));
    table.extend_from_slice(&short(1));
    table.extend_from_slice(&[0, 0]);
    table
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tree {
    Plain,
    Joliet,
}

/// A volume descriptor; offsets are those of ECMA-119, 8.4 and 8.5.
fn descriptor(
    tree: Tree,
    label: &str,
    sectors: usize,
    table: usize,
    root: usize,
    root_size: usize,
) -> Vec<u8> {
    let mut bytes = vec![0; SECTOR];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &[if tree == Tree::Plain { 1 } else { 2 }]);
    put(1, b"CD001");
    put(6, &[1]);
    for (at, length, text) in [
        (8, 32, ""),
        (40, 32, label),
        (190, 128, ""),
        (318, 128, ""),
        (446, 128, ""),
        (574, 128, "STRATA"),
        (702, 37, ""),
        (739, 37, ""),
        (776, 37, ""),
    ] {
        put(at, &padded(tree, text, length));
    }
    put(80, &both_u32(sectors));
    if tree == Tree::Joliet {
        // UCS-2, level 3.
        put(88, b"%/E");
    }
    put(120, &both_u16(1));
    put(124, &both_u16(1));
    put(128, &both_u16(SECTOR as u16));
    put(132, &both_u32(PATH_TABLE_SIZE));
    put(140, &u32::try_from(table).unwrap_or(u32::MAX).to_le_bytes());
    put(148, &u32::try_from(table + 1).unwrap_or(u32::MAX).to_be_bytes());
    put(156, &record(&[0], root, root_size, 2));
    // Four dates that are not given.
    for at in [813, 830, 847, 864] {
        put(at, b"0000000000000000\0");
    }
    put(881, &[1]);
    bytes
}

/// A text field, filled with blanks.
fn padded(tree: Tree, text: &str, length: usize) -> Vec<u8> {
    let mut bytes = match tree {
        Tree::Plain => text.as_bytes().to_vec(),
        Tree::Joliet => wide(text),
    };
    bytes.truncate(length);
    while bytes.len() < length {
        match tree {
            Tree::Joliet if bytes.len() + 2 <= length => bytes.extend_from_slice(&[0, b' ']),
            Tree::Joliet => bytes.push(0),
            Tree::Plain => bytes.push(b' '),
        }
    }
    bytes
}

fn terminator() -> Vec<u8> {
    let mut bytes = vec![0; SECTOR];
    bytes[..7].copy_from_slice(&[255, b'C', b'D', b'0', b'0', b'1', 1]);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reader that knows nothing of the writer: finds the Joliet tree and lists its root.
    fn read(image: &[u8]) -> (String, BTreeMap<String, Vec<u8>>) {
        let le = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let be = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
        let text = |bytes: &[u8]| {
            let units: Vec<u16> =
                bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
            String::from_utf16(&units).unwrap()
        };
        let joliet =
            (16..).map(|sector| &image[sector * 2048..][..2048]).find(|sector| sector[0] == 2).unwrap();
        assert_eq!((&joliet[1..6], &joliet[88..91]), (&b"CD001"[..], &b"%/E"[..]));
        assert_eq!(le(&joliet[80..]) * 2048, image.len());
        let root = &joliet[156..190];
        let (start, size) = (le(&root[2..]) * 2048, le(&root[10..]));
        assert_eq!((be(&root[6..]) * 2048, be(&root[14..])), (start, size));
        let mut files = BTreeMap::new();
        let mut at = start;
        while at < start + size {
            let length = usize::from(image[at]);
            if length == 0 {
                at = (at / 2048 + 1) * 2048;
                continue;
            }
            let record = &image[at..at + length];
            let name = &record[33..33 + usize::from(record[32])];
            if record[25] & 2 == 0 {
                let content = &image[le(&record[2..]) * 2048..][..le(&record[10..])];
                files.insert(text(name).trim_end_matches(";1").to_owned(), content.to_vec());
            }
            at += length;
        }
        (text(&joliet[40..72]).trim_end().to_owned(), files)
    }

    fn files(list: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        list.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn names_and_contents_read_back() {
        let files = files(&[
            ("user-data", "#cloud-config\n"),
            ("meta-data", "instance-id: a\n"),
            ("vendor-data", ""),
            ("network-config", &"x".repeat(5000)),
        ]);
        assert_eq!(read(&write("cidata", &files)), ("cidata".to_owned(), files));
    }

    #[test]
    fn equal_files_give_equal_bytes() {
        let one = files(&[("user-data", "a"), ("meta-data", "b")]);
        assert_eq!(write("cidata", &one), write("cidata", &one.clone()));
        assert_ne!(write("cidata", &one), write("cidata", &files(&[("user-data", "a"), ("meta-data", "c")])));
    }

    #[test]
    fn the_plain_tree_has_the_label_and_unique_names() {
        let image = write("cidata", &files(&[("a-b", "1"), ("a_b", "2")]));
        assert_eq!(&image[16 * 2048 + 40..][..8], b"cidata  ");
        let root = &image[23 * 2048..24 * 2048];
        let has = |name: &[u8]| root.windows(name.len()).any(|window| window == name);
        assert!(has(b"A_B.;1") && has(b"A_B1.;1"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_few_files_read_back(
            files in prop::collection::btree_map("[a-z][a-z0-9._-]{0,40}", prop::collection::vec(any::<u8>(), 0..6000), 0..60)
        ) {
            prop_assert_eq!(read(&write("cidata", &files)).1, files);
        }
    }
}
