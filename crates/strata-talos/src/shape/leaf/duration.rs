//! Durations as Go reads and writes them: `1h30m`, written `1h30m0s`.

const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("h", 3600e9), ("m", 60e9), ("s", 1e9)];

/// The duration as Go writes it; `None` if it is none.
pub(super) fn canonical(text: &str) -> Option<String> {
    parse(text).map(format)
}

fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0i64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, scale) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        let part = number * scale;
        if !(0.0..9.2e18).contains(&part) {
            return None;
        }
        total = total.checked_add(part.round() as i64)?;
    }
    Some(if negative { -total } else { total })
}

fn format(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    if total == 0 {
        return "0s".to_owned();
    }
    if total < 1_000_000_000 {
        let (unit, scale) = match total {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!("{sign}{}{unit}", decimal(total, scale));
    }
    let seconds = total / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let rest = decimal(total % 60_000_000_000, 1_000_000_000);
    if hours > 0 {
        format!("{sign}{hours}h{minutes}m{rest}s")
    } else if minutes > 0 {
        format!("{sign}{minutes}m{rest}s")
    } else {
        format!("{sign}{rest}s")
    }
}

/// `number / scale` without trailing zeros.
fn decimal(number: u64, scale: u64) -> String {
    let (whole, fraction) = (number / scale, number % scale);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    format!("{whole}.{fraction:0width$}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_go_writes_it() {
        for (text, written) in [
            ("168h", "168h0m0s"),
            ("90s", "1m30s"),
            ("1.5h", "1h30m0s"),
            ("1500ms", "1.5s"),
            ("250us", "250µs"),
            ("7ns", "7ns"),
            ("0", "0s"),
            ("-2m", "-2m0s"),
            ("1h1ms", "1h0m0.001s"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(written), "{text}");
        }
        for bad in ["", "5", "h", "5x", "-", "1e99h", "5m3"] {
            assert_eq!(canonical(bad), None, "{bad}");
        }
    }
}
