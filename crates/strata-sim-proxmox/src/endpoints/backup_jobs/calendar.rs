//! Calendar events: `sun 01:00`, `mon..fri 22:30`, `*/2:00`, `*-*-1 03:00` and the like.

use jiff::{Span, Timestamp, tz::TimeZone};

const DAYS: &[(&str, &str)] = &[
    ("mon", "monday"),
    ("tue", "tuesday"),
    ("wed", "wednesday"),
    ("thu", "thursday"),
    ("fri", "friday"),
    ("sat", "saturday"),
    ("sun", "sunday"),
];

/// 0 is Monday.
fn day_number(text: &str) -> Option<i8> {
    let lower = text.to_ascii_lowercase();
    let at = DAYS.iter().position(|(short, long)| lower == *short || lower == *long)?;
    i8::try_from(at).ok()
}

pub fn weekday(value: &str) -> Result<(), String> {
    if DAYS.iter().any(|(short, _)| *short == value) {
        return Ok(());
    }
    Err(format!("invalid day '{value}'\n"))
}

pub fn event(value: &str) -> Result<(), String> {
    if Event::parse(value).is_some() {
        return Ok(());
    }
    Err(format!("invalid calendar event '{value}' - unable to parse calendar event\n\n"))
}

/// When something happens; empty lists mean always.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    year: Option<i16>,
    days: Vec<i8>,
    months: Vec<i8>,
    month_days: Vec<i8>,
    hours: Vec<i8>,
    minutes: Vec<i8>,
}

/// `*`, `5`, `1..4`, `*/2`, `0/15` and lists of those, below a limit.
fn numbers(text: &str, limit: i8) -> Option<Vec<i8>> {
    let mut all = Vec::new();
    if text == "*" {
        return Some(all);
    }
    for part in text.split(',') {
        if let Some((start, step)) = part.split_once('/') {
            let start = if start == "*" { 0 } else { start.parse::<i8>().ok()? };
            let step = step.parse::<usize>().ok().filter(|step| *step > 0)?;
            all.extend((start..limit).step_by(step));
        } else if let Some((from, to)) = part.split_once("..") {
            all.extend(from.parse::<i8>().ok()?..=to.parse::<i8>().ok()?);
        } else {
            all.push(part.parse().ok()?);
        }
    }
    all.iter().all(|n| (0..limit).contains(n)).then_some(all)
}

fn week_days(text: &str) -> Option<Vec<i8>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((from, to)) => all.extend(day_number(from)?..=day_number(to)?),
            None => all.push(day_number(part)?),
        }
    }
    (!all.is_empty()).then_some(all)
}

impl Event {
    pub fn parse(text: &str) -> Option<Self> {
        let midnight = || Self { hours: vec![0], minutes: vec![0], ..Self::default() };
        match text {
            "minutely" => return Some(Self::default()),
            "hourly" => return Some(Self { minutes: vec![0], ..Self::default() }),
            "daily" => return Some(midnight()),
            "weekly" => return Some(Self { days: vec![0], ..midnight() }),
            "monthly" => return Some(Self { month_days: vec![1], ..midnight() }),
            "yearly" | "annually" => {
                return Some(Self { months: vec![1], month_days: vec![1], ..midnight() });
            }
            _ => {}
        }
        let mut event = midnight();
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            return None;
        }
        for (at, word) in words.iter().enumerate() {
            if at == 0
                && let Some(days) = week_days(word)
            {
                event.days = days;
            } else if word.contains('-') {
                let parts: Vec<&str> = word.split('-').collect();
                let (year, month, day) = match parts.as_slice() {
                    [year, month, day] => (*year, month, day),
                    [month, day] => ("*", month, day),
                    _ => return None,
                };
                event.year = if year == "*" { None } else { Some(year.parse().ok()?) };
                event.months = numbers(month, 13)?;
                event.month_days = numbers(day, 32)?;
            } else if let Some((hours, minutes)) = word.split_once(':') {
                event.hours = numbers(hours, 24)?;
                event.minutes = numbers(minutes.split(':').next()?, 60)?;
            } else {
                // A bare number or step is about minutes.
                event.hours = Vec::new();
                event.minutes = numbers(word, 60)?;
            }
        }
        Some(event)
    }

    /// The first time after `now`, within four years.
    pub fn next(&self, now: i64) -> Option<i64> {
        let has = |list: &[i8], n: i8| list.is_empty() || list.contains(&n);
        let start = Timestamp::from_second(now).ok()?.to_zoned(TimeZone::UTC);
        let mut date = start.date();
        for _ in 0..1500 {
            let day = date.weekday().to_monday_zero_offset();
            let year = self.year.is_none_or(|year| year == date.year());
            let in_month = has(&self.months, date.month()) && has(&self.month_days, date.day());
            if year && in_month && has(&self.days, day) {
                for hour in (0..24).filter(|hour| has(&self.hours, *hour)) {
                    for minute in (0..60).filter(|minute| has(&self.minutes, *minute)) {
                        let at = date.at(hour, minute, 0, 0).to_zoned(TimeZone::UTC).ok()?;
                        if at.timestamp().as_second() > now {
                            return Some(at.timestamp().as_second());
                        }
                    }
                }
            }
            date = date.checked_add(Span::new().days(1)).ok()?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_a_next_time() {
        // Sunday, 2026-11-15 19:41:06 UTC.
        let now = 1_794_771_666;
        let next = |text: &str| Event::parse(text).and_then(|event| event.next(now));
        assert_eq!(next("sun 01:00"), Some(1_795_309_200));
        assert_eq!(next("20:00"), Some(1_794_772_800));
        assert_eq!(next("*:0/15"), Some(1_794_771_900));
        assert_eq!(next("hourly"), Some(1_794_772_800));
        assert_eq!(next("2030-01-01"), Some(1_893_456_000));
        assert_eq!(Event::parse("nonsense"), None);
    }
}
