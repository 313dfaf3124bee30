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
