//! What the node is doing, as data. `wakati-words` makes sentences of it.

use serde::{Deserialize, Serialize};
use wakati_protocol::desk::{Primary, Shape};
use wakati_protocol::units::Percent;

use crate::fault::Fault;
use crate::rest::Rest;
use crate::want::Refused;

/// Everything that may be told about the node's own doing at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub activity: Activity,
    /// Jobs that run now.
    pub jobs: u32,
    /// How much of the model is loaded, while it is and where it is known.
    pub loaded: Option<Percent>,
    /// What the owner must know besides.
    pub faults: Vec<Fault>,
    /// Why `Resume` would be refused now, if it would be.
    pub resume_refused: Option<Refused>,
    /// Why `Pause` would be refused now, if it would be.
    pub pause_refused: Option<Refused>,
}

/// What the node does, free of what changes from second to second: two equal ones are one stretch of the day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    Resting(Rest),
    /// The worker loads the model.
    Warming {
        model: String,
        hardware: Hardware,
    },
    Serving {
        model: String,
        hardware: Hardware,
    },
    /// Ready to serve, but the broker cannot be reached. The model stays loaded.
    Unreachable {
        model: String,
        hardware: Hardware,
    },
    /// The machine is being given back.
    Yielding(Rest),
    /// The program ends.
    Off,
}

/// Where the model runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hardware {
    Gpu,
    Processor,
}

impl Status {
    /// Whether it rests for a reason that the owner may wave aside.
    #[must_use]
    pub fn may_serve_anyway(&self) -> bool {
        match &self.activity {
            Activity::Resting(rest) | Activity::Yielding(rest) => rest.may_be_waved(),
            Activity::Warming { .. }
            | Activity::Serving { .. }
            | Activity::Unreachable { .. }
            | Activity::Off => false,
        }
    }

    /// What the primary button does.
    #[must_use]
    pub fn primary(&self) -> Primary {
        match &self.activity {
            Activity::Warming { .. } | Activity::Serving { .. } | Activity::Unreachable { .. } => {
                Primary::Pause
            }
            Activity::Off => Primary::Nothing,
            Activity::Resting(_) | Activity::Yielding(_) if self.resume_refused.is_none() => Primary::Resume,
            Activity::Resting(_) | Activity::Yielding(_) => Primary::Nothing,
        }
    }
}

impl Activity {
    /// Which shape the tray shows.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match self {
            Self::Serving { .. } => Shape::Serving,
            Self::Warming { .. } | Self::Yielding(_) => Shape::Changing,
            Self::Unreachable { .. } => Shape::Resting,
            Self::Off => Shape::Off,
            Self::Resting(rest) => match rest {
                Rest::Quitting => Shape::Off,
                Rest::Game { .. }
                | Rest::Sleeping
                | Rest::Paused { .. }
                | Rest::QuietAfterGame { .. }
                | Rest::Film { .. }
                | Rest::GpuBusy
                | Rest::GpuMemory
                | Rest::TooHot { .. }
                | Rest::OnBattery
                | Rest::Closed { .. }
                | Rest::Present { .. }
                | Rest::NoRoom { .. }
                | Rest::Connecting => Shape::Resting,
                Rest::Starting | Rest::WorkerEnded => Shape::Changing,
                Rest::Fault(_) | Rest::NoModel | Rest::NotJoined | Rest::BrokerRefused(_) | Rest::NoGpu => {
                    Shape::NeedsYou
                }
            },
        }
    }
}
