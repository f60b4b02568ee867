//! Whether a process is a game, by what is known of it. A name alone that somebody else chose decides nothing.

use std::path::{Path, PathBuf};

use crate::processes::Facts;

/// A process that is a game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Game {
    /// For the owner to read.
    pub name: String,
    pub pid: u32,
    pub evidence: Evidence,
}

/// Why a process is taken for a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Steam's reaper, which lives exactly as long as the game that it started and everything below it.
    SteamReaper {
        app: u32,
    },
    OwnersList,
}

/// The programs that the owner counts as games.
///
/// An entry with a path separator is a whole path, any other one the name of the program's file; both must fit
/// exactly (on Windows, upper and lower case are the same). The words of a command line never count: an interpreter
/// that runs a listed script is not that script.
#[derive(Debug, Clone, Default)]
pub struct OwnersList {
    paths: Vec<PathBuf>,
    names: Vec<String>,
}

impl OwnersList {
    /// Reads the list as the owner wrote it. Empty entries are dropped.
    pub fn new<S: AsRef<str>>(programs: impl IntoIterator<Item = S>) -> Self {
        let mut list = Self::default();
        for program in programs {
            let program = program.as_ref().trim();
            if program.contains(std::path::is_separator) {
                list.paths.push(PathBuf::from(program));
            } else if !program.is_empty() {
                list.names.push(program.to_owned());
            }
        }
        list
    }

    fn holds(&self, program: &Path) -> bool {
        let named =
            |name: &String| program.file_name().and_then(|f| f.to_str()).is_some_and(|f| same(f, name));
        let whole = |path: &PathBuf| same(&path.to_string_lossy(), &program.to_string_lossy());
        self.names.iter().any(named) || self.paths.iter().any(whole)
    }
}

#[cfg(windows)]
fn same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

#[cfg(not(windows))]
fn same(one: &str, other: &str) -> bool {
    one == other
}

/// The game that this process is. A zombie has ended.
#[must_use]
pub(crate) fn recognise(facts: &Facts, list: &OwnersList) -> Option<Game> {
    if facts.zombie {
        return None;
    }
    if let Some((app, name)) = steam_game(&facts.argv) {
        return Some(Game { name, pid: facts.pid, evidence: Evidence::SteamReaper { app } });
    }
    let program = facts.program.as_deref().filter(|program| list.holds(program))?;
    let name = program.file_stem()?.to_string_lossy().into_owned();
    Some(Game { name, pid: facts.pid, evidence: Evidence::OwnersList })
}

/// Reads `.../reaper SteamLaunch AppId=N -- COMMAND`, as Steam on Linux starts every game.
/// With `Install=1` it runs an installer of the game's runtime, with nothing to see.
fn steam_game(argv: &[String]) -> Option<(u32, String)> {
    let [program, mark, rest @ ..] = argv else { return None };
    if Path::new(program).file_name()? != "reaper" || mark != "SteamLaunch" {
        return None;
    }
    let end = rest.iter().position(|word| word == "--")?;
    let (options, command) = (&rest[..end], &rest[end + 1..]);
    if options.iter().any(|option| option == "Install=1") {
        return None;
    }
    let app = options.iter().find_map(|option| option.strip_prefix("AppId=")?.parse().ok())?;
    let name = command.iter().rev().find_map(|word| folder_of_game(word));
    Some((app, name.map_or_else(|| format!("Steam {app}"), str::to_owned)))
}

/// The folder below `steamapps/common`, which Steam names after the game. Its own tools (Proton, the runtimes) lie
/// there too, and come before the game in a command.
fn folder_of_game(word: &str) -> Option<&str> {
    let mut parts = word.split(['/', '\\']);
    while let Some(part) = parts.next() {
        if part == "steamapps" && parts.next() == Some("common") {
            let folder = parts.next().filter(|folder| !folder.is_empty())?;
            // A folder alone is no program.
            parts.next()?;
            let tool = ["Proton", "SteamLinuxRuntime", "Steamworks"];
            return (!tool.iter().any(|tool| folder.starts_with(tool))).then_some(folder);
        }
    }
    None
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

    fn steam(words: &str) -> Option<(u32, String)> {
        let argv: Vec<String> = words.split('|').map(str::to_owned).collect();
        steam_game(&argv)
    }

    #[test]
    fn a_reaper_is_named_after_its_games_folder() {
        let proton = "/home/o/.steam/ubuntu12_32/reaper|SteamLaunch|AppId=1245620|--|/home/o/steamapps/common/\
            SteamLinuxRuntime_sniper/_v2-entry-point|--|/home/o/steamapps/common/Proton 9.0/proton|run|\
            /home/o/steamapps/common/ELDEN RING/Game/eldenring.exe";
        assert_eq!(steam(proton), Some((1_245_620, "ELDEN RING".into())));
        let windows =
            "/s/reaper|SteamLaunch|AppId=5|--|wine|Z:\\g\\steamapps\\common\\Half-Life\\hl.exe|-full";
        assert_eq!(steam(windows), Some((5, "Half-Life".into())));
        assert_eq!(steam("/s/reaper|SteamLaunch|AppId=5|--|/opt/x"), Some((5, "Steam 5".into())));
    }

    #[test]
    fn what_only_looks_like_a_reaper_is_none() {
        for words in [
            "/s/reaper|SteamLaunch|Install=1|AppId=5|--|/g/steamapps/common/X/x",
            "/s/reaper|SteamLaunch|AppId=5|Install=1|--|/g/steamapps/common/X/x",
            "/bin/grep|SteamLaunch|AppId=5|--|x",
            "/bin/bash|-c|/s/reaper SteamLaunch AppId=5 -- x",
            "/s/reaper|--config|SteamLaunch|AppId=5",
            "/s/reaper|SteamLaunch|AppId=many|--|x",
            "/s/reaper",
        ] {
            assert_eq!(steam(words), None, "{words}");
        }
    }

    #[test]
    fn the_owners_list_fits_exactly_or_not_at_all() {
        let list = OwnersList::new(["factorio", "/opt/games/doom", " ", "run.py"]);
        let is =
            |program: &str, argv: &[&str]| recognise(&process(program, argv), &list).map(|game| game.name);
        assert_eq!(is("/usr/games/factorio", &[]), Some("factorio".into()));
        assert_eq!(is("/opt/games/doom", &[]), Some("doom".into()));
        for (program, argv) in [
            ("/usr/games/factorio-helper", &[][..]),
            ("/usr/bin/xfactorio", &[]),
            ("/home/o/doom", &[]),
            ("/usr/bin/rg", &["rg", "factorio"]),
            ("/usr/bin/bash", &["factorio"]),
            ("/usr/bin/python3", &["python3", "run.py"]),
        ] {
            assert_eq!(is(program, argv), None, "{program} {argv:?}");
        }
    }

    #[test]
    fn a_zombie_does_not_play() {
        let list = OwnersList::new(["factorio"]);
        let zombie = Facts { zombie: true, ..process("/usr/games/factorio", &[]) };
        assert_eq!(recognise(&zombie, &list), None);
    }
}
