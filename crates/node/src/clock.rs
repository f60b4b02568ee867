//! The wall clock.

use wakati_protocol::units::UnixMillis;

/// Now.
#[must_use]
pub fn now() -> UnixMillis {
    UnixMillis(jiff::Timestamp::now().as_millisecond())
}

/// Now, as it stands in file names: `20260131T235959Z`.
#[must_use]
pub fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}
