//! The desk: the local socket at which the owner's own programs (command line, window) ask the node.
//!
//! One JSON object a line in each direction. `Watch` is answered with a `Snapshot` at once and after every change;
//! everything else with exactly one answer. Only the owner's user can open the socket.

use serde::{Deserialize, Serialize};

use crate::ids::{JobId, ModelDigest, NodeId};
use crate::money::{NanoUsd, Prices};
use crate::units::{Celsius, MiB, Percent, UnixMillis, Watts};

/// What the owner's program asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Ask {
    /// One snapshot.
    Status,
    /// A snapshot now and after every change, until the asker leaves.
    Watch,
    /// Rest for this many minutes, or until `Resume`.
    Pause { minutes: Option<u32> },
    /// Rest until the next morning, or until `Resume`.
    PauseUntilTomorrow,
    /// End a pause.
    Resume,
    /// Serve although something is in the way that the owner may wave aside, until it ends by itself.
    ServeAnyway,
    /// What happened on one day (local, `YYYY-MM-DD`; today when absent) and why.
    Why { day: Option<String> },
    /// The settled earnings, newest first.
    Earnings,
    /// Show the window. Answered by the desktop application only.
    OpenWindow,
    /// Hand running jobs back and end.
    Quit,
}

/// What the node answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    Snapshot(Box<Snapshot>),
    Done,
    /// The wish was understood and is not granted; the sentence says why.
    Refused {
        sentence: String,
    },
    Why {
        spans: Vec<Span>,
    },
    Earnings {
        rows: Vec<Earning>,
    },
    /// The question could not be read.
    Garbled {
        sentence: String,
    },
}

/// Everything that a person may see about the node at one moment. Absent is unknown, never zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct Snapshot {
    /// The language of the sentences, as a tag such as `en` or `sw`; the window's labels follow it.
    pub language: String,
    /// Which shape the tray shows.
    pub shape: Shape,
    /// The status sentence: "Serving SmolLM2 135M - 2 jobs".
    pub sentence: String,
    /// Why, in one more sentence; empty when the sentence says it all.
    pub reason: String,
    /// What a click on the primary button does now.
    pub primary: Primary,
    /// Whether `ServeAnyway` would be granted now.
    pub may_serve_anyway: bool,
    pub node: NodeId,
    pub link: LinkState,
    pub model: Option<ModelOnOffer>,
    pub active_jobs: u32,
    /// The game that has the machine now. While there is one, nothing may come between it and the owner.
    pub game: Option<String>,
    /// Generated tokens per second, one value for each of the last 60 seconds, oldest first.
    pub tokens_per_second: Vec<f32>,
    pub figures: Option<Figures>,
    pub machine: Machine,
    pub last_hand_over: Option<HandOver>,
    /// What the owner must know, one sentence each.
    pub faults: Vec<String>,
}

/// The five shapes of the tray icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    Serving,
    Resting,
    Off,
    /// Warming or yielding.
    Changing,
    NeedsYou,
}

/// What the primary button does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Primary {
    Pause,
    Resume,
    /// Nothing to press; the reason says what to do.
    Nothing,
}

/// The node's link to its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// No broker in the settings.
    NotJoined,
    Dialling,
    Joined,
    /// The broker refused this node; the reason says why.
    Refused,
}

/// The model that the node offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct ModelOnOffer {
    pub name: String,
    pub digest: ModelDigest,
    pub prices: Prices,
    pub slots: u32,
    pub context: u32,
}

/// The four figures of the first page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct Figures {
    pub today: NanoUsd,
    pub month: NanoUsd,
    pub jobs_today: u32,
    /// Share of today, so far, in which the node served.
    pub served_today: Percent,
    pub served_today_minutes: u32,
}

/// The machine strip.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct Machine {
    /// `None` without a supported GPU.
    pub gpu: Option<String>,
    pub vram_total: Option<MiB>,
    pub vram_ours: Option<MiB>,
    pub vram_free: Option<MiB>,
    pub temperature: Option<Celsius>,
    pub power: Option<Watts>,
    pub utilisation: Option<Percent>,
    /// Resident memory of the worker.
    pub worker_resident: Option<MiB>,
    /// What the newest worker's sandbox really enforces; `None` before there was one.
    pub sandbox: Option<Vec<Denied>>,
}

/// One thing that a sandbox keeps from the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Denied {
    /// Reading files other than the model and the system's own.
    Files,
    /// Writing any file.
    Writes,
    Network,
    /// Starting programs.
    Exec,
}

impl Denied {
    /// By the worker's own word for it; `None` for one that this version does not know.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        match word {
            "files" => Some(Self::Files),
            "writes" => Some(Self::Writes),
            "network" => Some(Self::Network),
            "exec" => Some(Self::Exec),
            _ => None,
        }
    }
}

/// The last time that the machine was given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct HandOver {
    pub at: UnixMillis,
    /// What it was given to.
    pub to: String,
    /// From the first sign to "no new job", to the worker's end and to memory confirmed free, in milliseconds.
    pub stopped_ms: u32,
    pub worker_gone_ms: u32,
    pub memory_back_ms: u32,
    /// GPU memory that our processes still held afterwards; `None` when it cannot be measured here.
    pub vram_left: Option<MiB>,
    /// Jobs that went on elsewhere.
    pub jobs_handed_back: u32,
}

/// A stretch of time in one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct Span {
    pub from: UnixMillis,
    /// `None` while it lasts.
    pub to: Option<UnixMillis>,
    pub shape: Shape,
    pub sentence: String,
    /// By what a game was seen; empty for everything else.
    #[serde(default)]
    pub evidence: String,
}

/// One settled attempt: a row of the owner's earnings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct Earning {
    pub sequence: u64,
    pub settled_at: UnixMillis,
    pub job: JobId,
    pub attempt: u32,
    pub model: String,
    pub first_position: u32,
    pub positions: u32,
    pub input_tokens: u32,
    pub prices: Prices,
    pub pay: NanoUsd,
}
