//! The page's TypeScript types, made from the protocol.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Writes the types again.
///
/// # Errors
/// When the file cannot be written.
pub fn run() -> anyhow::Result<()> {
    let file = file();
    std::fs::write(&file, wakati_protocol::bindings::typescript())
        .with_context(|| format!("cannot write {}", file.display()))
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src/lib/backend/bindings.ts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_types_are_those_of_the_protocol() {
        let committed = std::fs::read_to_string(file()).unwrap();
        assert!(
            committed == wakati_protocol::bindings::typescript(),
            "ui/src/lib/backend/bindings.ts is stale: run `cargo xtask bindings`"
        );
    }
}
