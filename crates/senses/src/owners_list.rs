//! The programs of which the owner has said that they are games, or that they are not.

use std::path::{Path, PathBuf};

/// What the owner has said.
///
/// An entry with a path separator is a whole path, any other one the name of the program's file; both must fit
/// exactly (on Windows, upper and lower case are the same). The words of a command line never count: an interpreter
/// that runs a listed script is not that script.
#[derive(Debug, Clone, Default)]
pub struct OwnersList {
    games: Programs,
    /// Also by the name that the owner is shown.
    no_games: Programs,
}

#[derive(Debug, Clone, Default)]
struct Programs {
    paths: Vec<PathBuf>,
    names: Vec<String>,
}

impl OwnersList {
    /// Reads the lists as the owner wrote them. Empty entries are dropped.
    pub fn new<S: AsRef<str>, N: AsRef<str>>(
        games: impl IntoIterator<Item = S>,
        no_games: impl IntoIterator<Item = N>,
    ) -> Self {
        Self { games: Programs::read(games), no_games: Programs::read(no_games) }
    }

    pub(crate) fn is_game(&self, program: &Path) -> bool {
        self.games.hold(program)
    }

    pub(crate) fn is_no_game(&self, program: Option<&Path>, shown: &str) -> bool {
        program.is_some_and(|program| self.no_games.hold(program))
            || self.no_games.names.iter().any(|name| same(name, shown))
    }
}

impl Programs {
    fn read<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Self {
        let mut programs = Self::default();
        for entry in entries {
            let entry = entry.as_ref().trim();
            if entry.contains(std::path::is_separator) {
                programs.paths.push(PathBuf::from(entry));
            } else if !entry.is_empty() {
                programs.names.push(entry.to_owned());
            }
        }
        programs
    }

    fn hold(&self, program: &Path) -> bool {
        let file = program.file_name().and_then(|file| file.to_str());
        let named = |name: &String| file.is_some_and(|file| same(file, name));
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
