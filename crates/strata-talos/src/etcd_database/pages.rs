//! The pages of a bbolt file: buckets of keys and values in a B+ tree. Only read, and whatever is damaged is refused.

const MAGIC: u32 = 0xED0C_DAED;
const FORMAT: u32 = 2;
/// A page begins with its number, kind, count of entries and count of further pages.
const HEAD: usize = 16;
const META: usize = 64;
const ENTRY: usize = 16;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const IS_BUCKET: u32 = 1;
/// The sizes of pages that machines have.
const SIZES: [usize; 5] = [4096, 8192, 16_384, 32_768, 65_536];

/// A key and its value.
pub(super) type Pair<'f> = (&'f [u8], &'f [u8]);

pub(super) struct Pages<'f> {
    file: &'f [u8],
    size: usize,
    root: u64,
}

/// An entry of a leaf.
struct Leaf<'f> {
    flags: u32,
    key: &'f [u8],
    value: &'f [u8],
}

impl<'f> Pages<'f> {
    /// The newest of the two meta pages that is whole says where everything begins.
    pub(super) fn open(file: &'f [u8]) -> Option<Self> {
        let metas = SIZES.iter().flat_map(|size| [(0, *size), (*size, *size)]);
        let newest = metas
            .filter_map(|(at, size)| meta(file, at, size))
            .max_by_key(|(transaction, ..)| *transaction)?;
        let (_, root, size) = newest;
        Some(Self { file, size, root })
    }

    /// The pairs of a bucket, in order. Nothing if the file has no such bucket or is damaged.
    pub(super) fn bucket(&self, name: &[u8]) -> Option<Vec<Pair<'f>>> {
        let entry = self.leaves(self.root)?.into_iter().find(|leaf| leaf.key == name)?;
        if entry.flags != IS_BUCKET {
            return None;
        }
        let leaves = match u64_at(entry.value, 0)? {
            // A small bucket stands in its own entry.
            0 => leaves_of(entry.value.get(HEAD..)?)?,
            root => self.leaves(root)?,
        };
        Some(leaves.into_iter().map(|leaf| (leaf.key, leaf.value)).collect())
    }

    /// Every entry below a page. A page that leads back to itself would be seen more often than there are pages.
    fn leaves(&self, root: u64) -> Option<Vec<Leaf<'f>>> {
        let mut left = self.file.len() / self.size;
        let mut waiting = vec![root];
        let mut found = Vec::new();
        while let Some(page) = waiting.pop() {
            left = left.checked_sub(1)?;
            let bytes = self.file.get(usize::try_from(page).ok()?.checked_mul(self.size)?..)?;
            match kind_and_count(bytes)? {
                (LEAF, _) => found.extend(leaves_of(bytes)?),
                (BRANCH, count) => {
                    // The last is taken first: they are put in backwards.
                    for index in (0..count).rev() {
                        waiting.push(u64_at(bytes, HEAD + index * ENTRY + 8)?);
                    }
                }
                _ => return None,
            }
        }
        Some(found)
    }
}

/// The transaction that wrote a meta page, the page at which the buckets begin, and the size of pages.
fn meta(file: &[u8], at: usize, size: usize) -> Option<(u64, u64, usize)> {
    let meta = file.get(at.checked_add(HEAD)?..)?.get(..META)?;
    let known = u32_at(meta, 0)? == MAGIC && u32_at(meta, 4)? == FORMAT && u32_at(meta, 8)? as usize == size;
    (known && u64_at(meta, 56)? == checksum(&meta[..56])).then_some((
        u64_at(meta, 48)?,
        u64_at(meta, 16)?,
        size,
    ))
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn leaves_of(page: &[u8]) -> Option<Vec<Leaf<'_>>> {
    let (kind, count) = kind_and_count(page)?;
    if kind != LEAF {
        return None;
    }
    let leaf = |index: usize| {
        let at = HEAD + index * ENTRY;
        let number = |offset: usize| u32_at(page, at + offset);
        // Where the key is, counted from this entry on.
        let start = at.checked_add(number(4)? as usize)?;
        let middle = start.checked_add(number(8)? as usize)?;
        let end = middle.checked_add(number(12)? as usize)?;
        Some(Leaf { flags: number(0)?, key: page.get(start..middle)?, value: page.get(middle..end)? })
    };
    (0..count).map(leaf).collect()
}

fn kind_and_count(page: &[u8]) -> Option<(u16, usize)> {
    let word = u32_at(page, 8)?;
    Some(((word & 0xffff) as u16, (word >> 16) as usize))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
