//! Sizes of volumes: `2G`, `528K`, `1.5T` and plain bytes.

const UNITS: [(char, i64); 4] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

/// Bytes of a size text; none if it is no size.
pub(crate) fn from_size_text(text: &str) -> Option<i64> {
    let text = text.trim();
    let last = text.chars().last()?.to_ascii_uppercase();
    let (digits, unit) = match UNITS.iter().find(|(name, _)| *name == last) {
        Some((_, unit)) => (&text[..text.len() - 1], *unit),
        None => (text, 1),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 12 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole = whole.parse::<i64>().ok()?.checked_mul(unit)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let scale = 10i128.pow(u32::try_from(fraction.len()).ok()?);
    let part = i128::from(fraction.parse::<i64>().ok()?) * i128::from(unit) / scale;
    whole.checked_add(i64::try_from(part).ok()?)
}

/// The shortest exact text of so many bytes, as the server writes it.
pub(crate) fn to_size_text(bytes: i64) -> String {
    match UNITS.iter().find(|(_, unit)| bytes != 0 && bytes % unit == 0) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// GiB as a decimal number: how a new volume is asked for. Exact, and rounded up where it cannot be.
pub(crate) fn to_gib(bytes: i64) -> String {
    const GIB: i128 = 1 << 30;
    const PLACES: i128 = 1_000_000_000;
    let bytes = i128::from(bytes);
    let fraction = ((bytes % GIB) * PLACES + GIB - 1) / GIB;
    let (whole, fraction) = (bytes / GIB + fraction / PLACES, fraction % PLACES);
    if fraction == 0 {
        return whole.to_string();
    }
    let digits = format!("{fraction:09}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_server_writes() {
        for (text, bytes) in [
            ("2G", Some(2 << 30)),
            ("528K", Some(528 << 10)),
            ("64M", Some(64 << 20)),
            ("1T", Some(1 << 40)),
            ("540672", Some(540_672)),
            ("1.5G", Some(3 << 29)),
            ("", None),
            ("G", None),
            ("-1G", None),
            ("1X", None),
            ("99999999999T", None),
        ] {
            assert_eq!(from_size_text(text), bytes, "{text}");
        }
    }

    #[test]
    fn writes_the_largest_unit_that_fits() {
        assert_eq!(to_size_text(2 << 30), "2G");
        assert_eq!(to_size_text(528 << 10), "528K");
        assert_eq!(to_size_text(1025), "1025");
        for bytes in [1, 1 << 10, 5 << 20, 7 << 30, 3 << 40, 12345] {
            assert_eq!(from_size_text(&to_size_text(bytes)), Some(bytes));
        }
    }

    #[test]
    fn asks_for_gibibytes() {
        assert_eq!(to_gib(40 << 30), "40");
        assert_eq!(to_gib(3 << 29), "1.5");
        assert_eq!(to_gib(64 << 20), "0.0625");
        assert_eq!(to_gib(1), "0.000000001");
    }
}
