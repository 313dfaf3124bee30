//! What is found under URLs: nothing here ever leaves the machine.

use sha2::{Digest, Sha256};

/// The content of a URL that is not on the loopback: some kilobytes that follow from the URL. Nothing is found where
/// the URL says so itself.
pub fn synthetic(url: &str) -> Option<Vec<u8>> {
    if url.contains("/missing/") {
        return None;
    }
    let seed = Sha256::digest(url.as_bytes());
    let blocks = 2048 + u32::from(u16::from_be_bytes([seed[0], seed[1]]) % 6144);
    let mut content = Vec::with_capacity(blocks as usize * 32);
    for block in 0..blocks {
        let mut hash = Sha256::new();
        hash.update(seed);
        hash.update(block.to_be_bytes());
        content.extend_from_slice(&hash.finalize());
    }
    Some(content)
}
