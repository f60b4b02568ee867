//! Signs that the owner uses the machine, as the senses give them.

use serde::{Deserialize, Serialize};

/// What one sense saw at its last look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Everything that it sees now; what it saw before and does not see any more is gone.
    Signs(Vec<Sign>),
    /// It could not look. What it saw last still holds, and nothing new follows from it.
    Unreadable,
}

/// A sense that looks, and may fail, apart from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sense {
    /// The process list. Nothing is served before it has been looked at once.
    Processes,
    /// Programs that told the system that they are games (GameMode on Linux).
    GameMode,
    /// The window in front and whether it covers its screen.
    Screen,
}

/// One sign. The name is the owner's own and never leaves the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sign {
    pub kind: Kind,
    /// For the owner to read.
    pub name: String,
    /// The process that it is about: signs of one process belong together.
    pub pid: u32,
    /// Whether that process is known to live. A flag that outlives its process is stale.
    pub lives: bool,
}

/// What kind of sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A game launcher started it.
    Launcher,
    /// It is on the owner's list of games.
    OwnersList,
    /// It told the system that it is a game.
    GameMode,
    /// It is a compositor that shows one game and nothing else (gamescope).
    GameCompositor,
    /// Somebody plays on another machine through this one's screen.
    RemotePlay,
    /// A headset for virtual reality is in use.
    VirtualReality,
    /// Its file lies in a game library's folder.
    GameFolder,
    /// It runs under Wine or Proton.
    Compatibility,
    /// Its window is in front and covers the screen.
    FullScreen,
    /// Moving pictures in full screen: a film, never a game.
    Film,
}

/// How much a kind of sign says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strength {
    /// One is enough.
    Hard,
    /// Two different ones of the same process are needed.
    Soft,
    /// No sign of a game at all.
    Film,
}

impl Kind {
    pub(crate) fn strength(self) -> Strength {
        match self {
            Self::Launcher
            | Self::OwnersList
            | Self::GameMode
            | Self::GameCompositor
            | Self::RemotePlay
            | Self::VirtualReality => Strength::Hard,
            Self::GameFolder | Self::Compatibility | Self::FullScreen => Strength::Soft,
            Self::Film => Strength::Film,
        }
    }
}
