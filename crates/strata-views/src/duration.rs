//! Durations as people write them.

use std::time::Duration;

/// `90`, `90s`, `10m`, `1h30m`: at most a day.
pub fn read_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a duration is such as `30s`, `10m` or `1h30m`".to_owned();
    let mut seconds: u64 = 0;
    let mut number = String::new();
    for letter in text.trim().chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        let unit = match letter {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            _ => return Err(wrong()),
        };
        let amount: u64 = number.parse().map_err(|_| wrong())?;
        number.clear();
        seconds = amount.checked_mul(unit).and_then(|more| seconds.checked_add(more)).ok_or_else(wrong)?;
    }
    if !number.is_empty() {
        let amount: u64 = number.parse().map_err(|_| wrong())?;
        seconds = seconds.checked_add(amount).ok_or_else(wrong)?;
    } else if text.trim().is_empty() {
        return Err(wrong());
    }
    if seconds > 24 * 3600 {
        return Err("nobody waits longer than a day".to_owned());
    }
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, seconds) in
            [("0", 0), ("90", 90), ("30s", 30), ("10m", 600), ("1h30m", 5400), (" 2h ", 7200)]
        {
            assert_eq!(read_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "s", "m5", "-1", "1d", "ten", "25h", "99999999999999999999s", "1.5h"] {
            assert!(read_duration(text).is_err(), "{text}");
        }
    }
}
