//! Nodes whose attempts keep going wrong are left out for a while.
//!
//! ```text
//!              third in a row                        went wrong again
//! went wrong -----------------> left out for 60 s ---------------------> left out for twice as long
//!     ^                                 |                                         |
//!     |                                 | served                                  | served
//!     +---- nothing on record <---------+-----------------------------------------+
//! ```

use wakati_protocol::units::UnixMillis;

/// Attempts in a row that go wrong before a node is left out.
const PATIENCE: u32 = 3;
/// How long a node is left out the first time, in milliseconds.
const FIRST_PAUSE: i64 = 60_000;
/// Each further time lasts twice as long as the one before, up to this many doublings: 17 hours.
const MOST_DOUBLINGS: u32 = 10;

/// How an attempt reflects on its node. Ordinary life (a game, a lost link, a full machine) does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// It gave a whole answer, or the rest of one.
    Served,
    /// It was silent, failed or refused.
    WentWrong,
}

/// A node's attempts that went wrong since it last served.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Record {
    in_a_row: u32,
    left_out_until: UnixMillis,
}

impl Record {
    pub fn is_left_out(&self, now: UnixMillis) -> bool {
        now < self.left_out_until
    }

    /// What goes wrong while the node is left out began before, at the same time as what is counted already.
    pub fn went_wrong(&mut self, now: UnixMillis) {
        if self.is_left_out(now) {
            return;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        if let Some(times) = self.in_a_row.checked_sub(PATIENCE) {
            self.left_out_until = UnixMillis(now.0 + (FIRST_PAUSE << times.min(MOST_DOUBLINGS)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds after the start until the node is asked again, for attempts that go wrong at these seconds.
    fn pauses(at: &[i64]) -> Vec<i64> {
        let mut record = Record::default();
        let until = |second: &i64| {
            record.went_wrong(UnixMillis(second * 1000));
            record.left_out_until.0 / 1000
        };
        at.iter().map(until).collect()
    }

    #[test]
    fn the_third_failure_in_a_row_pauses_a_node_and_each_further_one_twice_as_long() {
        assert_eq!(pauses(&[1, 2, 10, 70, 190]), [0, 0, 70, 190, 430]);
    }

    #[test]
    fn failures_of_the_same_moment_count_once_the_node_is_left_out() {
        assert_eq!(pauses(&[1, 1, 1, 1, 1, 1]), [0, 0, 61, 61, 61, 61]);
    }

    #[test]
    fn a_pause_does_not_grow_beyond_seventeen_hours() {
        let mut record = Record::default();
        for _ in 0..40 {
            record.went_wrong(record.left_out_until);
        }
        let before = record.left_out_until;
        record.went_wrong(before);
        assert_eq!(record.left_out_until.0 - before.0, 61_440_000);
    }
}
