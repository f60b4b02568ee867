//! The device key: who this node is. It is made on the device and never leaves it.

use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;
use wakati_protocol::ids::NodeId;

use crate::home::write_private;

/// A key that can be neither read nor made.
#[derive(Debug, thiserror::Error)]
pub enum BadKey {
    #[error("the device key {path} cannot be read or written: {cause}", path = .path.display())]
    Unusable { path: PathBuf, cause: std::io::Error },
    /// A new key would be another node, and what the old one earned would be out of reach: the owner decides.
    #[error(
        "the device key {path} is damaged; restore it from a backup, or remove it to join again as a new node",
        path = .0.display()
    )]
    Damaged(PathBuf),
    #[error("this system gives no random numbers: {0}")]
    NoRandomness(getrandom::Error),
}

/// Reads the device key, and makes one if there is none: 64 hexadecimal digits, readable by the owner alone.
///
/// # Errors
/// When it cannot be read, is damaged, or cannot be made.
pub fn load_or_make(path: &Path) -> Result<SigningKey, BadKey> {
    let unusable = |cause| BadKey::Unusable { path: path.to_owned(), cause };
    let mut seed = [0; 32];
    match std::fs::read(path) {
        Ok(text) => {
            hex::decode_to_slice(text.trim_ascii(), &mut seed)
                .map_err(|_| BadKey::Damaged(path.to_owned()))?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            getrandom::fill(&mut seed).map_err(BadKey::NoRandomness)?;
            write_private(path, format!("{}\n", hex::encode(seed)).as_bytes()).map_err(unusable)?;
        }
        Err(cause) => return Err(unusable(cause)),
    }
    Ok(SigningKey::from_bytes(&seed))
}

/// The node that holds this key.
#[must_use]
pub fn node_id(key: &SigningKey) -> NodeId {
    NodeId(key.verifying_key().to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_a_damaged_one_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.key");
        let made = load_or_make(&path).unwrap();
        assert_eq!(node_id(&load_or_make(&path).unwrap()), node_id(&made));
        std::fs::write(&path, "half a ke").unwrap();
        assert!(matches!(load_or_make(&path), Err(BadKey::Damaged(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"half a ke");
    }
}
