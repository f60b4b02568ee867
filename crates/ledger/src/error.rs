//! What can go wrong, apart by who must act.

use wakati_protocol::ids::JobId;
use wakati_protocol::money::NanoUsd;

/// The consumer's own doing: said to the consumer, never logged as an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The account cannot cover the worst case of the job.
    Insufficient { available: NanoUsd, held: NanoUsd, needed: NanoUsd },
}

/// Why a job could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the job was refused: {0:?}")]
    Refused(Refusal),
    #[error(transparent)]
    Failed(#[from] LedgerError),
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// The operator's own doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCredited {
    /// Less is available than would be taken back.
    Overdrawn { available: NanoUsd },
    /// No account can have so much.
    TooMuch { available: NanoUsd },
}

/// Why an account could not be credited.
#[derive(Debug, thiserror::Error)]
pub enum CreditError {
    #[error("the credit was refused: {0:?}")]
    Refused(NotCredited),
    #[error(transparent)]
    Failed(#[from] LedgerError),
}

/// The books could not be read or written, or would have become wrong.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(
        "the books could not be used ({0}), so what was under way is undone; check the data folder's disk and permissions, then try again"
    )]
    Database(#[from] sqlx::Error),
    #[error(
        "the books could not be brought up to date ({0}), so they are as they were; use a broker that is at least as new as the one that wrote them"
    )]
    Migration(#[from] sqlx::migrate::MigrateError),
    #[error("no job {0} in the books")]
    NoSuchJob(JobId),
    #[error("job {0} is settled already")]
    Settled(JobId),
    #[error("job {0} has begun to be delivered, or is settled")]
    Begun(JobId),
    #[error("{0}")]
    Wrong(String),
    #[error("the system gave no random bytes, so no secret was made; try again")]
    NoChance,
}
