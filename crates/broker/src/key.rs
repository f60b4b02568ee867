//! The broker's key: who this broker is to its nodes. It is made once and never leaves the data folder.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;

/// A key that can be neither read nor made.
#[derive(Debug, thiserror::Error)]
pub enum BadKey {
    #[error(
        "the broker's key {path} cannot be read or written ({cause}), so the broker did not start; check the data folder's permissions and disk",
        path = .path.display()
    )]
    Unusable { path: PathBuf, cause: io::Error },
    /// With a new key it would be another broker: its nodes would refuse it, and old receipts would prove nothing.
    #[error(
        "the broker's key {path} is damaged, so the broker did not start; restore it from a backup, or remove it to start as a new broker that every node has to join again",
        path = .0.display()
    )]
    Damaged(PathBuf),
    #[error("the system gave no random bytes for the broker's key, so the broker did not start; try again")]
    NoChance,
}

/// Reads the broker's key, and makes one if there is none: 64 hexadecimal digits, readable by the operator alone.
///
/// # Errors
/// When it cannot be read, is damaged, or cannot be made.
pub fn load_or_make(path: &Path) -> Result<SigningKey, BadKey> {
    let unusable = |cause| BadKey::Unusable { path: path.to_owned(), cause };
    let mut seed = [0; 32];
    match std::fs::read(path) {
        Ok(text) => hex::decode_to_slice(text.trim_ascii(), &mut seed)
            .map_err(|_| BadKey::Damaged(path.to_owned()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            getrandom::fill(&mut seed).map_err(|_| BadKey::NoChance)?;
            write_private(path, hex::encode(seed).as_bytes()).map_err(unusable)?;
        }
        Err(cause) => return Err(unusable(cause)),
    }
    Ok(SigningKey::from_bytes(&seed))
}

/// Writes a file that only its owner reads; whole or not at all, also when the power fails.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
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
    fn the_key_is_made_once_and_a_damaged_one_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broker.key");
        let made = load_or_make(&path).unwrap();
        assert_eq!(load_or_make(&path).unwrap().to_bytes(), made.to_bytes());
        #[cfg(unix)]
        {
            let mode =
                std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::write(&path, "").unwrap();
        assert!(matches!(load_or_make(&path), Err(BadKey::Damaged(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn nobody_sees_half_a_key_and_what_a_crash_left_is_written_over() {
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("broker.key");
            std::fs::write(path.with_extension("new"), "half a ke").unwrap();
            std::thread::scope(|threads| {
                let reader = threads.spawn(|| {
                    loop {
                        match std::fs::read(&path) {
                            Ok(text) => return text.len(),
                            Err(_) => std::hint::spin_loop(),
                        }
                    }
                });
                load_or_make(&path).unwrap();
                assert_eq!(reader.join().unwrap(), 64);
            });
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
