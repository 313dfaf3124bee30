//! The few pieces of DER that keys are re-encoded with.

use zeroize::Zeroizing;

const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// A P-256 key by RFC 5915, with its public key where that is known.
pub(super) fn ec_key(scalar: &[u8; 32], public: Option<&[u8]>) -> Zeroizing<Vec<u8>> {
    let mut body = Zeroizing::new(vec![0x02, 0x01, 0x01, 0x04, 0x20]);
    body.extend_from_slice(scalar);
    body.extend([0xa0, 0x0a]);
    body.extend(P256);
    if let Some(public) = public {
        let length = u8::try_from(public.len() + 1).expect("a point of P-256 has 65 bytes");
        body.extend([0xa1, length + 2, 0x03, length, 0x00]);
        body.extend_from_slice(public);
    }
    let mut der =
        Zeroizing::new(vec![0x30, u8::try_from(body.len()).expect("such a key is shorter than 128 bytes")]);
    der.extend_from_slice(&body);
    der
}

/// An Ed25519 key by RFC 8410, without its public key.
pub(super) fn ed25519_key(seed: &[u8; 32]) -> Zeroizing<Vec<u8>> {
    let mut der = Zeroizing::new(vec![
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
    ]);
    der.extend_from_slice(seed);
    der
}

/// The key inside a PKCS #8 envelope.
pub(super) fn inside_pkcs8(der: &[u8]) -> Option<&[u8]> {
    let (envelope, _) = element(der, 0x30)?;
    let (_version, rest) = element(envelope, 0x02)?;
    let (_algorithm, rest) = element(rest, 0x30)?;
    Some(element(rest, 0x04)?.0)
}

/// The content of the first element, which must have this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let bytes = usize::from(first & 0x7f);
        let (length, rest) = rest.split_at_checked(bytes).filter(|_| (1..=4).contains(&bytes))?;
        (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
    };
    (*found == tag).then(|| rest.split_at_checked(length)).flatten()
}
