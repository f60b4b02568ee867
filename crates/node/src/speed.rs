//! Tokens per second over the last minute.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Seconds that are remembered.
const SECONDS: usize = 60;

/// Counts tokens by the second.
#[derive(Debug)]
pub struct Speed {
    /// Finished seconds, oldest first.
    finished: VecDeque<u32>,
    /// Tokens of the second that runs.
    running: u32,
    began: Instant,
}

impl Speed {
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { finished: VecDeque::from([0; SECONDS]), running: 0, began: now }
    }

    /// Counts tokens that came now.
    pub fn count(&mut self, tokens: u32, now: Instant) {
        self.pass(now);
        self.running = self.running.saturating_add(tokens);
    }

    /// One value for each of the last 60 finished seconds, oldest first.
    pub fn last_minute(&mut self, now: Instant) -> Vec<f32> {
        self.pass(now);
        self.finished.iter().map(|tokens| *tokens as f32).collect()
    }

    fn pass(&mut self, now: Instant) {
        let seconds = now.saturating_duration_since(self.began).as_secs();
        for _ in 0..seconds.min(SECONDS as u64) {
            self.finished.pop_front();
            self.finished.push_back(std::mem::take(&mut self.running));
        }
        self.began += Duration::from_secs(seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_shown_in_the_second_in_which_they_came() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut speed = Speed::new(start);
        speed.count(3, at(100));
        speed.count(4, at(900));
        speed.count(5, at(2_500));
        let shown = speed.last_minute(at(3_100));
        assert_eq!(shown.len(), SECONDS);
        assert_eq!(shown[SECONDS - 3..], [7.0, 0.0, 5.0]);
        // An hour of sleep leaves nothing.
        assert!(speed.last_minute(at(3_600_000)).iter().all(|tokens| *tokens == 0.0));
    }
}
