//! How long to wait before dialling again: full jitter, so that ten thousand nodes do not come back at once.

use std::time::Duration;

use rand::Rng;
use wakati_protocol::link::Welcome;

/// Before the broker has said anything.
const FIRST_WINDOW: Duration = Duration::from_secs(1);
/// However narrow a window the broker asks for, a lost link is not dialled in a tight loop.
const SHORTEST_WINDOW: Duration = Duration::from_millis(250);
/// However long the broker has been away, its return is noticed within this.
const LONGEST_WINDOW: Duration = Duration::from_secs(60);
/// A session that ends sooner counts as a failure: a broker that welcomes and hangs up is left alone for longer and
/// longer.
const HELD: Duration = Duration::from_secs(10);

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
    /// A session has ended in which the broker said how widely to spread, and which lasted so long.
    pub(super) fn session_ended(&mut self, welcome: &Welcome, lasted: Duration) {
        let asked = Duration::from_millis(u64::from(welcome.reconnect_window_ms));
        self.window = asked.clamp(SHORTEST_WINDOW, LONGEST_WINDOW);
        if lasted >= HELD {
            self.failures = 0;
        }
    }

    /// The next wait.
    pub(super) fn wait(&mut self) -> Duration {
        self.wait_drawn(rand::rng().random_range(0.0..1.0))
    }

    /// The wait for a draw between 0 and 1.
    fn wait_drawn(&mut self, draw: f64) -> Duration {
        let window = self.window.saturating_mul(1 << self.failures.min(16)).min(LONGEST_WINDOW);
        self.failures += 1;
        window.mul_f64(draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest waits of the next tries, in milliseconds.
    fn longest<const N: usize>(backoff: &mut Backoff) -> [u128; N] {
        std::array::from_fn(|_| backoff.wait_drawn(1.0).as_millis())
    }

    fn welcome(reconnect_window_ms: u32) -> Welcome {
        Welcome { reconnect_window_ms, ..Welcome::default() }
    }

    #[test]
    fn the_window_doubles_with_each_failure_up_to_a_minute() {
        let mut backoff = Backoff::default();
        let expected = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000];
        assert_eq!(longest(&mut backoff), expected);
        assert_eq!(longest::<100>(&mut backoff), [60_000; 100]);
    }

    #[test]
    fn a_wait_is_drawn_out_of_the_whole_window() {
        let waits = [0.0, 0.25, 0.5].map(|draw| Backoff::default().wait_drawn(draw).as_millis());
        assert_eq!(waits, [0, 250, 500]);
    }

    #[test]
    fn the_brokers_window_holds_within_a_quarter_second_and_a_minute() {
        for (asked, expected) in [(0, 250), (20, 250), (3_000, 3_000), (u32::MAX, 60_000)] {
            let mut backoff = Backoff::default();
            backoff.session_ended(&welcome(asked), HELD);
            assert_eq!(longest(&mut backoff), [expected], "{asked}");
        }
    }

    #[test]
    fn only_a_session_of_ten_seconds_forgives_the_failures_before_it() {
        let mut backoff = Backoff::default();
        let hung_up_after = |seconds| {
            backoff.session_ended(&welcome(300), Duration::from_secs(seconds));
            let [wait] = longest(&mut backoff);
            wait
        };
        assert_eq!([0, 9, 0, 10, 0].map(hung_up_after), [300, 600, 1_200, 300, 600]);
    }
}
