//! How often the worker ended by itself, and when it may start again.

use std::collections::VecDeque;
use std::time::Duration;

use crate::fault::Fault;
use crate::moment::Moment;

/// This many ends within [`WINDOW`] are a fault that waits for the owner.
const TOO_OFTEN: usize = 5;
const WINDOW: Duration = Duration::from_secs(15 * 60);
/// The wait after the first end in the window; it doubles with each one.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The worker's unexpected ends, oldest first: never more than [`TOO_OFTEN`].
#[derive(Debug, Default)]
pub(crate) struct Ends(VecDeque<Moment>);

impl Ends {
    /// One more.
    pub(crate) fn add(&mut self, now: Moment) {
        self.0.retain(|end| now.since(*end) < WINDOW);
        self.0.push_back(now);
    }

    /// When the worker may start again.
    pub(crate) fn again_at(&self) -> Option<Moment> {
        let last = self.0.back()?;
        Some(last.plus(FIRST_WAIT * (1 << (self.0.len() - 1).min(TOO_OFTEN))))
    }

    /// Too many ends are a fault until [`Ends::forget`].
    pub(crate) fn fault(&self) -> Option<Fault> {
        (self.0.len() >= TOO_OFTEN).then_some(Fault::WorkerKeepsEnding {
            times: TOO_OFTEN as u32,
            within_minutes: (WINDOW.as_secs() / 60) as u32,
        })
    }

    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}
