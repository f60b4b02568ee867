//! Whether the owner plays, or has played so lately that another round may start.
//!
//! ```text
//! NotLooked -> Quiet <------------------------------+
//!     \-----> Playing -> Ended, quiet time over ----+
//!                ^          |
//!                +----------+ it, or another one, is seen
//! ```
//! A hard sign begins `Playing` alone; soft ones do when two different kinds were seen of one process within
//! [`TOGETHER`]. What began it keeps it: a game that began by soft signs lasts while its process shows any of them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::moment::Moment;
use crate::rest::Rest;
use crate::rules::Rules;
use crate::sign::{Kind, Seen, Sense, Sign, Strength};

/// Two soft signs count together when they were seen within this time.
const TOGETHER: Duration = Duration::from_secs(10);
/// A hard sign whose process does not live counts for so long: the flag may be ahead of the process.
const STALE: Duration = Duration::from_secs(60);
/// A game that is seen within this time after serving has returned made it flap.
const FLAP: Duration = Duration::from_secs(10 * 60);
/// However often it flaps, the quiet time is never longer.
const LONGEST_QUIET: Duration = Duration::from_secs(15 * 60);

/// What is known of games and films.
#[derive(Debug, Default)]
pub(crate) struct InUse {
    signs: BTreeMap<Sense, Vec<Sign>>,
    /// When each soft sign of each process was last seen.
    soft: BTreeMap<u32, BTreeMap<Kind, Moment>>,
    /// Since when each process that a hard sign is about is known not to live.
    dead: BTreeMap<u32, Moment>,
    state: State,
    /// The owner lets serving go on beside this process, and has said so.
    allowed: Option<u32>,
    returned_at: Option<Moment>,
    flaps: u32,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    NotLooked,
    Quiet,
    Playing(Playing),
    Ended {
        name: String,
        at: Moment,
        quiet: Duration,
    },
}

/// A game that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Playing {
    pub name: String,
    pid: u32,
    /// What decided it.
    because: Vec<Kind>,
    lasts: Lasts,
}

/// How long it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasts {
    /// While a hard sign of it is seen.
    Hard,
    /// While any soft sign of its process is seen.
    Soft,
}

impl InUse {
    /// Takes in what one sense saw.
    pub(crate) fn see(&mut self, now: Moment, rules: &Rules, sense: Sense, seen: Seen) {
        match seen {
            Seen::Signs(signs) => {
                self.note(now, &signs);
                self.signs.insert(sense, signs);
            }
            // It has been looked at, and there was nothing to see.
            Seen::Unreadable => {
                self.signs.entry(sense).or_default();
            }
        }
        self.judge(now, rules);
    }

