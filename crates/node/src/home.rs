//! The node's folder: where each file is, and that only its owner reads it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The folder of one node.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

/// A folder that cannot be a node's home.
#[derive(Debug, thiserror::Error)]
pub enum BadHome {
    #[error("the folder {path} cannot be used: {cause}", path = .path.display())]
    Unusable { path: PathBuf, cause: io::Error },
    #[error("a node is already running in {path}; stop it first, or choose another folder with --home", path = .0.display())]
    InUse(PathBuf),
}

/// While it lives, no other node runs in the same home. The system lets go of it however this process ends.
#[derive(Debug)]
pub struct Claim(#[expect(dead_code, reason = "held for its lock")] File);

impl Home {
    /// Takes this folder as a home, and makes it (for its owner alone) if it is not there.
    ///
    /// # Errors
    /// When it can neither be found nor made.
    pub fn open(path: &Path) -> Result<Self, BadHome> {
        let unusable = |cause| BadHome::Unusable { path: path.to_owned(), cause };
        private_folder(path).map_err(unusable)?;
        let home = Self(path.canonicalize().map_err(unusable)?);
        private_folder(&home.models()).map_err(unusable)?;
        Ok(home)
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.0.join("settings.toml")
    }

    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.0.join("node.key")
    }

    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.0.join("node.sqlite")
    }

    #[must_use]
    pub fn models(&self) -> PathBuf {
        self.0.join("models")
    }

    /// Makes this process the one node of this home.
    ///
    /// # Errors
    /// When another node runs here, or the lock file cannot be opened.
    pub fn claim(&self) -> Result<Claim, BadHome> {
        let path = self.0.join("node.lock");
        let unusable = |cause| BadHome::Unusable { path: path.clone(), cause };
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(Claim(file)),
            Err(TryLockError::WouldBlock) => Err(BadHome::InUse(self.0.clone())),
            Err(TryLockError::Error(cause)) => Err(unusable(cause)),
        }
    }
}

/// Makes a folder that only its owner can enter. One that exists keeps its rights.
fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Writes a file that only its owner reads, so that it is there whole or not at all, whatever happens meanwhile.
///
/// # Errors
/// When the disk does not take it; then the file is as it was.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    std::fs::rename(&new, path)?;
    // The rename itself is durable once the folder is.
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_node_in_the_same_home_is_refused_until_the_first_ends() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("a/b")).unwrap();
        let first = home.claim().unwrap();
        assert!(matches!(home.claim(), Err(BadHome::InUse(_))));
        drop(first);
        home.claim().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_what_is_written() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(&folder.path().join("home")).unwrap();
        write_private(&home.key(), b"one").unwrap();
        write_private(&home.key(), b"two").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(home.path()), mode(&home.key())), (0o700, 0o600));
        assert_eq!(std::fs::read(home.key()).unwrap(), b"two");
    }
}
