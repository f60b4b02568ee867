//! When a notice may be shown. Pure: the time comes in.
//!
//! At most one of a kind a day. None while a game runs: what came up meanwhile is folded into one, 30 seconds after.
//!
//! ```text
//!          game starts              game ends              30 s
//!   calm -------------> in a game ------------> afterglow ------> calm
//!                            ^--- game starts -----'
//! ```

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How long after a game nothing is shown: its last screen belongs to the player.
const AFTERGLOW: SignedDuration = SignedDuration::from_secs(30);

/// What a notice is about. The more urgent comes first, and gives a folded notice its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Nothing is served until the owner does something.
    NeedsYou,
    /// The first game that ever got the machine back.
    FirstHandOver,
}

/// A notice as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub title: String,
    pub body: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mood {
    #[default]
    Calm,
    InGame,
    Afterglow {
        until: Timestamp,
    },
}

/// Holds notices back until their time.
#[derive(Debug, Default)]
pub struct Etiquette {
    shown: BTreeMap<Kind, Date>,
    held: BTreeMap<Kind, Notice>,
    mood: Mood,
}

impl Etiquette {
    /// `shown`: the last day on which each kind was shown.
    pub fn new(shown: BTreeMap<Kind, Date>) -> Self {
        Self { shown, ..Self::default() }
    }

    /// The last day on which each kind was shown.
    pub fn shown(&self) -> &BTreeMap<Kind, Date> {
        &self.shown
    }

    /// Whether a game runs now.
    pub fn game(&mut self, runs: bool, now: Timestamp) {
        self.mood = match (self.mood, runs) {
            (_, true) => Mood::InGame,
            (Mood::InGame, false) => Mood::Afterglow { until: now + AFTERGLOW },
            (mood, false) => mood,
        };
    }

    /// Holds a notice; it takes the place of one of the same kind.
    pub fn offer(&mut self, kind: Kind, notice: Notice) {
        self.held.insert(kind, notice);
    }

    /// Drops a notice that is no longer true.
    pub fn withdraw(&mut self, kind: Kind) {
        self.held.remove(&kind);
    }

    /// The one notice to show now, if any. What was held and may not be shown today is dropped.
    pub fn due(&mut self, now: Timestamp, today: Date) -> Option<Notice> {
        match self.mood {
            Mood::InGame => return None,
            Mood::Afterglow { until } if now < until => return None,
            Mood::Afterglow { .. } => self.mood = Mood::Calm,
            Mood::Calm => {}
        }
        let mut due = std::mem::take(&mut self.held);
        due.retain(|kind, _| self.shown.get(kind) != Some(&today));
        self.shown.extend(due.keys().map(|kind| (*kind, today)));
        due.into_values().reduce(fold)
    }

    /// When `due` must be asked again, if nothing else happens.
    pub fn wake_at(&self) -> Option<Timestamp> {
        match self.mood {
            Mood::Afterglow { until } if !self.held.is_empty() => Some(until),
            Mood::Afterglow { .. } | Mood::InGame | Mood::Calm => None,
        }
    }
}

/// Two notices as one: the title of the first, everything else below it.
fn fold(first: Notice, second: Notice) -> Notice {
    let lines = [first.body, second.title, second.body];
    let body = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    Notice { title: first.title, body }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const DAY: Date = date(2026, 11, 30);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn notice(title: &str) -> Notice {
        Notice { title: title.into(), body: String::new() }
    }

    #[test]
    fn a_notice_is_shown_at_once_when_nobody_plays() {
        let mut etiquette = Etiquette::default();
        etiquette.offer(Kind::NeedsYou, notice("driver too old"));
        assert_eq!(etiquette.due(at(0), DAY), Some(notice("driver too old")));
        assert_eq!(etiquette.due(at(0), DAY), None);
    }

    #[test]
    fn the_same_kind_is_shown_once_a_day() {
        let mut etiquette = Etiquette::default();
        for (day, shown) in [(DAY, true), (DAY, false), (date(2026, 12, 1), true)] {
            etiquette.offer(Kind::NeedsYou, notice("again"));
            assert_eq!(etiquette.due(at(0), day).is_some(), shown, "{day}");
        }
    }

    #[test]
    fn what_was_shown_before_a_restart_counts() {
        let mut etiquette = Etiquette::new(BTreeMap::from([(Kind::NeedsYou, DAY)]));
        etiquette.offer(Kind::NeedsYou, notice("again"));
        assert_eq!(etiquette.due(at(0), DAY), None);
    }

    #[test]
    fn nothing_is_shown_while_a_game_runs_and_one_notice_thirty_seconds_after() {
        let mut etiquette = Etiquette::default();
        etiquette.game(true, at(0));
        etiquette.offer(Kind::FirstHandOver, notice("handed over"));
        etiquette.offer(Kind::NeedsYou, notice("driver too old"));
        assert_eq!(etiquette.due(at(3600), DAY), None);
        assert_eq!(etiquette.wake_at(), None);
        etiquette.game(false, at(3600));
        assert_eq!(etiquette.due(at(3629), DAY), None);
        assert_eq!(etiquette.wake_at(), Some(at(3630)));
        let folded = Notice { title: "driver too old".into(), body: "handed over".into() };
        assert_eq!(etiquette.due(at(3630), DAY), Some(folded));
        assert_eq!(etiquette.wake_at(), None);
    }

    #[test]
    fn the_next_match_starts_the_wait_again() {
        let mut etiquette = Etiquette::default();
        etiquette.game(true, at(0));
        etiquette.offer(Kind::FirstHandOver, notice("handed over"));
        etiquette.game(false, at(10));
        etiquette.game(true, at(20));
        assert_eq!(etiquette.due(at(60), DAY), None);
        etiquette.game(false, at(70));
        assert_eq!(etiquette.due(at(99), DAY), None);
        assert!(etiquette.due(at(100), DAY).is_some());
    }

    #[test]
    fn a_notice_that_is_no_longer_true_is_dropped() {
        let mut etiquette = Etiquette::default();
        etiquette.game(true, at(0));
        etiquette.offer(Kind::NeedsYou, notice("driver too old"));
        etiquette.withdraw(Kind::NeedsYou);
        etiquette.game(false, at(10));
        assert_eq!(etiquette.wake_at(), None);
        assert_eq!(etiquette.due(at(60), DAY), None);
    }
}
