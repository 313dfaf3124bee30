//! Files of the `age` program.

use strata_secret::DigestKey;
use strata_secrets::{Recipient, unwrap_digest_key, wrap_digest_key};

use super::World;
use crate::keys::{FIRST, SECOND};

#[test]
#[ignore = "needs age: just interop age"]
fn age_opens_what_we_wrap_and_we_open_what_age_wraps() {
    let world = World::new();
    let key = DigestKey::generate(&mut |buffer: &mut [u8]| {
        buffer.copy_from_slice(b"0123456789abcdef0123456789abcdef")
    });
    let recipients =
        [FIRST.recipient, SECOND.recipient].map(|text| Recipient::parse(text).expect("a recipient"));
    let wrapped = wrap_digest_key(&key, &recipients).expect("two recipients");
    world.write("wrapped.age", wrapped.as_bytes());
    let opened =
        world.run("STRATA_AGE", "age", &["-d", "-i", "key.txt", "wrapped.age"], &[]).expect("opened");
    assert_eq!(opened, key.expose());
    world.write("key.bin", key.expose());
    let armored =
        world.run("STRATA_AGE", "age", &["-a", "-r", SECOND.recipient, "key.bin"], &[]).expect("encrypted");
    let armored = String::from_utf8(armored).expect("armor");
    assert!(unwrap_digest_key(&armored, &SECOND.identities()).expect("opened") == key);
}
