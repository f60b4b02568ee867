//! Where things are: the checkout, cargo's target folder and the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::shell;

/// The folders that every task works in.
pub struct Places {
    /// The checkout.
    pub root: PathBuf,
    /// Cargo's target folder, wherever the environment or a configuration file puts it.
    pub target: PathBuf,
    /// Downloads and the Python environment: kept between runs, safe to delete.
    pub cache: PathBuf,
}

impl Places {
    /// Finds the folders and makes the cache.
    ///
    /// # Errors
    /// When cargo cannot say where it builds, or the cache cannot be made.
    pub fn find() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no checkout")?.to_path_buf();
        let metadata = shell::output(Command::new(cargo()).current_dir(&root).args([
            "metadata",
            "--no-deps",
            "--format-version=1",
        ]))?;
        let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
        let target = metadata["target_directory"].as_str().context("cargo names no target folder")?.into();
        let cache = cache_home()?.join("wakati");
        std::fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        Ok(Self { root, target, cache })
    }

    /// The programs of the dev profile, the worker beside them.
    pub fn programs(&self) -> PathBuf {
        self.target.join("debug")
    }

    /// The worker's own target folder: its flags differ, so nothing else waits for it.
    pub fn worker_target(&self) -> PathBuf {
        self.target.join("worker")
    }
}

/// The cargo that started this task.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// XDG Base Directory Specification: an empty or relative value counts as unset.
fn cache_home() -> anyhow::Result<PathBuf> {
    if let Some(cache) = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from)
        && cache.is_absolute()
    {
        return Ok(cache);
    }
    Ok(std::env::home_dir().context("no home folder")?.join(".cache"))
}
