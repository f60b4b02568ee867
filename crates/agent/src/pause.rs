//! The owner's pause.

use crate::LocalTime;
use crate::moment::Moment;
use crate::rest::Rest;
use crate::want::Pause;

/// A pause that holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paused {
    Until { ends: Moment, shown: LocalTime },
    UntilResumed,
}

impl Paused {
    pub(crate) fn begin(now: Moment, pause: Pause) -> Self {
        match pause {
            Pause::For { length, until } => Self::Until { ends: now.plus(length), shown: until },
            Pause::UntilResumed => Self::UntilResumed,
        }
    }

    /// When it ends by itself.
    pub(crate) fn ends(self) -> Option<Moment> {
        match self {
            Self::Until { ends, .. } => Some(ends),
            Self::UntilResumed => None,
        }
    }

    pub(crate) fn rest(self) -> Rest {
        match self {
            Self::Until { shown, .. } => Rest::Paused { until: Some(shown) },
            Self::UntilResumed => Rest::Paused { until: None },
        }
    }
}
