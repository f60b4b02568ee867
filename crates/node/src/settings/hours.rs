//! The owner's calendar as it is written in the settings.

use jiff::civil::{Date, Time, Weekday};
use wakati_agent::{Exception, Window};

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// Reads `mon-fri 22:00-06:00`, `sat,sun 00:00-24:00` or `daily 01:00-07:00`. A window that ends at or before its
/// start ends on the next day.
pub(super) fn window(text: &str) -> Option<Window> {
    let (days, hours) = text.trim().split_once(' ')?;
    let (from, to) = times(hours)?;
    Some(Window { days: weekdays(days)?, from, to })
}

/// Reads `2026-12-24` (a day without serving) or `2026-12-31 10:00-12:00 20:00-22:00`.
pub(super) fn exception(text: &str) -> Option<Exception> {
    let mut words = text.split_whitespace();
    let date: Date = words.next()?.parse().ok()?;
    Some(Exception { date, windows: words.map(times).collect::<Option<_>>()? })
}

fn weekdays(text: &str) -> Option<Vec<Weekday>> {
    if text == "daily" {
        return Some(DAYS.map(|(_, day)| day).to_vec());
    }
    let number = |name: &str| DAYS.iter().position(|(known, _)| *known == name);
    let mut days = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        // From Saturday to Monday goes over the end of the week.
        let span = (last + 7 - first) % 7;
        days.extend((first..=first + span).map(|day| DAYS[day % 7].1));
    }
    Some(days)
}

fn times(text: &str) -> Option<(Time, Time)> {
    let (from, to) = text.trim().split_once('-')?;
    let time = |text: &str| if text == "24:00" { Some(Time::midnight()) } else { text.parse().ok() };
    Some((time(from)?, time(to)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_as_people_write_them() {
        let read = |text: &str| {
            let Window { days, from, to } = window(text)?;
            Some((days.len(), from.to_string(), to.to_string()))
        };
        let some = |days, from: &str, to: &str| Some((days, format!("{from}:00"), format!("{to}:00")));
        assert_eq!(read("mon-fri 22:00-06:00"), some(5, "22:00", "06:00"));
        assert_eq!(read("sat,sun 00:00-24:00"), some(2, "00:00", "00:00"));
        assert_eq!(read("sat-mon 08:30-10:00"), some(3, "08:30", "10:00"));
        assert_eq!(read("daily 01:00-07:00"), some(7, "01:00", "07:00"));
        for wrong in ["", "mon", "mon 22:00", "someday 22:00-23:00", "mon 25:00-26:00", "mon-fri22:00-06:00"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_exception_is_a_day_with_other_windows_or_none() {
        assert_eq!(exception("2026-12-24").unwrap().windows, []);
        assert_eq!(exception("2026-12-31 10:00-12:00 20:00-22:00").unwrap().windows.len(), 2);
        assert_eq!(exception("2026-13-01"), None);
        assert_eq!(exception("2026-12-31 10:00"), None);
    }
}
