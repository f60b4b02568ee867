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
mod calendar;
mod effect;
mod fault;
mod in_use;
mod known;
mod limits;
mod moment;
mod observation;
mod pause;
mod rest;
mod room;
mod rules;
mod sign;
mod status;
mod veto;
mod want;

pub use agent::Agent;
pub use calendar::{Calendar, Exception, Window};
pub use effect::Effect;
pub use fault::{BrokerRefusal, Fault, SettingProblem, WorkerRefusal};
pub use moment::Moment;
pub use observation::{Gpu, GpuUse, Link, Memory, Model, Observation, Power, Sleep, WorkerSeen};
pub use rest::Rest;
pub use rules::Rules;
pub use sign::{Kind, Seen, Sense, Sign};
pub use status::{Activity, Hardware, Status};
pub use want::{Pause, Refused, Want};

/// A local date and time without its zone, for people to read; and its parts, in which a calendar is written.
pub use jiff::civil::DateTime as LocalTime;
pub use jiff::civil::{Date, Time, Weekday};
