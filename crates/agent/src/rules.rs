//! The owner's rules.

use std::time::Duration;

/// What the owner's settings decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How long after a game's end serving returns.
    pub quiet: Duration,
    /// Serve without a supported GPU, on the processor.
    pub on_processor: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { quiet: Duration::from_secs(30), on_processor: false }
    }
}
