//! A pretend game: a program that counts as a game for the node whose owner listed its name.

use std::path::Path;
use std::time::Instant;

use tokio::process::Command;

use crate::program::{self, Program};

/// Its name, as an owner would list it.
pub const NAME: &str = "pretend-game";

/// A running pretend game; it ends when dropped.
pub struct Game {
    pub started: Instant,
    _program: Program,
}

impl Game {
    /// Starts it.
    ///
    /// # Errors
    /// When it is not built.
    pub fn start(folder: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new(program::path(NAME)?);
        let started = Instant::now();
        let program = Program::start(&mut command, &folder.join("game-log"))?;
        Ok(Self { started, _program: program })
    }
}
