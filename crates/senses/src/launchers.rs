//! Launchers that leave a process of their own above each game, as long as it runs.

use std::path::Path;

use crate::libraries;

/// Reads `.../reaper SteamLaunch AppId=N -- COMMAND`, as Steam on Linux starts every game; gives the game's name.
/// With `Install=1` it runs an installer of the game's runtime, with nothing to see.
pub(crate) fn steam_game(argv: &[String]) -> Option<String> {
    let [program, mark, rest @ ..] = argv else { return None };
    if file_name(program)? != "reaper" || mark != "SteamLaunch" {
        return None;
    }
    let end = rest.iter().position(|word| word == "--")?;
    let (options, command) = (&rest[..end], &rest[end + 1..]);
    if options.iter().any(|option| option == "Install=1") {
        return None;
    }
    let app: u32 = options.iter().find_map(|option| option.strip_prefix("AppId=")?.parse().ok())?;
    let name = command.iter().rev().find_map(|word| libraries::steam_game(word));
    Some(name.map_or_else(|| format!("Steam {app}"), str::to_owned))
}

/// Reads the title `lutris-wrapper: NAME`, which Lutris gives the process that it puts above each game.
pub(crate) fn lutris_game(argv: &[String]) -> Option<String> {
    let name = argv.first()?.strip_prefix("lutris-wrapper: ")?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Reads `gamescope OPTIONS -- COMMAND`. A session that shows Steam itself is a desktop, not a game.
pub(crate) fn gamescope_game(argv: &[String]) -> Option<String> {
    let (program, rest) = argv.split_first()?;
    if !matches!(file_name(program)?, "gamescope" | "gamescope-wl") {
        return None;
    }
    let end = rest.iter().position(|word| word == "--")?;
    let (options, command) = (&rest[..end], &rest[end + 1..]);
    let first = file_name(command.first()?)?;
    if first == "steam" || options.iter().any(|option| matches!(option.as_str(), "-e" | "--steam")) {
        return None;
    }
    let name = command.iter().rev().find_map(|word| libraries::game(word));
    Some(name.unwrap_or(first).to_owned())
}

fn file_name(word: &str) -> Option<&str> {
    Path::new(word).file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split('|').map(str::to_owned).collect()
    }

    fn steam(line: &str) -> Option<String> {
        steam_game(&words(line))
    }

    #[test]
    fn a_reaper_is_named_after_its_games_folder() {
        let proton = "/home/o/.steam/ubuntu12_32/reaper|SteamLaunch|AppId=1245620|--|/home/o/steamapps/common/\
            SteamLinuxRuntime_sniper/_v2-entry-point|--|/home/o/steamapps/common/Proton 9.0/proton|run|\
            /home/o/steamapps/common/ELDEN RING/Game/eldenring.exe";
        assert_eq!(steam(proton), Some("ELDEN RING".into()));
        let windows =
            "/s/reaper|SteamLaunch|AppId=5|--|wine|Z:\\g\\steamapps\\common\\Half-Life\\hl.exe|-full";
        assert_eq!(steam(windows), Some("Half-Life".into()));
        assert_eq!(steam("/s/reaper|SteamLaunch|AppId=5|--|/opt/x"), Some("Steam 5".into()));
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
    fn lutris_names_its_game_in_the_title() {
        assert_eq!(lutris_game(&words("lutris-wrapper: Quake II")), Some("Quake II".into()));
        assert_eq!(lutris_game(&words("lutris-wrapper: ")), None);
        assert_eq!(lutris_game(&words("/usr/bin/python3|/usr/bin/lutris")), None);
    }

    #[test]
    fn gamescope_with_a_game_is_one_and_a_steam_session_is_not() {
        let game = "/usr/bin/gamescope|-f|-W|2560|--|/g/steamapps/common/Portal 2/portal2_linux";
        assert_eq!(gamescope_game(&words(game)), Some("Portal 2".into()));
        assert_eq!(
            gamescope_game(&words("gamescope|--|/usr/games/supertuxkart")),
            Some("supertuxkart".into())
        );
        for line in [
            "gamescope|-e|--|steam|-gamepadui",
            "gamescope|--|/usr/bin/steam",
            "gamescope|--help",
            "vim|--|x",
        ] {
            assert_eq!(gamescope_game(&words(line)), None, "{line}");
        }
    }
}
