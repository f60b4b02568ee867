//! What the agent wants done.

use wakati_protocol::link::YieldReason;

use crate::rest::Rest;
use crate::status::Hardware;

/// One thing to do. Effects come in the order in which they must be begun; none waits for the one before it to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Refuse new jobs and withdraw the offer from the broker.
    StopTaking,
    /// Tell the broker how far each running job came and forget them all.
    HandBack(YieldReason),
    /// Kill the worker. Nothing is lost with it, and there may be none left to kill.
    KillWorker,
    /// Find out whether the worker is gone and its memory back, and answer with an `Observation::Memory`: `Back` as
    /// soon as it is, or `Held` when it is not after a while.
    CheckMemory,
    /// Start the worker and load the model.
    Warm(Hardware),
    /// Offer the model to the broker and take jobs.
    Offer,
    /// The machine rests from now on, for this reason. For the log and for senses that may look less often.
    Rest(Rest),
    /// Everything is handed back: the program may end.
    Finish,
}
