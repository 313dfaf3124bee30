//! Calendar events: `sun 01:00`, `mon..fri 22:30`, `*/2:00`, `*-*-1 03:00` and the like. They are read as the original reads them, one
//! part after the other, so that what cannot be read is named where it begins.

use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};

const DAYS: [(&str, &str); 7] = [
    ("mon", "monday"),
    ("tue", "tuesday"),
    ("wed", "wednesday"),
    ("thu", "thursday"),
    ("fri", "friday"),
    ("sat", "saturday"),
    ("sun", "sunday"),
];

/// How many days ahead an event is looked for.
const FAR: usize = 366 * 40;

pub fn weekday(value: &str) -> Result<(), String> {
    if DAYS.iter().any(|(short, _)| *short == value) {
        return Ok(());
    }
    Err(format!("invalid day '{value}'\n"))
}

/// The check of a parameter.
pub fn event(value: &str) -> Result<(), String> {
    Event::read(value).map(drop).map_err(|why| {
        let (at, what) = (why.at, why.what);
        format!("invalid calendar event '{value}' - unable to parse calendar event at '{at}' - {what}\n\n")
    })
}

/// A time of day with an end, `mon..fri 8:00-16:00`; the error says what cannot be read.
pub fn daily(value: &str) -> Result<(), String> {
    let read = || -> Result<(), Unread<'_>> {
        let skip = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
        let mut rest = value;
        if value.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let (after, _) = list(value, days)?;
            rest = &after[skip(after)..];
        }
        let (rest, start) = hour_and_minute(rest)?;
        let rest = after(&rest[skip(rest)..], '-')?;
        let end_at = &rest[skip(rest)..];
        let (rest, end) = hour_and_minute(end_at)?;
        if start > end {
            return expected(end_at, "end time before start time");
        }
        if rest.is_empty() { Ok(()) } else { broken(rest, "Eof") }
    };
    read().map_err(|why| format!("unable to parse daily duration at '{}' - {}", why.at, why.what))
}

fn hour_and_minute(text: &str) -> Read<'_, (u32, u32)> {
    let (rest, hour) = number(text, 24)?;
    let minute = after(rest, ':').and_then(|rest| number(rest, 60));
    let (rest, minute) = minute.unwrap_or((rest, 0));
    Ok((rest, (hour, minute)))
}

/// Where a text could not be read any further, and what was expected.
#[derive(Debug, Clone, PartialEq)]
struct Unread<'t> {
    at: &'t str,
    what: String,
}

fn expected<'t, T>(at: &'t str, what: &str) -> Result<T, Unread<'t>> {
    Err(Unread { at, what: format!("Context({what:?})") })
}

fn broken<'t, T>(at: &'t str, what: &str) -> Result<T, Unread<'t>> {
    Err(Unread { at, what: format!("Nom({what})") })
}

type Read<'t, T> = Result<(&'t str, T), Unread<'t>>;

/// From, to, in steps of; a value alone goes to itself.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    from: u32,
    to: u32,
    step: u32,
}

impl Span {
    fn has(&self, n: u32) -> bool {
        let stepped = if self.step == 0 {
            n == self.from
        } else {
            (n.wrapping_sub(self.from)).is_multiple_of(self.step)
        };
        n >= self.from && n <= self.to && stepped
    }
}

/// When something happens; empty lists mean always.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    days: Vec<u32>,
    years: Vec<Span>,
    months: Vec<Span>,
    month_days: Vec<Span>,
    hours: Vec<Span>,
    minutes: Vec<Span>,
    seconds: Vec<Span>,
}

fn single(n: u32) -> Vec<Span> {
    vec![Span { from: n, to: n, step: 1 }]
}

fn number(text: &str, limit: u32) -> Read<'_, u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    match digits.parse::<u32>() {
        Err(_) if digits.is_empty() => broken(text, "Digit"),
        Err(_) => broken(text, "MapRes"),
        Ok(n) if n >= limit => expected(rest, "time value too large"),
        Ok(n) => Ok((rest, n)),
    }
}

