//! Which signs of a game a process shows, by what is known of it. A name alone that somebody else chose is none.

use std::path::Path;

use crate::elsewhere::played_through;
use crate::launchers::{gamescope_game, lutris_game, steam_game};
use crate::libraries;
use crate::owners_list::OwnersList;
use crate::processes::Facts;
use crate::wine;

/// One sign that a process shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sign {
    pub kind: Kind,
    /// For the owner to read.
    pub name: String,
    /// The process that it is about.
    pub pid: u32,
    /// Whether that process is known to live.
    pub lives: bool,
}

/// What kind of sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A launcher's own process, which lives exactly as long as the game that it started.
    Launcher,
    /// It is on the owner's list of games.
    OwnersList,
    /// It told the system that it is a game.
    GameMode,
    /// It is a compositor that shows one game and nothing else.
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
    /// Moving pictures in full screen.
    Film,
}

/// The signs that this process shows. A zombie has ended.
#[must_use]
pub(crate) fn recognise(facts: &Facts, lists: &OwnersList) -> Vec<Sign> {
    let Facts { pid, zombie, program, argv, .. } = facts;
    if *zombie {
        return Vec::new();
    }
    let sign = |kind, name| Sign { kind, name, pid: *pid, lives: true };
    let mut signs = Vec::new();
    if let Some(program) = program.as_deref().filter(|program| lists.is_game(program)) {
        signs.extend(stem(program).map(|name| sign(Kind::OwnersList, name)));
    }
    signs.extend(steam_game(argv).or_else(|| lutris_game(argv)).map(|name| sign(Kind::Launcher, name)));
    signs.extend(gamescope_game(argv).map(|name| sign(Kind::GameCompositor, name)));
    // Under Wine the program is Wine itself, and the first word names the game's file.
    let windows = wine::program(program.as_deref(), argv);
    signs.extend(windows.as_deref().and_then(wine::name).map(|name| sign(Kind::Compatibility, name)));
    let file = windows.as_deref().or_else(|| program.as_deref()?.to_str());
    signs.extend(file.and_then(libraries::game).map(|name| sign(Kind::GameFolder, name.to_owned())));
    signs.extend(file.and_then(played_through).map(|(kind, name)| sign(kind, name.to_owned())));
    signs.retain(|sign| !lists.is_no_game(program.as_deref(), &sign.name));
    signs
}

fn stem(program: &Path) -> Option<String> {
    Some(program.file_stem()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(program: &str, argv: &[&str]) -> Facts {
        Facts {
            pid: 7,
            parent: 1,
            started: 1,
            zombie: false,
            program: Some(program.into()),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    fn kinds(program: &str, argv: &[&str], lists: &OwnersList) -> Vec<(Kind, String)> {
        let signs = recognise(&process(program, argv), lists);
        signs.into_iter().map(|sign| (sign.kind, sign.name)).collect()
    }

    #[test]
    fn a_windows_game_from_a_library_shows_two_signs_and_a_bare_installer_one() {
        let none = OwnersList::default();
        let preloader = "/usr/lib/wine/wine64-preloader";
        let game = "Z:\\home\\o\\Games\\Heroic\\Celeste\\Celeste.exe";
        assert_eq!(
            kinds(preloader, &[game], &none),
            [(Kind::Compatibility, "Celeste".into()), (Kind::GameFolder, "Celeste".into())]
        );
        let setup = "Z:\\home\\o\\Downloads\\setup.exe";
        assert_eq!(kinds(preloader, &[setup], &none), [(Kind::Compatibility, "setup".into())]);
        assert_eq!(kinds(preloader, &["C:\\windows\\system32\\explorer.exe", "/desktop"], &none), []);
    }

    #[test]
    fn what_the_owner_calls_no_game_is_none_by_file_or_by_name() {
        let reaper =
            ["/s/reaper", "SteamLaunch", "AppId=431960", "--", "/g/steamapps/common/wallpaper_engine/w.exe"];
        let sees = |no_games: &[&str]| kinds("/s/reaper", &reaper, &OwnersList::new([""; 0], no_games));
        assert_eq!(sees(&[]), [(Kind::Launcher, "wallpaper_engine".into())]);
        assert_eq!(sees(&["wallpaper_engine"]), []);
        assert_eq!(sees(&["reaper"]), []);
        assert_eq!(sees(&["wallpaper"]).len(), 1);
    }

    #[test]
    fn the_owners_list_fits_exactly_or_not_at_all() {
        let list = OwnersList::new(["factorio", "/opt/games/doom", " ", "run.py"], [""; 0]);
        let is = |program: &str, argv: &[&str]| kinds(program, argv, &list);
        assert_eq!(is("/usr/games/factorio", &[]), [(Kind::OwnersList, "factorio".into())]);
        assert_eq!(is("/opt/games/doom", &[]), [(Kind::OwnersList, "doom".into())]);
        for (program, argv) in [
            ("/usr/games/factorio-helper", &[][..]),
            ("/usr/bin/xfactorio", &[]),
            ("/home/o/doom", &[]),
            ("/usr/bin/rg", &["rg", "factorio"]),
            ("/usr/bin/bash", &["factorio"]),
            ("/usr/bin/python3", &["python3", "run.py"]),
        ] {
            assert_eq!(is(program, argv), [], "{program} {argv:?}");
        }
    }

    #[test]
    fn a_zombie_does_not_play() {
        let list = OwnersList::new(["factorio"], [""; 0]);
        let zombie = Facts { zombie: true, ..process("/usr/games/factorio", &[]) };
        assert_eq!(recognise(&zombie, &list), []);
    }
}
