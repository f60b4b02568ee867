//! Whether the model fits into the memory that is free now. Memory comes and goes, so it is tried again by itself.

use std::time::Duration;

use crate::moment::Moment;
use crate::rest::Rest;

/// How long to wait after each try; the last one repeats.
const WAITS: [Duration; 4] = [
    Duration::from_secs(60),
    Duration::from_secs(2 * 60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(15 * 60),
];

/// What the tries since the last success have shown.
#[derive(Debug, Default)]
pub(crate) struct Room {
    tries: usize,
    short: Option<Short>,
}

#[derive(Debug)]
struct Short {
    needed_mebibytes: u64,
    free_mebibytes: u64,
    again: Moment,
}

impl Room {
    /// The model did not fit.
    pub(crate) fn was_short(&mut self, now: Moment, needed_mebibytes: u64, free_mebibytes: u64) {
        let wait = WAITS[self.tries.min(WAITS.len() - 1)];
        self.tries += 1;
        self.short = Some(Short { needed_mebibytes, free_mebibytes, again: now.plus(wait) });
    }

    pub(crate) fn tick(&mut self, now: Moment) {
        self.short.take_if(|short| short.again <= now);
    }

    pub(crate) fn wake_at(&self) -> Option<Moment> {
        self.short.as_ref().map(|short| short.again)
    }

    pub(crate) fn rest(&self) -> Option<Rest> {
        let Short { needed_mebibytes, free_mebibytes, .. } = *self.short.as_ref()?;
        Some(Rest::NoRoom { needed_mebibytes, free_mebibytes })
    }
}