    fn note(&mut self, now: Moment, signs: &[Sign]) {
        for sign in signs {
            match sign.kind.strength() {
                Strength::Soft => {
                    self.soft.entry(sign.pid).or_default().insert(sign.kind, now);
                }
                Strength::Hard if !sign.lives => {
                    self.dead.entry(sign.pid).or_insert(now);
                }
                Strength::Hard => {
                    self.dead.remove(&sign.pid);
                }
                Strength::Film => {}
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn tick(&mut self, now: Moment, rules: &Rules) {
        self.judge(now, rules);
        if self.quiet_ends().is_some_and(|ends| ends <= now) {
            self.state = State::Quiet;
            self.returned_at = Some(now);
        }
    }

    /// The owner does not want to wait for the quiet time to end.
    pub(crate) fn forget_ended(&mut self) {
        if matches!(self.state, State::Ended { .. }) {
            self.state = State::Quiet;
            self.flaps = 0;
        }
    }

    /// The owner wants serving beside the game that runs, until it ends. False when none runs.
    pub(crate) fn allow(&mut self) -> bool {
        let State::Playing(playing) = &self.state else { return false };
        self.allowed = Some(playing.pid);
        true
    }

    /// The game that has the machine.
    pub(crate) fn playing(&self) -> Option<&Playing> {
        match &self.state {
            State::Playing(playing) if self.allowed != Some(playing.pid) => Some(playing),
            State::NotLooked | State::Quiet | State::Playing(_) | State::Ended { .. } => None,
        }
    }

    /// What shows a film in full screen.
    pub(crate) fn film(&self) -> Option<String> {
        self.seen().find(|sign| sign.kind == Kind::Film).map(|sign| sign.name.clone())
    }

    /// When the quiet time after a game is over.
    pub(crate) fn quiet_ends(&self) -> Option<Moment> {
        match &self.state {
            State::Ended { at, quiet, .. } => Some(at.plus(*quiet)),
            State::NotLooked | State::Quiet | State::Playing(_) => None,
        }
    }

    /// When something changes by itself.
    pub(crate) fn wake_at(&self) -> Option<Moment> {
        let stale = self.dead.values().map(|since| since.plus(STALE)).min();
        let stale = stale.filter(|_| matches!(self.state, State::Playing(_)));
        [self.quiet_ends(), stale].into_iter().flatten().min()
    }

    /// Why it keeps the machine from serving.
    pub(crate) fn rest(&self) -> Option<Rest> {
        match &self.state {
            State::Playing(_) => {
                let Playing { name, because, .. } = self.playing()?.clone();
                Some(Rest::Game { name, because })
            }
            State::Ended { name, quiet, .. } => Some(Rest::QuietAfterGame {
                name: name.clone(),
                seconds: u32::try_from(quiet.as_secs()).unwrap_or(u32::MAX),
            }),
            State::NotLooked => Some(Rest::Starting),
            State::Quiet => None,
        }
    }

    /// Goes to the state that follows from the signs.
    fn judge(&mut self, now: Moment, rules: &Rules) {
        self.forget(now);
        let found = self.found(now);
        match (&mut self.state, found) {
            // The same process goes on, perhaps seen by other signs.
            (State::Playing(playing), Some(found)) if playing.pid == found.pid => playing.lasts = found.lasts,
            (State::Playing(playing), Some(found)) => *playing = found,
            (State::NotLooked | State::Quiet | State::Ended { .. }, Some(found)) => self.begin(now, found),
            (State::Playing(playing), None) => {
                let quiet = match playing.lasts {
                    Lasts::Hard => rules.quiet,
                    Lasts::Soft => rules.quiet_after_soft,
                };
                let quiet = quiet.saturating_mul(1 << self.flaps.min(16)).min(LONGEST_QUIET.max(quiet));
                let ended = State::Ended { name: std::mem::take(&mut playing.name), at: now, quiet };
                self.state = if self.allowed.take().is_some() { State::Quiet } else { ended };
            }
            (State::NotLooked, None) if self.signs.contains_key(&Sense::Processes) => {
                self.state = State::Quiet
            }
            (State::NotLooked | State::Quiet | State::Ended { .. }, None) => {}
        }
    }

    fn begin(&mut self, now: Moment, found: Playing) {
        let flapped = self.returned_at.is_some_and(|returned| now.since(returned) < FLAP);
        if flapped {
            self.flaps += 1;
        } else if matches!(self.state, State::Quiet | State::NotLooked) {
            self.flaps = 0;
        }
        self.returned_at = None;
        self.state = State::Playing(found);
    }

    /// The game that the signs speak of; the one that runs already, if they still speak of it.
    fn found(&self, now: Moment) -> Option<Playing> {
        let current = match &self.state {
            State::Playing(playing) => Some(playing.pid),
            State::NotLooked | State::Quiet | State::Ended { .. } => None,
        };
        let hard = || self.seen().filter(|sign| self.decides(now, sign));
        let hard = hard().find(|sign| Some(sign.pid) == current).or_else(|| hard().next());
        if let Some(Sign { name, pid, kind, .. }) = hard.cloned() {
            return Some(Playing { name, pid, because: vec![kind], lasts: Lasts::Hard });
        }
        // What began by soft signs lasts while any of them is seen.
        if let State::Playing(playing) = &self.state
            && playing.lasts == Lasts::Soft
            && self.soft_sign(playing.pid).is_some()
        {
            return Some(playing.clone());
        }
        self.soft.keys().find_map(|pid| self.together(*pid))
    }

    /// The process, if two different soft signs of it were seen in the last [`TOGETHER`] and one still is.
    fn together(&self, pid: u32) -> Option<Playing> {
        let because: Vec<_> = self.soft.get(&pid)?.keys().copied().collect();
        let name = self.soft_sign(pid)?.name.clone();
        (because.len() >= 2).then_some(Playing { name, pid, because, lasts: Lasts::Soft })
    }

    fn soft_sign(&self, pid: u32) -> Option<&Sign> {
        self.seen().find(|sign| sign.pid == pid && sign.kind.strength() == Strength::Soft)
    }

    /// Whether this sign alone makes a game.
    fn decides(&self, now: Moment, sign: &Sign) -> bool {
        let stale = self.dead.get(&sign.pid).is_some_and(|since| now.since(*since) >= STALE);
        sign.kind.strength() == Strength::Hard && !stale
    }

    fn seen(&self) -> impl Iterator<Item = &Sign> {
        self.signs.values().flatten()
    }

    /// Drops what was seen too long ago, and the dead of whom nothing speaks any more.
    fn forget(&mut self, now: Moment) {
        let signs = &self.signs;
        let seen = |pid: u32, is: &dyn Fn(&Sign) -> bool| {
            signs.values().flatten().any(|sign| sign.pid == pid && is(sign))
        };
        self.soft.retain(|pid, kinds| {
            kinds.retain(|kind, last| now.since(*last) < TOGETHER || seen(*pid, &|sign| sign.kind == *kind));
            !kinds.is_empty()
        });
        self.dead.retain(|pid, _| seen(*pid, &|sign| !sign.lives));
    }
}
