//! Whether a game runs, or ended so lately that another round may start.
//!
//! ```text
//! NotLooked -> Quiet <------------------------------+
//!     \-----> Running -> Ended, quiet time over ----+
//!                ^          |
//!                +----------+ it, or another one, is seen
//! ```

use std::time::Duration;

use crate::moment::Moment;
use crate::observation::{Game, Processes};
use crate::rest::Rest;

/// What is known of games.
#[derive(Debug, Clone)]
pub(crate) enum Games {
    NotLooked,
    Quiet,
    Running(Game),
    Ended { name: String, at: Moment },
}

impl Games {
    /// An unreadable list changes nothing, except that it has been looked at.
    pub(crate) fn see(&mut self, now: Moment, seen: &Processes) {
        let next = match (&*self, seen) {
            (_, Processes::Read(Some(game))) => Self::Running(game.clone()),
            (Self::Running(game), Processes::Read(None)) => Self::Ended { name: game.name.clone(), at: now },
            (Self::NotLooked, Processes::Read(None) | Processes::Unreadable) => Self::Quiet,
            (Self::Quiet | Self::Ended { .. }, Processes::Read(None) | Processes::Unreadable)
            | (Self::Running(_), Processes::Unreadable) => return,
        };
        *self = next;
    }

    /// Ends the quiet time when it is over.
    pub(crate) fn tick(&mut self, now: Moment, quiet: Duration) {
        if self.quiet_ends(quiet).is_some_and(|ends| ends <= now) {
            *self = Self::Quiet;
        }
    }

    /// The owner does not want to wait for the quiet time to end.
    pub(crate) fn forget_ended(&mut self) {
        if matches!(self, Self::Ended { .. }) {
            *self = Self::Quiet;
        }
    }

    /// When the quiet time after a game is over.
    pub(crate) fn quiet_ends(&self, quiet: Duration) -> Option<Moment> {
        match self {
            Self::Ended { at, .. } => Some(at.plus(quiet)),
            Self::NotLooked | Self::Quiet | Self::Running(_) => None,
        }
    }

    pub(crate) fn running(&self) -> Option<&Game> {
        match self {
            Self::Running(game) => Some(game),
            Self::NotLooked | Self::Quiet | Self::Ended { .. } => None,
        }
    }

    /// Why it keeps the machine from serving.
    pub(crate) fn rest(&self, quiet: Duration) -> Option<Rest> {
        match self {
            Self::Running(game) => Some(Rest::Game { name: game.name.clone() }),
            Self::Ended { name, .. } => Some(Rest::QuietAfterGame {
                name: name.clone(),
                seconds: u32::try_from(quiet.as_secs()).unwrap_or(u32::MAX),
            }),
            Self::NotLooked => Some(Rest::Starting),
            Self::Quiet => None,
        }
    }
}
