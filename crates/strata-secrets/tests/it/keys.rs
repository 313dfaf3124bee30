//! Throw-away keys for the tests.

use jiff::Timestamp;
use strata_secret::SecretString;
use strata_secrets::Identities;

/// An age key that guards nothing.
pub(crate) struct TestKey {
    pub(crate) secret: &'static str,
    pub(crate) recipient: &'static str,
}

pub(crate) const FIRST: TestKey = TestKey {
    secret: "AGE-SECRET-KEY-12WKRLFNW29HCC2RJ4WJ8XDXRDDD627GP3NWUDQFKZQ3SRAPW2P3SWDTK7Q",
    recipient: "age188rkalvvjzs82msmy7allq6u6dn5xzv8v0rekr754qftlalnzgss78k4ef",
};

pub(crate) const SECOND: TestKey = TestKey {
    secret: "AGE-SECRET-KEY-155VKMX3AP438026RV43C5DNL3YTTG79G3D5EMYN70DJ9PJ3U2DYS5T568E",
    recipient: "age1f9y64jh47tvl8mg3xy6t8t7q4rrjh4s6fuagrlhmylzpp9jfasqqrwp4aw",
};

/// A key of SSH that guards nothing.
pub(crate) const SSH: TestKey = TestKey {
    secret: include_str!("../fixtures/id_ed25519"),
    recipient: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFJXR0yWWP895gipJxM1+lwUDekkDik3MzOMbwUYSRJp throw-away",
};

/// When everything in the tests happens.
pub(crate) const NOW: Timestamp = Timestamp::UNIX_EPOCH;

impl TestKey {
    pub(crate) fn identities(&self) -> Identities {
        Identities::parse(&SecretString::from(self.secret)).expect("a key of age")
    }
}

/// Bytes that look random and are the same each time.
pub(crate) fn random(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    move |buffer: &mut [u8]| {
        for byte in buffer {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = (state >> 24) as u8;
        }
    }
}
