//! How long to wait before dialling again: full jitter, so that ten thousand nodes do not come back at once.

use std::time::Duration;

use rand::Rng;
use wakati_protocol::link::Welcome;

/// Before the broker has said anything.
const FIRST_WINDOW: Duration = Duration::from_secs(1);
/// However long the broker has been away, its return is noticed within this.
const LONGEST_WINDOW: Duration = Duration::from_secs(60);

/// The window out of which the next wait is drawn. It doubles with each failure.
/// Full jitter as in "Exponential Backoff And Jitter" (Brooker, AWS Architecture Blog, 2015).
#[derive(Debug)]
pub(super) struct Backoff {
    window: Duration,
    failures: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { window: FIRST_WINDOW, failures: 0 }
    }
}

impl Backoff {
    /// The broker is there and says how widely to spread.
    pub(super) fn joined(&mut self, welcome: &Welcome) {
        let asked = Duration::from_millis(u64::from(welcome.reconnect_window_ms));
        self.window = asked.clamp(Duration::from_millis(1), LONGEST_WINDOW);
        self.failures = 0;
    }

    /// The next wait.
    pub(super) fn wait(&mut self) -> Duration {
        let window = self.window.saturating_mul(1 << self.failures.min(16)).min(LONGEST_WINDOW);
        self.failures += 1;
        window.mul_f64(rand::rng().random_range(0.0..1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wait_stays_in_the_brokers_window_and_later_ones_under_a_minute() {
        let mut backoff = Backoff::default();
        backoff.joined(&Welcome { reconnect_window_ms: 200, ..Welcome::default() });
        assert!(backoff.wait() <= Duration::from_millis(200));
        for _ in 0..100 {
            assert!(backoff.wait() <= LONGEST_WINDOW);
        }
    }
}
