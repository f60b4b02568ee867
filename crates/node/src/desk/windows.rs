//! The desk's socket on Windows: a named pipe that only its owner opens.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use interprocess::os::windows::named_pipe::tokio::{DuplexPipeStream, PipeListener};
use interprocess::os::windows::named_pipe::{PipeListenerOptions, pipe_mode};
use interprocess::os::windows::security_descriptor::SecurityDescriptor;
use widestring::u16cstr;

pub(super) type Stream = DuplexPipeStream<pipe_mode::Bytes>;

/// The listening pipe. It goes with the process.
pub(super) struct Listener(PipeListener<pipe_mode::Bytes, pipe_mode::Bytes>);

impl Listener {
    /// Listens at `path`; fails when another program does.
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        // Nothing is inherited, and all rights go to the owner alone: without it, everyone may read.
        let owner_only = SecurityDescriptor::deserialize(u16cstr!("D:P(A;;GA;;;OW)"))?;
        let options = PipeListenerOptions::new().path(name(path)).security_descriptor(Some(owner_only));
        options.create_tokio_duplex().map(Self)
    }

    /// The next program; the system has turned other users' away.
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        self.0.accept().await
    }
}

/// Opens the desk of a running node.
pub(super) async fn connect(path: &Path) -> io::Result<Stream> {
    Stream::connect_by_path(name(path)).await
}

fn name(path: &Path) -> &OsStr {
    path.as_os_str()
}
