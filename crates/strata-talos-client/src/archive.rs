//! A gzipped tar with one file in it: the form in which a node hands out its kubeconfig.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use strata_secret::SecretBytes;
use zeroize::Zeroizing;

const BLOCK: usize = 512;

/// The content of the first file. The node does not end its archive as tar would, so that nothing after the file is looked at.
pub(crate) fn only_file(archive: &[u8], largest: usize) -> Option<SecretBytes> {
    let mut tar = Zeroizing::new(Vec::new());
    let limit = u64::try_from(largest + BLOCK).ok()?;
    MultiGzDecoder::new(archive).take(limit).read_to_end(&mut tar).ok()?;
    let (header, content) = tar.split_at_checked(BLOCK)?;
    let size = std::str::from_utf8(&header[124..136]).ok()?;
    let size = usize::from_str_radix(size.trim_matches(['\0', ' ']), 8).ok()?;
    // A regular file, in either of the two ways to say so.
    let regular = matches!(header[156], b'0' | 0);
    regular.then(|| content.get(..size).map(SecretBytes::new)).flatten()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn archive(size: &str, content: &[u8]) -> Vec<u8> {
        let mut header = [0; BLOCK];
        header[..10].copy_from_slice(b"kubeconfig");
        header[124..124 + size.len()].copy_from_slice(size.as_bytes());
        header[156] = b'0';
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&header).unwrap();
        gzip.write_all(content).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn takes_the_file_out() {
        let file = only_file(&archive("00000000005\0", b"hello"), 100).unwrap();
        assert_eq!(file.expose(), b"hello");
        assert!(only_file(&archive("00000000006\0", b"hello"), 100).is_none());
        assert!(only_file(&archive("zzzz", b"hello"), 100).is_none());
        assert!(only_file(&archive("00000000005\0", b"hello"), 4).is_none());
        for damaged in [&b""[..], b"plain text", &archive("00000000005\0", b"hello")[..20]] {
            assert!(only_file(damaged, 100).is_none());
        }
    }
}
