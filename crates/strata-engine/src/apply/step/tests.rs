use super::*;

/// The journal names what was begun by the digest of its spec: another spec, another digest.
#[test]
fn the_digest_of_a_spec_tells_specs_apart() {
    let spec = |vmid: u32| -> Spec { [("vmid".to_owned(), Value::from(i64::from(vmid)))].into() };
    assert_eq!(spec_digest(&spec(1)), spec_digest(&spec(1)));
    assert_ne!(spec_digest(&spec(1)), spec_digest(&spec(2)));
    assert_eq!(spec_digest(&spec(1)).len(), 64);
}