/// `5`, `1..4`, `0/15`, `8..16/2`.
fn span(text: &str, limit: u32) -> Read<'_, Span> {
    let (mut rest, from) = number(text, limit)?;
    let mut to = None;
    if let Some((after, end)) = rest.strip_prefix("..").and_then(|end| number(end, limit).ok()) {
        if from > end {
            return expected(after, "range start is bigger than end");
        }
        (rest, to) = (after, Some(end));
    }
    match rest.strip_prefix('/') {
        Some(step) => {
            let (rest, step) = number(step, limit)?;
            Ok((rest, Span { from, to: to.unwrap_or(limit - 1), step }))
        }
        None => Ok((rest, Span { from, to: to.unwrap_or(from), step: 1 })),
    }
}

/// `*`, `*/2`, or a list.
fn spans(text: &str, start: u32, limit: u32) -> Read<'_, Vec<Span>> {
    if let Some(rest) = text.strip_prefix('*') {
        if let Some(step) = rest.strip_prefix('/') {
            let (rest, step) = number(step, limit)?;
            if step > 0 {
                return Ok((rest, vec![Span { from: start, to: limit - 1, step }]));
            }
        }
        return Ok((rest, Vec::new()));
    }
    list(text, |part| span(part, limit))
}

/// Parts between commas. A comma after which nothing can be read belongs to what comes next.
fn list<'t, T>(text: &'t str, part: impl Fn(&'t str) -> Read<'t, T>) -> Read<'t, Vec<T>> {
    let (mut rest, first) = part(text)?;
    let mut all = vec![first];
    while let Some(Ok((after, next))) = rest.strip_prefix(',').map(&part) {
        all.push(next);
        rest = after;
    }
    Ok((rest, all))
}

fn day(text: &str) -> Read<'_, u32> {
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if word.is_empty() {
        return broken(text, "Alpha");
    }
    let lower = word.to_ascii_lowercase();
    match DAYS.iter().position(|(short, long)| lower == *short || lower == *long) {
        Some(at) => Ok((rest, u32::try_from(at).unwrap_or_default())),
        None => expected(word, "weekday"),
    }
}

/// `mon`, `mon..fri`; `sat..mon` goes over the end of the week.
fn days(text: &str) -> Read<'_, Vec<u32>> {
    let (rest, first) = day(text)?;
    match rest.strip_prefix("..").and_then(|end| day(end).ok()) {
        Some((rest, last)) => {
            let count = (last + 7 - first) % 7;
            Ok((rest, (0..=count).map(|n| (first + n) % 7).collect()))
        }
        None => Ok((rest, vec![first])),
    }
}

fn after<'t>(text: &'t str, sign: char) -> Result<&'t str, Unread<'t>> {
    text.strip_prefix(sign).map_or_else(|| broken(text, "Tag"), Ok)
}

type DateParts = (Vec<Span>, Vec<Span>, Vec<Span>);

/// `YEAR-MONTH-DAY` or `MONTH-DAY`.
fn date(text: &str) -> Option<(&str, DateParts)> {
    let whole = || -> Read<'_, DateParts> {
        let (rest, years) = spans(text, 0, 2200)?;
        let (rest, months) = spans(after(rest, '-')?, 1, 13)?;
        let (rest, days) = spans(after(rest, '-')?, 1, 32)?;
        Ok((rest, (years, months, days)))
    };
    let short = || -> Read<'_, DateParts> {
        let (rest, months) = spans(text, 1, 13)?;
        let (rest, days) = spans(after(rest, '-')?, 1, 32)?;
        Ok((rest, (Vec::new(), months, days)))
    };
    whole().or_else(|_| short()).ok()
}

/// `HOUR:MINUTE`, `MINUTE`, each with `:SECOND`.
fn time(text: &str) -> Option<(&str, DateParts)> {
    let hours = spans(text, 0, 24).and_then(|(rest, hours)| Ok((after(rest, ':')?, hours)));
    let (rest, hours) = hours.unwrap_or((text, Vec::new()));
    let (rest, minutes) = spans(rest, 0, 60).ok()?;
    let seconds = after(rest, ':').and_then(|rest| spans(rest, 0, 60));
    let (rest, seconds) = seconds.unwrap_or((rest, single(0)));
    Some((rest, (hours, minutes, seconds)))
}

