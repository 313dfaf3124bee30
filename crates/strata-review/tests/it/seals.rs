//! A sealed plan is read by its recipients, taken from its signers, and refused after any change.

use strata_review::sealed::{SealError, SealedPlan};
use strata_review::signing::{PublicKey, RunnerKey};
use strata_secret::SecretString;
use strata_secrets::{Identities, Recipient, generate_identity};

use crate::comments::nothing_planned;

fn runner(seed: u8) -> RunnerKey {
    RunnerKey::generate(&mut move |bytes: &mut [u8]| bytes.fill(seed)).unwrap().0
}

fn reader() -> (Identities, Recipient) {
    let (identity, recipient) = generate_identity();
    (Identities::parse(&identity).unwrap(), Recipient::parse(&recipient).unwrap())
}

#[test]
fn only_the_signed_file_is_opened_and_only_by_its_recipients() {
    let ((own, recipient), (stranger, _)) = (reader(), reader());
    let (key, other) = (runner(1), runner(2));
    let reviewed = nothing_planned();
    let sealed = SealedPlan::seal(&reviewed, "the comment", &[recipient], &key).unwrap();
    let sealed = SealedPlan::parse(&sealed.bytes()).unwrap();
    assert!(!String::from_utf8(sealed.bytes()).unwrap().contains("stacks/web"));
    let runners: Vec<PublicKey> = vec![other.public(), key.public()];
    sealed.check(&runners).unwrap();
    let opened = sealed.open(&own, "0.1.0").unwrap();
    assert_eq!((opened.digest(), opened.commit), (sealed.digest.clone(), reviewed.commit.clone()));
    assert!(matches!(sealed.open(&stranger, "0.1.0"), Err(SealError::Age(_))));
    assert!(matches!(sealed.open(&own, "0.2.0"), Err(SealError::Version(_))));
    assert!(matches!(sealed.check(&runners[..1]), Err(SealError::Signer)));
    let edits: [fn(&mut SealedPlan); 5] = [
        |sealed| sealed.strata.push('1'),
        |sealed| sealed.digest = "0".repeat(64),
        |sealed| sealed.comment = "0".repeat(64),
        |sealed| sealed.content.push('\n'),
        |sealed| sealed.signature = sealed.signature.to_lowercase(),
    ];
    for edit in edits {
        let mut changed = sealed.clone();
        edit(&mut changed);
        assert!(matches!(changed.check(&runners), Err(SealError::Signature)), "{changed:?}");
    }
    // Somebody else's signature under the name of a runner.
    let (_, second) = reader();
    let mut forged = SealedPlan::seal(&reviewed, "the comment", &[second], &other).unwrap();
    forged.signer = key.public().to_string();
    assert!(matches!(forged.check(&[key.public()]), Err(SealError::Signature)));
}

#[test]
fn the_content_is_what_the_digest_says_even_if_the_signer_lies() {
    let (own, recipient) = reader();
    let key = runner(1);
    let reviewed = nothing_planned();
    let good = SealedPlan::seal(&reviewed, "", std::slice::from_ref(&recipient), &key).unwrap();
    let mut other = nothing_planned();
    other.commit = "0".repeat(40);
    let mut swapped = SealedPlan::seal(&other, "", &[recipient], &key).unwrap();
    swapped.digest.clone_from(&good.digest);
    assert!(matches!(swapped.open(&own, "0.1.0"), Err(SealError::Content)));
    assert!(SealedPlan::parse(b"{}").is_err() && SealedPlan::parse(b"age-encryption.org/v1").is_err());
    let newer = format!("{{\"format\": 9, \"strata\": \"{}\"}}", "1.0.0");
    assert!(matches!(SealedPlan::parse(newer.as_bytes()), Err(SealError::Format { format: 9, .. })));
    assert!(RunnerKey::parse(&SecretString::new("x")).is_err());
}
