//! The machine's own log: one SQLite file that belongs to the owner.
//!
//! It keeps attempts, receipts (what was earned, signed by both sides), what the machine was doing and why,
//! sessions and hand-overs, and answers questions about them.
//! It is deliberately without business rules: whether a receipt is right is decided elsewhere, and every time
//! and time zone is given by the caller.

mod attempts;
mod days;
mod earnings;
mod history;
mod open;
mod receipts;

pub use attempts::{AttemptRow, Finished};
pub use days::{day, month};
pub use earnings::{Earned, ModelEarned, csv};
pub use history::SpanRow;
pub use open::{OpenError, Opened, Store};
pub use receipts::{Kept, SignedReceipt};

/// A question or a record that the database did not take.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the log could not be read or written: {0}")]
    Database(#[from] sqlx::Error),
    /// A stored value is not what its column holds.
    #[error("the log holds {0}, which this version does not understand")]
    Unreadable(&'static str),
}

/// Integers in SQLite are signed; a count that does not fit is held at the limit.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A stored count, which is never negative.
pub(crate) fn count(stored: i64) -> u32 {
    u32::try_from(stored.max(0)).unwrap_or(u32::MAX)
}
