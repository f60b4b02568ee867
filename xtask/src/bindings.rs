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

/// Checks that the committed types are those of the protocol.
///
/// # Errors
/// When they are not, or the file cannot be read.
pub fn check() -> anyhow::Result<()> {
    let file = file();
    let committed =
        std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    if committed != wakati_protocol::bindings::typescript() {
        anyhow::bail!("{} is stale: run `cargo xtask bindings`", file.display());
    }
    Ok(())
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src/lib/backend/bindings.ts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_types_are_those_of_the_protocol() {
        check().unwrap();
    }
}
