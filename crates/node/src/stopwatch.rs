//! How long it takes to give the machine back, from the game's first sign.

use std::time::Instant;

use wakati_protocol::desk::HandOver;
use wakati_protocol::units::{MiB, UnixMillis};

/// Runs from a game's first sign until the memory is back.
#[derive(Debug, Clone)]
pub struct Stopwatch {
    first_sign: Instant,
    at: UnixMillis,
    to: String,
    stopped_ms: u32,
    jobs_handed_back: u32,
    worker_gone_ms: Option<u32>,
}

impl Stopwatch {
    /// No job is taken any more, and `jobs_handed_back` are given back.
    #[must_use]
    pub fn stopped(to: String, first_sign: Instant, at: UnixMillis, jobs_handed_back: u32) -> Self {
        let stopped_ms = since(first_sign);
        Self { first_sign, at, to, stopped_ms, jobs_handed_back, worker_gone_ms: None }
    }

    /// The worker's process is gone.
    pub fn worker_gone(&mut self) {
        self.worker_gone_ms.get_or_insert(since(self.first_sign));
    }

    /// Its memory is back; `vram_left` is what our processes still hold on the GPU, where it can be measured.
    #[must_use]
    pub fn memory_back(self, vram_left: Option<MiB>) -> HandOver {
        let memory_back_ms = since(self.first_sign);
        HandOver {
            at: self.at,
            to: self.to,
            stopped_ms: self.stopped_ms,
            // Without a worker there was nothing to wait for.
            worker_gone_ms: self.worker_gone_ms.unwrap_or(self.stopped_ms),
            memory_back_ms,
            vram_left,
            jobs_handed_back: self.jobs_handed_back,
        }
    }
}

/// Whole milliseconds, rounded up: nothing takes no time.
fn since(start: Instant) -> u32 {
    u32::try_from(start.elapsed().as_micros().div_ceil(1000)).unwrap_or(u32::MAX)
}