impl Event {
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(text).ok()
    }

    fn named(text: &str) -> Option<Self> {
        let midnight =
            || Self { hours: single(0), minutes: single(0), seconds: single(0), ..Self::default() };
        let of_months = |months: &[u32]| Self {
            months: months.iter().flat_map(|month| single(*month)).collect(),
            month_days: single(1),
            ..midnight()
        };
        Some(match text {
            "minutely" => Self { seconds: single(0), ..Self::default() },
            "hourly" => Self { minutes: single(0), seconds: single(0), ..Self::default() },
            "daily" => midnight(),
            "weekly" => Self { days: vec![0], ..midnight() },
            "monthly" => of_months(&[]),
            "yearly" | "annually" => of_months(&[1]),
            "quarterly" => of_months(&[1, 4, 7, 10]),
            "semiannually" | "semi-annually" => of_months(&[1, 7]),
            _ => return None,
        })
    }

    fn read(text: &str) -> Result<Self, Unread<'_>> {
        if let Some(event) = Self::named(text) {
            return Ok(event);
        }
        let mut event = Self::named("daily").unwrap_or_default();
        let (mut rest, mut said) = (text, false);
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let (after, found) = list(text, days)?;
            event.days = found.concat();
            (rest, said) = (after.trim_start_matches([' ', '\t']), true);
        }
        if let Some((after, (years, months, days))) = date(rest) {
            (event.years, event.months, event.month_days) = (years, months, days);
            (rest, said) = (after.trim_start_matches([' ', '\t']), true);
        }
        if let Some((after, (hours, minutes, seconds))) = time(rest) {
            (event.hours, event.minutes, event.seconds) = (hours, minutes, seconds);
            (rest, said) = (after, true);
        }
        if !said {
            return expected(rest, "date or time specification");
        }
        if rest.is_empty() { Ok(event) } else { broken(rest, "Eof") }
    }

    fn is_on(&self, date: Date) -> bool {
        let has = |list: &[Span], n: i64| {
            list.is_empty() || u32::try_from(n).is_ok_and(|n| list.iter().any(|span| span.has(n)))
        };
        let day = u32::try_from(date.weekday().to_monday_zero_offset()).unwrap_or_default();
        has(&self.years, date.year().into())
            && has(&self.months, date.month().into())
            && has(&self.month_days, date.day().into())
            && (self.days.is_empty() || self.days.contains(&day))
    }

    /// The first time after `now`, if there is one.
    pub fn next(&self, now: i64) -> Option<i64> {
        let has = |list: &[Span], n: i8| {
            list.is_empty() || u32::try_from(n).is_ok_and(|n| list.iter().any(|span| span.has(n)))
        };
        let start = Timestamp::from_second(now).ok()?.to_zoned(TimeZone::UTC);
        let last = self.years.iter().map(|span| span.to).max();
        let mut date = start.date();
        for _ in 0..FAR {
            if last.is_some_and(|last| u32::try_from(date.year()).is_ok_and(|year| year > last)) {
                return None;
            }
            if self.is_on(date) {
                let day = date.at(0, 0, 0, 0).to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
                for hour in (0..24).filter(|n| has(&self.hours, *n)) {
                    for minute in (0..60).filter(|n| has(&self.minutes, *n)) {
                        for second in (0..60).filter(|n| has(&self.seconds, *n)) {
                            let at =
                                day + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
                            if at > now {
                                return Some(at);
                            }
                        }
                    }
                }
            }
            date = date.tomorrow().ok()?;
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
        assert_eq!(next("2020-01-01"), None);
        assert_eq!(next("sat *-1..7 15:00"), Some(1_796_482_800));
        assert_eq!(next("sat..mon 19:41:7..30/3"), Some(1_794_771_667));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let told = |text: &str| event(text).unwrap_err().split(" - ").skip(1).collect::<Vec<_>>().join(" - ");
        assert_eq!(told("each day"), "unable to parse calendar event at 'each' - Context(\"weekday\")\n\n");
        assert_eq!(told("sun 23..1:00"), "unable to parse calendar event at '23..1:00' - Nom(Eof)\n\n");
        assert!(event("25:00").is_ok(), "a minute and a second");
        assert_eq!(
            told("%"),
            "unable to parse calendar event at '%' - Context(\"date or time specification\")\n\n"
        );
    }
}
