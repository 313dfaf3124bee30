//! Times as Go reads and writes them: what counts as one in YAML, and its RFC 3339 form.

struct Reader<'t>(&'t str);

impl Reader<'_> {
    /// A number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<u32> {
        let digits = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if digits < least {
            return None;
        }
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        number.parse().ok()
    }

    fn take(&mut self, literal: char) -> Option<()> {
        self.0 = self.0.strip_prefix(literal)?;
        Some(())
    }
}

/// A time in one of the forms that Go's YAML library takes for one, as RFC 3339.
pub(crate) fn parse_yaml_timestamp(text: &str) -> Option<String> {
    let mut reader = Reader(text);
    let date = read_date(&mut reader, 1)?;
    if reader.0.is_empty() {
        return Some(format!("{date}T00:00:00Z"));
    }
    if reader.take(' ').is_some() {
        let time = read_clock(&mut reader, 1)?;
        return reader.0.is_empty().then(|| format!("{date}T{time}Z"));
    }
    reader.take('T').or_else(|| reader.take('t'))?;
    let time = read_clock(&mut reader, 1)?;
    let zone = read_zone(&mut reader)?;
    reader.0.is_empty().then(|| format!("{date}T{time}{zone}"))
}

/// A time in RFC 3339, in its shortest form.
pub(crate) fn parse_rfc3339(text: &str) -> Option<String> {
    let mut reader = Reader(text);
    let date = read_date(&mut reader, 2)?;
    reader.take('T')?;
    let time = read_clock(&mut reader, 2)?;
    let zone = read_zone(&mut reader)?;
    reader.0.is_empty().then(|| format!("{date}T{time}{zone}"))
}

/// The same time without the fraction of its second: what the MAC of a file is bound to.
pub(crate) fn whole_seconds(rfc3339: &str) -> Option<String> {
    let time = parse_rfc3339(rfc3339)?;
    let Some((head, tail)) = time.split_once('.') else { return Some(time) };
    Some(format!("{head}{}", tail.trim_start_matches(|c: char| c.is_ascii_digit())))
}

fn read_date(reader: &mut Reader, least: usize) -> Option<String> {
    let year = reader.number(4, 4)?;
    reader.take('-')?;
    let month = reader.number(least, 2)?;
    reader.take('-')?;
    let day = reader.number(least, 2)?;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

fn read_clock(reader: &mut Reader, least: usize) -> Option<String> {
    let hour = reader.number(least, 2)?;
    reader.take(':')?;
    let minute = reader.number(least, 2)?;
    reader.take(':')?;
    let second = reader.number(least, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut time = format!("{hour:02}:{minute:02}:{second:02}");
    if reader.take('.').is_some() {
        let digits = reader.0.bytes().take_while(u8::is_ascii_digit).count();
        let (fraction, rest) = reader.0.split_at(digits);
        reader.0 = rest;
        if fraction.is_empty() {
            return None;
        }
        // Go keeps nanoseconds and writes no zeros at the end.
        let kept = fraction[..fraction.len().min(9)].trim_end_matches('0');
        if !kept.is_empty() {
            time = format!("{time}.{kept}");
        }
    }
    Some(time)
}

fn read_zone(reader: &mut Reader) -> Option<String> {
    if reader.take('Z').is_some() {
        return Some("Z".to_owned());
    }
    let sign = if reader.take('+').is_some() { '+' } else { reader.take('-').map(|()| '-')? };
    let hours = reader.number(2, 2)?;
    reader.take(':')?;
    let minutes = reader.number(2, 2)?;
    if hours > 23 || minutes > 59 {
        return None;
    }
    if hours == 0 && minutes == 0 {
        Some("Z".to_owned())
    } else {
        Some(format!("{sign}{hours:02}:{minutes:02}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_takes_these_for_times() {
        for (text, time) in [
            ("2026-01-02", "2026-01-02T00:00:00Z"),
            ("2026-1-2", "2026-01-02T00:00:00Z"),
            ("2026-01-02 3:04:05", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.1200Z", "2026-01-02T03:04:05.12Z"),
            ("2026-01-02t03:04:05+02:00", "2026-01-02T03:04:05+02:00"),
            ("2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05Z"),
            ("2024-02-29", "2024-02-29T00:00:00Z"),
        ] {
            assert_eq!(parse_yaml_timestamp(text).as_deref(), Some(time), "{text}");
        }
    }

    #[test]
    fn and_these_for_text() {
        for text in [
            "2026",
            "2026-",
            "2026-13-01",
            "2026-02-29",
            "2026-01-02T03:04:05",
            "2026-01-02 03:04:05Z",
            "2026-01-02x",
            "02026-01-02",
            "2026-01-02T24:00:00Z",
            "2026-01-02T03:04:05.Z",
        ] {
            assert_eq!(parse_yaml_timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn the_fraction_is_dropped_for_the_mac() {
        assert_eq!(whole_seconds("2026-01-02T03:04:05.5Z").as_deref(), Some("2026-01-02T03:04:05Z"));
        assert_eq!(whole_seconds("2026-01-02T03:04:05+01:00").as_deref(), Some("2026-01-02T03:04:05+01:00"));
        assert_eq!(whole_seconds("yesterday"), None);
    }
}
