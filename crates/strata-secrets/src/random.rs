//! The operating system's randomness, for those who need no replay.

use strata_secret::RandomSource;

/// Fills from the operating system's generator.
pub struct OsRandom;

impl RandomSource for OsRandom {
    fn fill(&mut self, buffer: &mut [u8]) {
        getrandom::fill(buffer).expect("the operating system's random generator works");
    }
}
