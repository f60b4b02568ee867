//! Programs through which the owner plays without a game of this machine in front: remote play and VR.

use crate::recognise::Kind;

/// A program that runs exactly as long as somebody plays through it. A name alone says nothing, so its file must lie
/// below the folder that its own installer makes.
struct Player {
    folder: &'static str,
    program: &'static str,
    kind: Kind,
    /// For the owner to read.
    name: &'static str,
}

/// Hosts such as Sunshine or Parsec are not here: they wait in the background for days, and the game that somebody
/// plays through them is seen by itself.
const PLAYERS: [Player; 5] = [
    // Steam starts it for one session of Remote Play and ends it with the session; its folder on Linux,
    Player {
        folder: "ubuntu12_32",
        program: "streaming_client",
        kind: Kind::RemotePlay,
        name: "Steam Remote Play",
    },
    // and on Windows.
    Player {
        folder: "Steam",
        program: "streaming_client",
        kind: Kind::RemotePlay,
        name: "Steam Remote Play",
    },
    // Flatpak's folder of a program's own files.
    Player { folder: "app", program: "moonlight", kind: Kind::RemotePlay, name: "Moonlight" },
    Player {
        folder: "Moonlight Game Streaming",
        program: "moonlight",
        kind: Kind::RemotePlay,
        name: "Moonlight",
    },
    // SteamVR draws into the headset with it, and only while there is one.
    Player { folder: "SteamVR", program: "vrcompositor", kind: Kind::VirtualReality, name: "SteamVR" },
];

/// What somebody plays through this program, by the path of its file. Both kinds of slashes separate.
pub(crate) fn played_through(file: &str) -> Option<(Kind, &'static str)> {
    let mut parts = file.rsplit(['/', '\\']);
    let program = parts.next()?;
    let stem = program.split_once('.').map_or(program, |(stem, _)| stem);
    let folders: Vec<_> = parts.collect();
    let player = PLAYERS.iter().find(|player| {
        stem.eq_ignore_ascii_case(player.program)
            && folders.iter().any(|folder| folder.eq_ignore_ascii_case(player.folder))
    })?;
    Some((player.kind, player.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_is_known_by_its_file_in_its_own_folder() {
        let remote = |name| Some((Kind::RemotePlay, name));
        for (file, expected) in [
            ("/home/o/.local/share/Steam/ubuntu12_32/streaming_client", remote("Steam Remote Play")),
            ("C:\\Program Files (x86)\\Steam\\streaming_client.exe", remote("Steam Remote Play")),
            ("/app/bin/moonlight", remote("Moonlight")),
            ("C:\\Program Files\\Moonlight Game Streaming\\Moonlight.exe", remote("Moonlight")),
            ("/s/steamapps/common/SteamVR/bin/linux64/vrcompositor", Some((Kind::VirtualReality, "SteamVR"))),
        ] {
            assert_eq!(played_through(file), expected, "{file}");
        }
    }

    #[test]
    fn a_name_alone_and_what_waits_in_the_background_play_nothing() {
        for file in [
            "/usr/bin/streaming_client",
            "/home/o/src/moonlight/moonlight",
            "/home/o/.local/share/Steam/ubuntu12_32/steam",
            "/s/steamapps/common/SteamVR/bin/linux64/vrmonitor",
            "/usr/bin/sunshine",
            "",
        ] {
            assert_eq!(played_through(file), None, "{file}");
        }
    }
}
