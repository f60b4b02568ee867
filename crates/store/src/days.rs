//! Local days and months as ranges of time.

use jiff::{Timestamp, ToSpan, Zoned, civil::Date, tz::TimeZone};
use wakati_protocol::units::UnixMillis;

/// The local day that holds `at`: from its first moment to the first moment of the next one.
/// On the days on which the clocks change it has 23 or 25 hours.
#[must_use]
pub fn day(at: UnixMillis, zone: &TimeZone) -> (UnixMillis, UnixMillis) {
    let date = local(at, zone).date();
    (start(date, zone), start(date.saturating_add(1.day()), zone))
}

/// The local month that holds `at`, from its first moment to the first moment of the next one.
#[must_use]
pub fn month(at: UnixMillis, zone: &TimeZone) -> (UnixMillis, UnixMillis) {
    let first = local(at, zone).date().first_of_month();
    (start(first, zone), start(first.saturating_add(1.month()), zone))
}

fn local(at: UnixMillis, zone: &TimeZone) -> Zoned {
    Timestamp::from_millisecond(at.0).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(zone.clone())
}

fn start(date: Date, zone: &TimeZone) -> UnixMillis {
    // Only a date at the very end of the calendar has no first moment.
    let first = date.to_zoned(zone.clone()).map_or(i64::MAX, |zoned| zoned.timestamp().as_millisecond());
    UnixMillis(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_23_24_or_25_hours_in_berlin() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (at, hours) in
            [("2026-03-29T12:00:00Z", 23), ("2026-06-01T23:30:00Z", 24), ("2026-10-25T12:00:00Z", 25)]
        {
            let at = UnixMillis(at.parse::<Timestamp>().unwrap().as_millisecond());
            let (from, to) = day(at, &zone);
            assert!(from <= at && at < to);
            assert_eq!(to.0 - from.0, hours * 3_600_000);
        }
    }

    #[test]
    fn half_past_eleven_at_night_utc_is_tomorrow_in_nairobi() {
        let zone = TimeZone::posix("EAT-3").unwrap();
        let at = UnixMillis("2026-06-30T23:30:00Z".parse::<Timestamp>().unwrap().as_millisecond());
        let first_of_july = "2026-06-30T21:00:00Z".parse::<Timestamp>().unwrap().as_millisecond();
        assert_eq!(day(at, &zone).0, UnixMillis(first_of_july));
        assert_eq!(month(at, &zone).0, UnixMillis(first_of_july));
    }
}
