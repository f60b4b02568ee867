//! The owner's pause.

use jiff::Zoned;

use crate::moment::Moment;
use crate::rest::Rest;
use crate::want::Pause;

/// A pause that holds.
#[derive(Debug)]
pub(crate) enum Paused {
    Until { ends: Moment, until: Zoned },
    UntilResumed,
}

impl Paused {
    pub(crate) fn begin(now: Moment, pause: Pause) -> Self {
        match pause {
            Pause::For { length, until } => Self::Until { ends: now.plus(length), until },
            Pause::UntilResumed => Self::UntilResumed,
        }
    }

    /// When it ends by itself.
    pub(crate) fn ends(&self) -> Option<Moment> {
        match self {
            Self::Until { ends, .. } => Some(*ends),
            Self::UntilResumed => None,
        }
    }

    /// Whether it is over by the owner's clock: a machine that slept has moments of its own.
    pub(crate) fn is_over(&self, clock: &Zoned) -> bool {
        matches!(self, Self::Until { until, .. } if until.timestamp() <= clock.timestamp())
    }

    pub(crate) fn rest(&self) -> Rest {
        match self {
            Self::Until { until, .. } => Rest::Paused { until: Some(until.datetime()) },
            Self::UntilResumed => Rest::Paused { until: None },
        }
    }
}
