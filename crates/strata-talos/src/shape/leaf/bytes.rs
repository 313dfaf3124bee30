//! Sizes as people write them: `10GB`, `10 GiB`, `1024`.

use crate::tree::Value;

const POWERS: [&str; 6] = ["k", "m", "g", "t", "p", "e"];

/// The number of bytes; `None` if it is no size.
pub(super) fn parse(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(text.len());
    let number: f64 = text[..end].replace(',', "").parse().ok()?;
    let scale = scale(&text[end..].trim().to_ascii_lowercase())?;
    let bytes = number * scale;
    (0.0..1.8e19).contains(&bytes).then_some(bytes as u64)
}

fn scale(unit: &str) -> Option<f64> {
    if matches!(unit, "" | "b") {
        return Some(1.0);
    }
    let unit = unit.strip_suffix('b').unwrap_or(unit);
    let (power, base) = match unit.strip_suffix('i') {
        Some(power) => (power, 1024.0f64),
        None => (unit, 1000.0),
    };
    let exponent = POWERS.iter().position(|name| *name == power)? + 1;
    Some(base.powi(i32::try_from(exponent).ok()?))
}

/// As people write it if nothing is lost that way, otherwise the number.
pub(super) fn human(bytes: u64) -> Value {
    let mut scaled = bytes as f64;
    let mut unit = "B";
    for next in ["kB", "MB", "GB", "TB", "PB", "EB"] {
        if scaled < 1000.0 {
            break;
        }
        scaled /= 1000.0;
        unit = next;
    }
    let digits = if scaled < 10.0 && unit != "B" { 1 } else { 0 };
    let text = format!("{scaled:.digits$} {unit}");
    match parse(&text) {
        Some(same) if same == bytes && bytes.is_multiple_of(1000) => Value::text(text),
        _ => Value::Int(i128::from(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_decimal_and_binary_units() {
        for (text, bytes) in [
            ("1024", 1024),
            ("10GB", 10_000_000_000),
            ("1 GiB", 1 << 30),
            ("1.5k", 1500),
            ("2mib", 2 << 20),
            ("5B", 5),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for bad in ["", "GB", "10XB", "-1", "1.2.3"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert!(human(1_500_000_000) == Value::text("1.5 GB"));
        assert!(human(1 << 30) == Value::Int(1 << 30));
    }
}
