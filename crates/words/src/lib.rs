//! The words in which the owner is told what the node does: status, reasons, faults and refusals, in English and
//! Swahili. Tray, window, notices and command line all read the same sentence from here.
//!
//! It is deliberately nothing else: it decides nothing, knows no clock and no time zone, and holds no labels of
//! buttons and menus. A game's name appears in it, because it is the owner's own and is shown to the owner alone;
//! nothing secret ever does.

mod english;
mod swahili;

use wakati_agent::{Activity, Fault, Kind, LocalTime, Refused, Rest, Status};

/// A language that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    English,
    Swahili,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 2] = [Self::English, Self::Swahili];

    /// The language of a tag such as `sw` or `sw-KE`; `None` for one that is not there.
    #[must_use]
    pub fn of(tag: &str) -> Option<Self> {
        let tag = tag.split(['-', '_']).next()?;
        Self::ALL.into_iter().find(|language| language.tag().eq_ignore_ascii_case(tag))
    }

    /// Its tag.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Swahili => "sw",
        }
    }

    /// The status sentence: "Serving SmolLM2 135M - 2 jobs".
    #[must_use]
    pub fn sentence(self, status: &Status) -> String {
        let sentence = self.activity(&status.activity);
        match (&status.activity, status.jobs, status.loaded) {
            (Activity::Serving { .. }, 1.., _) => format!("{sentence} - {}", self.jobs(status.jobs)),
            (Activity::Warming { .. }, _, Some(loaded)) => format!("{sentence} - {}%", loaded.0),
            _ => sentence,
        }
    }

    /// What the node does or did, as in a row of the day.
    #[must_use]
    pub fn activity(self, activity: &Activity) -> String {
        match self {
            Self::English => english::activity(activity),
            Self::Swahili => swahili::activity(activity),
        }
    }

    /// The signs by which a game was seen, as in a row of the day; empty for everything else.
    #[must_use]
    pub fn evidence(self, activity: &Activity) -> String {
        let (Activity::Resting(Rest::Game { because, .. }) | Activity::Yielding(Rest::Game { because, .. })) =
            activity
        else {
            return String::new();
        };
        match self {
            Self::English => list(because, english::sign),
            Self::Swahili => list(because, swahili::sign),
        }
    }

    /// Why, or what happens next, in one more sentence; empty when the status sentence says it all.
    #[must_use]
    pub fn reason(self, status: &Status) -> String {
        match self {
            Self::English => english::reason(&status.activity),
            Self::Swahili => swahili::reason(&status.activity),
        }
    }

    /// What the owner must know.
    #[must_use]
    pub fn fault(self, fault: &Fault) -> String {
        match self {
            Self::English => english::fault(fault),
            Self::Swahili => swahili::fault(fault),
        }
    }

    /// Why a wish is not granted.
    #[must_use]
    pub fn refused(self, refused: &Refused) -> String {
        match self {
            Self::English => english::refused(refused),
            Self::Swahili => swahili::refused(refused),
        }
    }

    fn jobs(self, jobs: u32) -> String {
        match self {
            Self::English => english::jobs(jobs),
            Self::Swahili => swahili::jobs(jobs),
        }
    }
}

/// "15:40".
fn clock(time: LocalTime) -> String {
    format!("{:02}:{:02}", time.hour(), time.minute())
}

/// "a, b".
fn list(kinds: &[Kind], word: fn(Kind) -> &'static str) -> String {
    kinds.iter().map(|kind| word(*kind)).collect::<Vec<_>>().join(", ")
}

/// "4.2 GiB", or "900 MiB" where that is less than one.
fn memory(mebibytes: u64) -> String {
    match mebibytes {
        0..1024 => format!("{mebibytes} MiB"),
        _ => format!("{}.{} GiB", mebibytes / 1024, mebibytes % 1024 * 10 / 1024),
    }
}
