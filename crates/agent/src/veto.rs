//! A reading that keeps the machine from serving once it has been over its limit for a while, and until it has been
//! well under for a while: what swings around the limit changes nothing. It changes only when it is read: a sensor
//! that falls silent changes nothing either.

use std::time::Duration;

use crate::moment::Moment;

/// Where a reading lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Over,
    /// Neither over the limit nor well under it.
    Between,
    Under,
}

/// How long a reading must stay where it is to count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub over: Duration,
    pub under: Duration,
}

#[derive(Debug)]
pub(crate) struct Veto {
    patience: Patience,
    holds: bool,
    /// Since when the readings speak for the other state.
    since: Option<Moment>,
}

impl Veto {
    pub(crate) fn new(patience: Patience) -> Self {
        Self { patience, holds: false, since: None }
    }

    pub(crate) fn see(&mut self, now: Moment, reading: Reading) {
        let speaks_against = match reading {
            Reading::Over => !self.holds,
            Reading::Under => self.holds,
            Reading::Between => false,
        };
        self.since = speaks_against.then(|| self.since.unwrap_or(now));
        let wait = if self.holds { self.patience.under } else { self.patience.over };
        if self.since.is_some_and(|since| now.since(since) >= wait) {
            self.holds = !self.holds;
            self.since = None;
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.holds
    }
}
