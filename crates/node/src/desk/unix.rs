//! The desk's socket on Linux and macOS: a Unix socket in the node's folder.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

pub(super) type Stream = UnixStream;

/// The listening socket. Its file goes with it.
pub(super) struct Listener {
    socket: UnixListener,
    path: PathBuf,
    owner: u32,
}

impl Listener {
    /// Listens at `path`. The caller holds the home's claim, so a socket that is still there is a dead node's.
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        // Under another name until its rights are set: nobody else's program can slip in between.
        let new = path.with_extension("sock.new");
        for stale in [&new, path] {
            match std::fs::remove_file(stale) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        let socket = UnixListener::bind(&new)?;
        std::fs::set_permissions(&new, Permissions::from_mode(0o600))?;
        let owner = std::fs::metadata(&new)?.uid();
        std::fs::rename(&new, path)?;
        Ok(Self { socket, path: path.to_owned(), owner })
    }

    /// The next program of the same user; others are turned away.
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        loop {
            let (stream, _) = self.socket.accept().await?;
            if stream.peer_cred()?.uid() == self.owner {
                return Ok(stream);
            }
            tracing::warn!("another user's program was turned away from the desk");
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Opens the desk of a running node.
pub(super) async fn connect(path: &Path) -> io::Result<Stream> {
    UnixStream::connect(path).await
}
