//! What the owner asks for.

use std::time::Duration;

use jiff::Zoned;
use serde::{Deserialize, Serialize};

/// A wish of the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Rest, at once. Replaces the pause before it.
    Pause(Pause),
    /// End the pause, the quiet time after a game, or a fault that waits for the owner.
    Resume,
    /// Serve although a game or film runs, the machine is in use or on its battery, or the window is closed, until
    /// that ends by itself.
    ServeAnyway,
    /// Hand back running jobs and end.
    Quit,
}

/// How long to pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pause {
    /// `until` is when that is on the owner's clock, which is shown. What comes first ends it.
    For {
        length: Duration,
        until: Zoned,
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
    /// Nothing is in the way that the owner could wave aside.
    NothingToOverride,
    /// The program is ending.
    Quitting,
}
