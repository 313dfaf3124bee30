//! Where randomness comes from: it is passed in, so that a run can be replayed from a seed.

/// A source of random bytes. Any `FnMut(&mut [u8])` is one.
///
/// Keys and nonces are drawn from it, so outside of tests it must be the operating system's generator.
pub trait RandomSource {
    /// Fills the whole buffer.
    fn fill(&mut self, buffer: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> RandomSource for F {
    fn fill(&mut self, buffer: &mut [u8]) {
        self(buffer);
    }
}
