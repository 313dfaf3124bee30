//! The file that etcd keeps its data in: buckets of keys and values in the pages of a B+ tree, written whole and read whole.
//!
//! Only what a snapshot needs: nothing is free in it, and nothing in it ever changes.

use std::collections::BTreeMap;

const PAGE: usize = 4096;
const MAGIC: u32 = 0xED0C_DAED;
const FORMAT: u32 = 2;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const META: u16 = 0x04;
const FREE: u16 = 0x10;
/// Number, kind, count of entries and count of further pages.
const HEAD: usize = 16;
/// An entry of a page: where its key is, and what belongs to it.
const ENTRY: usize = 16;
/// The value of this entry is a bucket.
const IS_BUCKET: u32 = 1;
/// Two pages say where everything begins, one that nothing is free.
const FIRST: u64 = 3;
/// A tree of pages is never deeper than this.
const MOST_DEPTH: usize = 32;

pub type Bucket = BTreeMap<Vec<u8>, Vec<u8>>;
pub type Buckets = BTreeMap<Vec<u8>, Bucket>;

/// Something that stands in a page: what its entry begins with, its key, and its value.
struct Entry {
    flags: u32,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Entry {
    fn size(&self) -> usize {
        ENTRY + self.key.len() + self.value.len()
    }
}

pub fn write(buckets: &Buckets) -> Vec<u8> {
    let mut file = vec![0; PAGE * FIRST as usize];
    let mut named = Vec::new();
    for (name, bucket) in buckets {
        let entries = bucket.iter().map(|(k, v)| Entry { flags: 0, key: k.clone(), value: v.clone() });
        let root = tree(&mut file, entries.collect());
        let value = [root.to_le_bytes(), 0_u64.to_le_bytes()].concat();
        named.push(Entry { flags: IS_BUCKET, key: name.clone(), value });
    }
    let root = tree(&mut file, named);
    let pages = (file.len() / PAGE) as u64;
    for number in 0..2_u64 {
        let mut meta = Vec::new();
        for word in [MAGIC, FORMAT, PAGE as u32, 0] {
            meta.extend_from_slice(&word.to_le_bytes());
        }
        for word in [root, 0, FIRST - 1, pages, number] {
            meta.extend_from_slice(&word.to_le_bytes());
        }
        let sum = checksum(&meta);
        meta.extend_from_slice(&sum.to_le_bytes());
        put(&mut file, number, META, 0, &meta);
    }
    put(&mut file, FIRST - 1, FREE, 0, &[]);
    file
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Writes a page over what is there.
fn put(file: &mut [u8], number: u64, kind: u16, count: usize, body: &[u8]) {
    let further = (HEAD + body.len()).div_ceil(PAGE) as u32 - 1;
    let mut page = number.to_le_bytes().to_vec();
    page.extend_from_slice(&kind.to_le_bytes());
    page.extend_from_slice(&(count as u16).to_le_bytes());
    page.extend_from_slice(&further.to_le_bytes());
    page.extend_from_slice(body);
    let start = number as usize * PAGE;
    file[start..start + page.len()].copy_from_slice(&page);
}

fn append(file: &mut Vec<u8>, kind: u16, count: usize, body: &[u8]) -> u64 {
    let number = (file.len() / PAGE) as u64;
    file.resize(file.len() + (HEAD + body.len()).div_ceil(PAGE) * PAGE, 0);
    put(file, number, kind, count, body);
    number
}

/// Entries for one page each: as many as fit, and at least one.
fn portions(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let mut portions: Vec<Vec<Entry>> = vec![Vec::new()];
    let mut size = HEAD;
    for entry in entries {
        size += entry.size();
        if size > PAGE && portions.last().is_some_and(|last| !last.is_empty()) {
            portions.push(Vec::new());
            size = HEAD + entry.size();
        }
        if let Some(last) = portions.last_mut() {
            last.push(entry);
        }
    }
    portions
}

/// Writes entries in the order of their keys, with branches above them, and gives the page to begin at.
fn tree(file: &mut Vec<u8>, mut entries: Vec<Entry>) -> u64 {
    let mut kind = LEAF;
    loop {
        let mut above = Vec::new();
        let mut last = 0;
        for portion in portions(entries) {
            let key = portion.first().map(|entry| entry.key.clone()).unwrap_or_default();
            last = page(file, kind, &portion);
            above.push(Entry { flags: 0, key, value: last.to_le_bytes().to_vec() });
        }
        if above.len() == 1 {
            return last;
        }
        (kind, entries) = (BRANCH, above);
    }
}

fn page(file: &mut Vec<u8>, kind: u16, entries: &[Entry]) -> u64 {
    let mut table = Vec::new();
    let mut content: Vec<u8> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        // Where the key is, counted from this entry on.
        let place = ((entries.len() - index) * ENTRY + content.len()) as u32;
        let length = entry.key.len() as u32;
        content.extend_from_slice(&entry.key);
        if kind == BRANCH {
            table.extend_from_slice(&place.to_le_bytes());
            table.extend_from_slice(&length.to_le_bytes());
            table.extend_from_slice(&entry.value);
        } else {
            for word in [entry.flags, place, length, entry.value.len() as u32] {
                table.extend_from_slice(&word.to_le_bytes());
            }
            content.extend_from_slice(&entry.value);
        }
    }
    table.extend_from_slice(&content);
    append(file, kind, entries.len(), &table)
}

/// The buckets of a file, or nothing if it is none of etcd's.
pub fn read(file: &[u8]) -> Option<Buckets> {
    let root = (0..2).filter_map(|number| meta(file, number)).max()?.1;
    let mut buckets = Buckets::new();
    for (flags, name, value) in leaves(file, root, 0)? {
        if flags != IS_BUCKET {
            return None;
        }
        let entries = match u64_at(value, 0)? {
            // A small bucket stands in its own entry.
            0 => page_leaves(value.get(HEAD..)?)?,
            root => leaves(file, root, 0)?,
        };
        let entries = entries.into_iter().map(|(_, key, value)| (key.to_vec(), value.to_vec()));
        buckets.insert(name.to_vec(), entries.collect());
    }
    Some(buckets)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// What kind of page begins here, and how many entries it has.
fn kind_and_count(bytes: &[u8]) -> Option<(u16, usize)> {
    let word = u32_at(bytes, 8)?;
    Some(((word & 0xffff) as u16, (word >> 16) as usize))
}

/// The transaction that wrote a meta page, and where the buckets begin, if the page is whole.
fn meta(file: &[u8], number: usize) -> Option<(u64, u64)> {
    let meta = file.get(number * PAGE + HEAD..number * PAGE + HEAD + 64)?;
    let known = u32_at(meta, 0)? == MAGIC && u32_at(meta, 4)? == FORMAT && u32_at(meta, 8)? == PAGE as u32;
    (known && u64_at(meta, 56)? == checksum(&meta[..56])).then_some((u64_at(meta, 48)?, u64_at(meta, 16)?))
}

type Leaf<'f> = (u32, &'f [u8], &'f [u8]);

/// Every entry below a page, in order.
fn leaves(file: &[u8], page: u64, depth: usize) -> Option<Vec<Leaf<'_>>> {
    let start = usize::try_from(page).ok()?.checked_mul(PAGE)?;
    let bytes = file.get(start..)?;
    match kind_and_count(bytes)? {
        (LEAF, _) => page_leaves(bytes),
        (BRANCH, count) if depth < MOST_DEPTH => {
            let mut all = Vec::new();
            for index in 0..count {
                all.extend(leaves(file, u64_at(bytes, HEAD + index * ENTRY + 8)?, depth + 1)?);
            }
            Some(all)
        }
        _ => None,
    }
}

fn page_leaves(bytes: &[u8]) -> Option<Vec<Leaf<'_>>> {
    let mut all = Vec::new();
    for index in 0..kind_and_count(bytes)?.1 {
        let at = HEAD + index * ENTRY;
        let [flags, place, key, value] =
            [0, 4, 8, 12].map(|offset| u32_at(bytes, at + offset).map(|word| word as usize));
        let start = at.checked_add(place?)?;
        let middle = start.checked_add(key?)?;
        let end = middle.checked_add(value?)?;
        all.push((flags? as u32, bytes.get(start..middle)?, bytes.get(middle..end)?));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: u32, size: usize) -> Bucket {
        (0..count)
            .map(|number| (number.to_be_bytes().to_vec(), vec![number as u8; size + number as usize % 7]))
            .collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let buckets = Buckets::from([
            (b"empty".to_vec(), Bucket::new()),
            (b"many".to_vec(), numbered(5000, 100)),
            (b"large".to_vec(), numbered(9, 20_000)),
        ]);
        let file = write(&buckets);
        assert_eq!(file.len() % PAGE, 0);
        assert_eq!(read(&file), Some(buckets));
    }

    #[test]
    fn a_damaged_file_is_none() {
        let file = write(&Buckets::from([(b"key".to_vec(), numbered(300, 50))]));
        assert_eq!(read(&[]), None);
        assert_eq!(read(&file[..PAGE * 4]), None);
        let mut damaged = file.clone();
        damaged[HEAD] ^= 1;
        damaged[PAGE + HEAD] ^= 1;
        assert_eq!(read(&damaged), None);
        // Whatever a byte becomes, it is read or refused, and nothing else happens.
        for at in (0..file.len()).step_by(13) {
            let mut damaged = file.clone();
            damaged[at] = !damaged[at];
            let _ = read(&damaged);
        }
    }
}
