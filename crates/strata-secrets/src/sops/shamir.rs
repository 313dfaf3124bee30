//! Shamir's secret sharing over GF(2⁸), byte by byte; a share ends with its x coordinate.

use strata_secret::RandomSource;
use zeroize::Zeroizing;

type Share = Zeroizing<Vec<u8>>;

/// Splits a secret into `parts` shares of which any `threshold` give it back; `None` unless 2 ≤ threshold ≤ parts ≤ 255.
pub(crate) fn split(
    secret: &[u8],
    parts: usize,
    threshold: usize,
    random: &mut dyn RandomSource,
) -> Option<Vec<Share>> {
    if threshold < 2 || threshold > parts || parts > 255 {
        return None;
    }
    let mut shares: Vec<Share> =
        (0..parts).map(|_| Zeroizing::new(Vec::with_capacity(secret.len() + 1))).collect();
    let mut coefficients = Zeroizing::new(vec![0; threshold]);
    for byte in secret {
        random.fill(&mut coefficients[1..]);
        coefficients[0] = *byte;
        for (index, share) in shares.iter_mut().enumerate() {
            share.push(evaluate(&coefficients, coordinate(index)));
        }
    }
    for (index, share) in shares.iter_mut().enumerate() {
        share.push(coordinate(index));
    }
    Some(shares)
}

/// Puts shares together again; `None` if they cannot belong together. Too few of them give a wrong secret, which
/// only the cipher that it is a key of can tell.
pub(crate) fn combine(shares: &[Share]) -> Option<Zeroizing<Vec<u8>>> {
    let length = shares.first()?.len();
    if shares.len() < 2 || length < 2 || shares.iter().any(|share| share.len() != length) {
        return None;
    }
    let xs: Vec<u8> = shares.iter().map(|share| share[length - 1]).collect();
    if xs.contains(&0) || (1..xs.len()).any(|index| xs[..index].contains(&xs[index])) {
        return None;
    }
    let secret = (0..length - 1).map(|position| {
        shares
            .iter()
            .enumerate()
            .fold(0, |sum, (index, share)| sum ^ multiply(share[position], weight(&xs, index)))
    });
    Some(Zeroizing::new(secret.collect()))
}

/// Zero is where the secret is, so the shares start at one.
fn coordinate(index: usize) -> u8 {
    u8::try_from(index + 1).expect("there are at most 255 shares")
}

fn evaluate(coefficients: &[u8], x: u8) -> u8 {
    coefficients.iter().rev().fold(0, |value, coefficient| multiply(value, x) ^ coefficient)
}

/// The Lagrange basis polynomial of one share, at zero.
fn weight(xs: &[u8], index: usize) -> u8 {
    let own = xs[index];
    xs.iter().filter(|x| **x != own).fold(1, |product, x| multiply(product, multiply(*x, inverse(*x ^ own))))
}

/// Multiplies in GF(2⁸) modulo x⁸+x⁴+x³+x+1, without branches on the operands.
fn multiply(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0, |product: u8, bit| {
        let reduced = (product << 1) ^ (0x1b & (product >> 7).wrapping_neg());
        reduced ^ (a & ((b >> bit) & 1).wrapping_neg())
    })
}

/// The inverse is the 254th power.
fn inverse(a: u8) -> u8 {
    (0..7).fold(1, |power, _| {
        let next = multiply(power, a);
        multiply(next, next)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_field_is_rijndaels() {
        assert_eq!(multiply(0x53, 0xca), 1);
        assert_eq!(multiply(0x57, 0x83), 0xc1);
        for a in 1..=255 {
            assert_eq!(multiply(a, inverse(a)), 1);
        }
    }

    #[test]
    fn impossible_splits_and_shares_are_refused() {
        let mut random = |buffer: &mut [u8]| buffer.fill(3);
        assert!(split(b"x", 2, 1, &mut random).is_none());
        assert!(split(b"x", 2, 3, &mut random).is_none());
        assert!(split(b"x", 256, 2, &mut random).is_none());
        let share = |bytes: &[u8]| Zeroizing::new(bytes.to_vec());
        assert!(combine(&[]).is_none());
        assert!(combine(&[share(&[1, 1])]).is_none());
        assert!(combine(&[share(&[1, 1]), share(&[2, 1])]).is_none());
        assert!(combine(&[share(&[1, 1]), share(&[2, 3, 2])]).is_none());
        assert!(combine(&[share(&[1, 0]), share(&[2, 1])]).is_none());
    }

    proptest! {
        #[test]
        fn any_threshold_of_the_shares_is_enough(
            secret in proptest::collection::vec(any::<u8>(), 1..40),
            seed: u8,
            (parts, threshold) in (2usize..8).prop_flat_map(|parts| (Just(parts), 2..=parts)),
            skip in 0usize..8,
        ) {
            let mut next = seed;
            let mut random = |buffer: &mut [u8]| buffer.iter_mut().for_each(|byte| {
                next = next.wrapping_mul(197).wrapping_add(91);
                *byte = next;
            });
            let shares = split(&secret, parts, threshold, &mut random).expect("a possible split");
            let chosen: Vec<_> = shares.iter().cycle().skip(skip % parts).take(threshold).cloned().collect();
            let combined = combine(&chosen).expect("distinct shares");
            prop_assert_eq!(combined.as_slice(), secret.as_slice());
        }
    }
}
