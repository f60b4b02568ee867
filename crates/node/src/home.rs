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
    #[error("this system names no folder for applications; choose one with --home")]
    Nowhere,
    #[error("the folder {path} cannot be used: {cause}", path = .path.display())]
    Unusable { path: PathBuf, cause: io::Error },
    #[error("the folder {path} belongs to another user; choose one of your own with --home", path = .0.display())]
    Foreign(PathBuf),
    /// Whoever can write there can put another key, or other settings, in place of the owner's.
    #[error(
        "other users can write to the folder {path}; forbid it with: chmod go-w {path}; or choose another folder \
         with --home",
        path = .0.display()
    )]
    Shared(PathBuf),
    #[error("a node is already running in {path}; stop it first, or choose another folder with --home", path = .0.display())]
    InUse(PathBuf),
}

/// While it lives, no other node runs in the same home. The system lets go of it however this process ends.
#[derive(Debug)]
pub struct Claim(#[expect(dead_code, reason = "held for its lock")] File);

/// The folder that was named, else the one that this system has for applications.
///
/// # Errors
/// When none was named and the system has none.
pub fn place(named: Option<PathBuf>) -> Result<PathBuf, BadHome> {
    let usual =
        || directories::ProjectDirs::from("", "", "wakati").map(|places| places.data_dir().to_owned());
    named.or_else(usual).ok_or(BadHome::Nowhere)
}

impl Home {
    /// Takes this folder as a home, and makes it (for its owner alone) if it is not there.
    ///
    /// # Errors
    /// When it can neither be found nor made, or is not its owner's alone to write.
    pub fn open(path: &Path) -> Result<Self, BadHome> {
        let unusable = |cause| BadHome::Unusable { path: path.to_owned(), cause };
        private_folder(path).map_err(unusable)?;
        let home = Self(path.canonicalize().map_err(unusable)?);
        #[cfg(unix)]
        home.is_ours(&std::fs::metadata(&home.0).map_err(unusable)?)?;
        private_folder(&home.models()).map_err(unusable)?;
        Ok(home)
    }

    #[cfg(unix)]
    fn is_ours(&self, folder: &std::fs::Metadata) -> Result<(), BadHome> {
        use std::os::unix::fs::MetadataExt;
        if folder.uid() != rustix::process::geteuid().as_raw() {
            return Err(BadHome::Foreign(self.0.clone()));
        }
        if folder.mode() & 0o022 != 0 {
            return Err(BadHome::Shared(self.0.clone()));
        }
        Ok(())
    }

    /// Whether this folder is a node's home already.
    #[must_use]
    pub fn is_one(path: &Path) -> bool {
        let home = Self(path.to_owned());
        home.settings().exists() || home.database().exists()
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
    // One that a crash left behind. The new one is made here and now, so it is nobody's link to somewhere else.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
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
    fn a_folder_that_others_can_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        for (mode, fits) in [(0o777, false), (0o770, false), (0o702, false), (0o755, true), (0o700, true)] {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let opened = Home::open(folder.path());
            assert_eq!(opened.is_ok(), fits, "{mode:o}");
            assert!(fits || matches!(opened, Err(BadHome::Shared(_))), "{mode:o}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_way_of_a_new_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (folder.path().join("node.key"), folder.path().join("elsewhere"));
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("node.key.new")).unwrap();
        write_private(&path, b"secret").unwrap();
        assert!(!elsewhere.exists());
        assert_eq!(std::fs::read(&path).unwrap(), b"secret");
        assert!(path.symlink_metadata().unwrap().is_file());
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
