use super::*;

/// An operation that failed has done something as soon as one write was allowed that nobody proved to have done nothing.
#[test]
fn a_write_counts_until_it_is_refused_or_undone() {
    let writes = Writes::default();
    assert!(!writes.any());
    writes.refused();
    writes.allowed();
    assert!(writes.any(), "a refusal that nobody asked for hides no write");
    writes.refused();
    assert!(!writes.any());
    writes.allowed();
    writes.allowed();
    writes.refused();
    assert!(writes.any(), "one of the two was answered");
    writes.undone();
    assert!(!writes.any());
}

/// The journal names what was begun by the digest of its spec: another spec, another digest.
#[test]
fn the_digest_of_a_spec_tells_specs_apart() {
    let spec = |vmid: u32| -> Spec { [("vmid".to_owned(), Value::from(i64::from(vmid)))].into() };
    assert_eq!(spec_digest(&spec(1)), spec_digest(&spec(1)));
    assert_ne!(spec_digest(&spec(1)), spec_digest(&spec(2)));
    assert_eq!(spec_digest(&spec(1)).len(), 64);
}
