//! Why the machine does not serve.

use serde::{Deserialize, Serialize};
use wakati_protocol::link::YieldReason;
use wakati_protocol::units::Celsius;

use crate::LocalTime;
use crate::fault::{BrokerRefusal, Fault};
use crate::sign::Kind;

/// A reason not to serve. When several hold, the first in this order is the one that is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// The owner quits.
    Quitting,
    /// The owner plays.
    Game {
        name: String,
        /// The signs that decided it.
        #[serde(default)]
        because: Vec<Kind>,
    },
    /// The machine goes to sleep.
    Sleeping,
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
    /// A film in full screen, beside which the owner does not want to serve.
    Film {
        name: String,
    },
    /// Other programs keep the GPU busy.
    GpuBusy,
    /// Other programs need the GPU's memory.
    GpuMemory,
    /// The GPU is as hot as the owner allows.
    TooHot {
        limit: Celsius,
    },
    /// The machine runs on its battery.
    OnBattery,
    /// Outside the owner's windows; `None` is not within two weeks.
    Closed {
        opens: Option<LocalTime>,
    },
    /// The owner uses the machine and wants to serve only when away.
    Present {
        minutes: u32,
    },
    /// Something keeps it from serving until the owner acts.
    Fault(Fault),
    /// The model needs more memory than is free now; it is tried again by itself.
    NoRoom {
        needed_mebibytes: u64,
        free_mebibytes: u64,
    },
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
            Self::Sleeping
            | Self::Film { .. }
            | Self::GpuBusy
            | Self::GpuMemory
            | Self::TooHot { .. }
            | Self::OnBattery
            | Self::Closed { .. }
            | Self::Present { .. } => YieldReason::Limit,
            Self::Starting
            | Self::Fault(_)
            | Self::NoRoom { .. }
            | Self::NoModel
            | Self::BrokerRefused(_)
            | Self::Connecting
            | Self::NoGpu
            | Self::WorkerEnded => YieldReason::Fault,
        }
    }

    /// Whether the owner may wave it aside with [`crate::Want::ServeAnyway`].
    #[must_use]
    pub fn may_be_waved(&self) -> bool {
        match self {
            Self::Game { .. }
            | Self::Film { .. }
            | Self::OnBattery
            | Self::Closed { .. }
            | Self::Present { .. } => true,
            Self::Quitting
            | Self::Sleeping
            | Self::Paused { .. }
            | Self::Starting
            | Self::QuietAfterGame { .. }
            | Self::GpuBusy
            | Self::GpuMemory
            | Self::TooHot { .. }
            | Self::Fault(_)
            | Self::NoRoom { .. }
            | Self::NoModel
            | Self::NotJoined
            | Self::BrokerRefused(_)
            | Self::Connecting
            | Self::NoGpu
            | Self::WorkerEnded => false,
        }
    }
}
