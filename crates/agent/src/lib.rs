//! The agent decides whether this machine serves. Observations, wishes and the time go in; effects and the status
//! come out.
//!
//! It is deliberately nothing else: it reads no clock, no file and no process list, knows no vendor and no socket,
//! and writes no sentence. A test replays an evening of gaming in memory.
//!
//! ```text
//!                  nothing in the way              worker ready
//!       Resting ------------------------> Warming -------------> Serving
//!        |   ^                               |                      |  ^
//!        |   |  memory back                  | something            |  | broker lost
//!  quit  |   +------------------ Yielding <--+ in the way ----------+  v and back
//!        v                                                         Unreachable
//!       Off
//! ```
//! A worker exists in `Warming`, `Serving` and `Unreachable`, may still exist in `Yielding`, and never in `Resting`
//! and `Off`: so there is never more than one.
//!
//! Whoever runs the agent calls [`Agent::see`], [`Agent::ask`] or [`Agent::tick`], then drains
//! [`Agent::next_effect`] before anything else, and calls `tick` at [`Agent::wake_at`] at the latest.

mod agent;
mod backoff;
mod effect;
mod fault;
mod games;
mod moment;
mod observation;
mod pause;
mod rest;
mod rules;
mod status;
mod want;

pub use agent::Agent;
pub use effect::Effect;
pub use fault::{BrokerRefusal, Fault, SettingProblem, WorkerRefusal};
pub use moment::Moment;
pub use observation::{Game, GameEvidence, Gpu, Link, Memory, Model, Observation, Processes, WorkerSeen};
pub use rest::Rest;
pub use rules::Rules;
pub use status::{Activity, Hardware, Status};
pub use want::{Pause, Refused, Want};

/// A local date and time without its zone, for people to read.
pub use jiff::civil::DateTime as LocalTime;
