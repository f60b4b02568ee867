//! The folders in which stores keep their games, by the names that the stores give them.

/// The folders above a game's own, as they follow each other in a path: Steam, Heroic, GOG and GOG Galaxy, Epic,
/// itch, Xbox, Ubisoft Connect, the EA app and Riot, each at the place that its own installer proposes.
const LIBRARIES: [&[&str]; 11] = [
    STEAM,
    &["Games", "Heroic"],
    &["GOG Games"],
    &["GOG Galaxy", "Games"],
    &["Epic Games"],
    &["itch", "apps"],
    &["XboxGames"],
    &["Ubisoft Game Launcher", "games"],
    &["EA Games"],
    &["Riot Games"],
    &["Amazon Games", "Library"],
];
const STEAM: &[&str] = &["steamapps", "common"];

/// What lies beside the games and is none: Steam's tools and runtimes, and the launchers themselves.
const TOOLS: [&str; 8] = [
    "Proton",
    "SteamLinuxRuntime",
    "Steamworks",
    "SteamVR",
    "Launcher",
    "DirectXRedist",
    "Riot Client",
    "Prefixes",
];

/// The game in whose folder this file lies; its folder is named after it. Both kinds of slashes separate.
pub(crate) fn game(file: &str) -> Option<&str> {
    LIBRARIES.into_iter().find_map(|library| below(file, library))
}

/// The same for Steam's library alone.
pub(crate) fn steam_game(file: &str) -> Option<&str> {
    below(file, STEAM)
}

fn below<'a>(file: &'a str, library: &[&str]) -> Option<&'a str> {
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    let same = |(part, name): (&&str, &&str)| part.eq_ignore_ascii_case(name);
    let at = parts.windows(library.len()).position(|parts| parts.iter().zip(library).all(same))?;
    let mut rest = parts[at + library.len()..].iter();
    let folder = rest.next().filter(|folder| !folder.is_empty())?;
    // A folder alone is no program.
    rest.next()?;
    (!TOOLS.iter().any(|tool| folder.starts_with(tool))).then_some(*folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_a_library_belongs_to_the_game_whose_folder_it_is_in() {
        for (file, name) in [
            ("/home/o/.local/share/Steam/steamapps/common/Hades/x64/Hades", Some("Hades")),
            ("D:\\SteamLibrary\\steamapps\\common\\Hades\\Hades.exe", Some("Hades")),
            ("d:\\steamlibrary\\SteamApps\\common\\Hades\\Hades.exe", Some("Hades")),
            ("C:\\Program Files\\Epic Games\\Fortnite\\F.exe", Some("Fortnite")),
            ("C:\\Program Files (x86)\\Epic Games\\Launcher\\Portal\\E.exe", None),
            ("/home/o/Games/Heroic/Celeste/Celeste.exe", Some("Celeste")),
            ("/home/o/Games/Heroic/Prefixes/default/x.exe", None),
            ("/home/o/.config/itch/apps/celeste-classic/celeste", Some("celeste-classic")),
            ("C:\\Riot Games\\Riot Client\\RiotClientServices.exe", None),
            ("C:\\XboxGames\\Halo\\Content\\halo.exe", Some("Halo")),
            ("/g/steamapps/common/Proton 9.0/files/bin/wine64", None),
            ("/g/steamapps/common/Hades", None),
            ("/usr/bin/code", None),
            ("", None),
        ] {
            assert_eq!(game(file), name, "{file}");
        }
    }
}
