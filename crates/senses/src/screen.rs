//! What the screen says: which window covers it, and how long nobody has touched the machine.

use std::time::Duration;

use crate::recognise::Sign;

/// One look at the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenSeen {
    /// There is no screen of a kind that is understood here.
    Absent,
    /// There is one, but it did not answer.
    Unreadable,
    Seen {
        /// The window in front, if it covers a whole monitor.
        signs: Vec<Sign>,
        /// How long nobody has touched keyboard and mouse; `None` where that is not told.
        untouched: Option<Duration>,
    },
}

/// Browsers and players of films, by the class of their windows or, on Windows, by their program. In full screen they show films, and what a browser
/// shows besides is never a game that needs this machine's GPU for itself.
#[cfg(any(target_os = "linux", windows, test))]
const FILMS: [&str; 22] = [
    "brave",
    "celluloid",
    "chrome",
    "chromium",
    "dragonplayer",
    "epiphany",
    "firefox",
    "haruna",
    "jellyfin",
    "kodi",
    "librewolf",
    "microsoft-edge",
    "mpc",
    "mpv",
    "msedge",
    "opera",
    "plex",
    "smplayer",
    "totem",
    "vivaldi",
    "vlc",
    "wmplayer",
];

/// Whether windows of this class show films.
#[cfg(any(target_os = "linux", windows, test))]
pub(crate) fn shows_films(class: &str) -> bool {
    let class = class.to_lowercase();
    // `Google-chrome` and `org.gnome.Totem` name the program by one of their parts.
    FILMS.iter().any(|film| class == *film || class.split(['-', '.']).any(|part| part == *film))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_is_known_by_a_whole_part_of_its_class() {
        for class in
            ["Firefox", "Google-chrome", "org.gnome.Totem", "mpv", "Microsoft-edge", "msedge", "mpc-hc64"]
        {
            assert!(shows_films(class), "{class}");
        }
        for class in ["steam_app_1245620", "operation", "Chromehounds", ""] {
            assert!(!shows_films(class), "{class}");
        }
    }
}
