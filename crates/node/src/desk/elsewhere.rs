//! The desk on systems whose socket is not written yet: it says so. A desktop application that embeds the node
//! does not need it.

use std::io;
use std::path::Path;

/// No value of it exists.
pub(super) type Stream = tokio::io::DuplexStream;

pub(super) struct Listener;

impl Listener {
    pub(super) fn bind(_path: &Path) -> io::Result<Self> {
        Err(unsupported())
    }

    pub(super) async fn accept(&self) -> io::Result<Stream> {
        Err(unsupported())
    }
}

pub(super) async fn connect(_path: &Path) -> io::Result<Stream> {
    Err(unsupported())
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this system has no desk socket yet")
}
