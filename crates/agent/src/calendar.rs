//! When the owner lets the machine serve: windows of the week, and exceptions for single days.
//!
//! A window is a stretch between two local times; one that ends at or before its start ends on the next day.
//! On the days on which the clocks change, a time that does not exist is taken one hour later and a time that exists
//! twice is its first: RFC 5545, 3.3.5, as jiff's "compatible" disambiguation does it.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};

/// Days ahead that are searched for the next change. A week repeats, so only exceptions could lie further away.
const HORIZON_DAYS: i64 = 15;

/// The owner's calendar. One without windows is always open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calendar {
    pub windows: Vec<Window>,
    pub exceptions: Vec<Exception>,
}

/// A stretch of serving that begins on these days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    pub days: Vec<Weekday>,
    pub from: Time,
    /// At or before `from`, it is on the next day: from 22:00 to 06:00, or from 00:00 to 00:00 for a whole day.
    pub to: Time,
}

/// One day on which the week does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    pub date: Date,
    /// Instead of the windows that begin on that day; empty is a day without serving.
    pub windows: Vec<(Time, Time)>,
}

impl Calendar {
    /// Whether it is open, and when that changes next; `None` when it never does within two weeks.
    #[must_use]
    pub fn at(&self, now: &Zoned) -> (bool, Option<Timestamp>) {
        if self.windows.is_empty() && self.exceptions.is_empty() {
            return (true, None);
        }
        let stretches = self.stretches(now);
        let moment = now.timestamp();
        let open = |at: Timestamp| stretches.iter().any(|(from, to)| *from <= at && at < *to);
        let is_open = open(moment);
        let mut edges: Vec<_> = stretches.iter().flat_map(|(from, to)| [*from, *to]).collect();
        edges.sort_unstable();
        let next = edges.into_iter().find(|edge| *edge > moment && open(*edge) != is_open);
        (is_open, next)
    }

    /// Every stretch that begins between yesterday and the horizon.
    fn stretches(&self, now: &Zoned) -> Vec<(Timestamp, Timestamp)> {
        let zone = now.time_zone();
        let days = (-1..HORIZON_DAYS).filter_map(|offset| now.date().checked_add(offset.days()).ok());
        days.flat_map(|date| self.of(date).into_iter().filter_map(move |times| stretch(date, times, zone)))
            .collect()
    }

    /// The windows that begin on this day.
    fn of(&self, date: Date) -> Vec<(Time, Time)> {
        if let Some(exception) = self.exceptions.iter().find(|exception| exception.date == date) {
            return exception.windows.clone();
        }
        if self.windows.is_empty() {
            return vec![(Time::midnight(), Time::midnight())];
        }
        let begins = self.windows.iter().filter(|window| window.days.contains(&date.weekday()));
        begins.map(|window| (window.from, window.to)).collect()
    }
}

fn stretch(date: Date, (from, to): (Time, Time), zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
    let last = if to <= from { date.checked_add(1.day()).ok()? } else { date };
    let moment = |date: Date, time: Time| date.to_datetime(time).to_zoned(zone.clone()).ok();
    Some((moment(date, from)?.timestamp(), moment(last, to)?.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central Europe's rule, spelled out so that no zone database is read.
    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn times(window: &str) -> (Time, Time) {
        let (from, to) = window.split_once('-').unwrap();
        (from.parse().unwrap(), to.parse().unwrap())
    }

    fn nights() -> Calendar {
        let (from, to) = times("22:00-06:00");
        let days = vec![Weekday::Monday, Weekday::Saturday];
        Calendar { windows: vec![Window { days, from, to }], exceptions: Vec::new() }
    }

    /// Whether it is open, and the local time of the next change.
    fn at(calendar: &Calendar, local: &str) -> (bool, String) {
        let now = local.parse::<jiff::civil::DateTime>().unwrap().to_zoned(berlin()).unwrap();
        let (open, next) = calendar.at(&now);
        let next = next.map(|next| next.to_zoned(berlin()).strftime("%a %H:%M %z").to_string());
        (open, next.unwrap_or_default())
    }

    #[test]
    fn a_night_that_begins_on_monday_ends_on_tuesday() {
        let calendar = nights();
        // 2026-06-01 is a Monday.
        for (local, open, next) in [
            ("2026-06-01T21:59", false, "Mon 22:00 +0200"),
            ("2026-06-01T22:00", true, "Tue 06:00 +0200"),
            ("2026-06-02T05:59", true, "Tue 06:00 +0200"),
            ("2026-06-02T06:00", false, "Sat 22:00 +0200"),
            ("2026-06-02T22:30", false, "Sat 22:00 +0200"),
        ] {
            assert_eq!(at(&calendar, local), (open, next.into()), "{local}");
        }
    }

    #[test]
    fn both_nights_on_which_the_clocks_change_end_at_six() {
        let calendar = nights();
        // The Sundays 2026-03-29 and 2026-10-25 have 23 and 25 hours.
        assert_eq!(at(&calendar, "2026-03-28T23:00"), (true, "Sun 06:00 +0200".into()));
        assert_eq!(at(&calendar, "2026-10-24T23:00"), (true, "Sun 06:00 +0100".into()));
    }

    #[test]
    fn an_hour_that_does_not_exist_or_exists_twice_begins_once() {
        let (from, to) = times("02:30-05:00");
        let calendar = Calendar {
            windows: vec![Window { days: vec![Weekday::Sunday], from, to }],
            exceptions: Vec::new(),
        };
        assert_eq!(at(&calendar, "2026-03-29T01:00"), (false, "Sun 03:30 +0200".into()));
        assert_eq!(at(&calendar, "2026-10-25T01:00"), (false, "Sun 02:30 +0200".into()));
    }

    #[test]
    fn an_exception_replaces_what_begins_on_its_day_and_no_more() {
        let mut calendar = nights();
        let date = "2026-06-06".parse().unwrap();
        calendar.exceptions.push(Exception { date, windows: Vec::new() });
        assert_eq!(at(&calendar, "2026-06-06T23:00"), (false, "Mon 22:00 +0200".into()));
        calendar.exceptions[0].windows.push(times("10:00-12:00"));
        assert_eq!(at(&calendar, "2026-06-06T10:00"), (true, "Sat 12:00 +0200".into()));
        // Monday's night is not touched by an exception on Tuesday.
        calendar.exceptions[0].date = "2026-06-02".parse().unwrap();
        assert_eq!(at(&calendar, "2026-06-02T01:00"), (true, "Tue 06:00 +0200".into()));
    }

    #[test]
    fn windows_that_touch_or_overlap_are_one() {
        let every = [
            Weekday::Monday,
            Weekday::Tuesday,
            Weekday::Wednesday,
            Weekday::Thursday,
            Weekday::Friday,
            Weekday::Saturday,
            Weekday::Sunday,
        ];
        let window = |text: &str| {
            let (from, to) = times(text);
            Window { days: every.to_vec(), from, to }
        };
        let mut calendar =
            Calendar { windows: vec![window("08:00-18:00"), window("17:00-22:00")], exceptions: Vec::new() };
        assert_eq!(at(&calendar, "2026-06-01T12:00"), (true, "Mon 22:00 +0200".into()));
        calendar.windows = vec![window("00:00-00:00")];
        assert!(at(&calendar, "2026-06-01T12:00").0);
        assert_eq!(at(&Calendar::default(), "2026-06-01T12:00"), (true, String::new()));
    }
}
