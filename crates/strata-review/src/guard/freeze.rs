//! Times in which nothing is applied, by the clock on the wall of their own zone.

use jiff::civil::Weekday as Day;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use strata_source::settings::review::{Freeze, Review, Weekday, minutes};

use crate::finding::Finding;

/// The freezes that this moment is in. A zone that nobody knows freezes: its times could be any.
pub fn frozen(review: Option<&Review>, now: Timestamp) -> Vec<Finding> {
    let mut found = Vec::new();
    for freeze in review.into_iter().flat_map(|review| &review.freezes) {
        let span = format!("{}–{} {}", freeze.from, freeze.to, freeze.time_zone);
        let why = freeze.reason.as_deref().unwrap_or("nothing is applied now");
        match TimeZone::get(&freeze.time_zone) {
            Ok(zone) if is_in(freeze, &now.to_zoned(zone.clone())) => {
                found.push(Finding::error("freezes", span, why));
            }
            Ok(_) => {}
            Err(error) => {
                let message = format!("nobody knows this time zone: {error}");
                found.push(Finding::error("freezes", freeze.time_zone.clone(), message));
            }
        }
    }
    found
}

fn is_in(freeze: &Freeze, now: &Zoned) -> bool {
    let (Some(from), Some(to)) = (minutes(&freeze.from), minutes(&freeze.to)) else { return true };
    let minute = u32::from(now.hour().unsigned_abs()) * 60 + u32::from(now.minute().unsigned_abs());
    let begins_on = |day: Day| freeze.days.is_empty() || freeze.days.iter().any(|own| of(*own) == day);
    let today = now.weekday();
    if from < to {
        return begins_on(today) && (from..to).contains(&minute);
    }
    begins_on(today) && minute >= from || begins_on(today.previous()) && minute < to
}

fn of(day: Weekday) -> Day {
    match day {
        Weekday::Monday => Day::Monday,
        Weekday::Tuesday => Day::Tuesday,
        Weekday::Wednesday => Day::Wednesday,
        Weekday::Thursday => Day::Thursday,
        Weekday::Friday => Day::Friday,
        Weekday::Saturday => Day::Saturday,
        Weekday::Sunday => Day::Sunday,
    }
}

#[cfg(test)]
mod tests {
    use strata_source::Repository;
    use strata_source::world::Memory;

    use super::*;

    fn freeze(text: &str) -> Freeze {
        let settings = format!("repository: demo1\nreview: {{freezes: [{text}]}}\n");
        let (repository, _) = Repository::load(&Memory::new().file("strata.yaml", settings));
        repository.settings.review.expect("it has one").freezes.remove(0)
    }

    fn at(time: &str, freeze: &Freeze) -> bool {
        let time: Timestamp = time.parse().expect("a time");
        is_in(freeze, &time.to_zoned(TimeZone::UTC))
    }

    #[test]
    fn a_freeze_over_midnight_belongs_to_the_day_on_which_it_begins() {
        // 2026-11-20 is a Friday.
        let weekend = freeze("{days: [friday], from: '16:00', to: '08:00', timeZone: UTC}");
        assert!(!at("2026-11-20T15:59:00Z", &weekend) && at("2026-11-20T16:00:00Z", &weekend));
        assert!(at("2026-11-21T07:59:00Z", &weekend) && !at("2026-11-21T08:00:00Z", &weekend));
        assert!(!at("2026-11-20T07:00:00Z", &weekend) && !at("2026-11-21T17:00:00Z", &weekend));
        let daily = freeze("{from: '12:00', to: '13:00', timeZone: UTC}");
        assert!(at("2026-11-18T12:30:00Z", &daily) && !at("2026-11-18T13:00:00Z", &daily));
        let whole = freeze("{days: [sunday], from: '00:00', to: '00:00', timeZone: UTC}");
        assert!(at("2026-11-22T13:00:00Z", &whole) && !at("2026-11-23T00:00:00Z", &whole));
    }
}
