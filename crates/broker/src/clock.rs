//! The wall clock, as the books and the API write it.

use wakati_protocol::units::UnixMillis;

/// Now.
pub fn now() -> UnixMillis {
    UnixMillis(jiff::Timestamp::now().as_millisecond())
}
