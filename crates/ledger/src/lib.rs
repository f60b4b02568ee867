//! The ledger: the broker's books.
//!
//! Money is held before a job starts and captured once when it ends. Every movement is an *event* whose postings
//! sum to zero; balances are what the postings add up to, and [`Ledger::audit`] proves it on a live database.
//!
//! ```text
//!            open_job                 settle | recover
//! available ----------> held (job) -------------------> payable (owners) + fee
//!                                   \---> available (what was not used)
//!                         absorption ---> payable (refills and dearer nodes, which the platform pays)
//! ```
//!
//! Until the first position is delivered, `relock` may move money between available and held: the job begins anew
//! at another node's prices.
//!
//! This crate deliberately knows no HTTP, chooses no node and reads no clock: the caller passes the time.
//! Uniqueness is always a constraint of the database, so that two processes can work on it.

mod audit;
mod books;
mod error;
mod jobs;
mod members;
mod money;
mod open;
mod receipts;
mod settle;
mod split;

pub use audit::Fault;
pub use books::{AttemptRow, Books, ConsumerRow, JobRow, NodeRow, OwnerRow};
pub use error::{CreditError, LedgerError, NotCredited, OpenError, Refusal};
pub use jobs::{JobOpening, Limit, NewAttempt, Opened};
pub use members::{Admission, Consumer, Secret};
pub use money::Funds;
pub use open::Ledger;
pub use receipts::{BadAck, RECEIPTS_AT_ONCE};
pub use settle::{Ending, Finish, Recovered, Settlement};
pub use split::{Split, Tried, room, split};
