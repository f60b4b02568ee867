//! What the owner asks for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::LocalTime;

/// A wish of the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Rest, at once. Replaces the pause before it.
    Pause(Pause),
    /// End the pause, the quiet time after a game, or a fault that waits for the owner.
    Resume,
    /// Hand back running jobs and end.
    Quit,
}

/// How long to pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// `until` is when that is on the owner's clock; it is shown, `length` decides.
    For {
        length: Duration,
        until: LocalTime,
    },
    UntilResumed,
}

/// A wish that is not granted. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// Not while this game runs.
    GameRunning { name: String },
    /// There is nothing to resume.
    NotPaused,
    /// The program is ending.
    Quitting,
}
