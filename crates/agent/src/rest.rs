//! Why the machine does not serve.

use serde::{Deserialize, Serialize};
use wakati_protocol::link::YieldReason;

use crate::LocalTime;
use crate::fault::{BrokerRefusal, Fault};

/// A reason not to serve. When several hold, the first in this order is the one that is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// The owner quits.
    Quitting,
    /// The owner plays.
    Game {
        name: String,
    },
    /// The owner paused; `None` is until resumed.
    Paused {
        until: Option<LocalTime>,
    },
    /// The machine has not been looked at since the start.
    Starting,
    /// A game ended a moment ago; another round may start.
    QuietAfterGame {
        name: String,
        seconds: u32,
    },
    /// Something keeps it from serving until the owner acts.
    Fault(Fault),
    /// No model is chosen, or its files are not there.
    NoModel,
    /// There is no broker to serve.
    NotJoined,
    BrokerRefused(BrokerRefusal),
    /// The broker has not been reached yet; the model is loaded when it is.
    Connecting,
    /// No supported GPU, and the processor may not be used.
    NoGpu,
    /// The worker ended by itself; it starts again in a moment.
    WorkerEnded,
}

impl Rest {
    /// What the broker learns of it: the kind, never the name.
    #[must_use]
    pub fn yield_reason(&self) -> YieldReason {
        match self {
            Self::Game { .. } | Self::QuietAfterGame { .. } => YieldReason::Game,
            Self::Quitting | Self::Paused { .. } | Self::NotJoined => YieldReason::Owner,
            Self::Starting
            | Self::Fault(_)
            | Self::NoModel
            | Self::BrokerRefused(_)
            | Self::Connecting
            | Self::NoGpu
            | Self::WorkerEnded => YieldReason::Fault,
        }
    }
}
