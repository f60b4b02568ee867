//! The asking end of the desk: the local socket of a running node. One JSON object a line in each direction.

use std::io;
use std::path::{Path, PathBuf};

use wakati_protocol::desk::{Answer, Ask};

/// Where the node in this home answers.
#[must_use]
pub fn socket(home: &Path) -> PathBuf {
    home.join("desk.sock")
}

/// A conversation with a running node.
pub struct Desk(system::Stream);

impl Desk {
    /// Begins a conversation.
    ///
    /// # Errors
    /// When no node answers there.
    pub async fn open(socket: &Path) -> io::Result<Self> {
        system::open(socket).await.map(Self)
    }

    /// Asks, and hears the first answer. After `Ask::Watch` the others come through [`Desk::next`].
    ///
    /// # Errors
    /// When the node ends the conversation or answers what this build does not know.
    pub async fn ask(&mut self, ask: &Ask) -> io::Result<Answer> {
        let mut line = serde_json::to_vec(ask)?;
        line.push(b'\n');
        system::write(&mut self.0, &line).await?;
        self.next().await
    }

    /// Hears the next answer.
    ///
    /// # Errors
    /// As [`Desk::ask`].
    pub async fn next(&mut self) -> io::Result<Answer> {
        let line = system::read_line(&mut self.0).await?;
        Ok(serde_json::from_str(&line)?)
    }
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::path::Path;

    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::UnixStream;

    /// The longest answer, in bytes: far above a snapshot, far below what would hurt.
    const LONGEST: u64 = 1 << 20;

    pub type Stream = BufReader<UnixStream>;

    pub async fn open(socket: &Path) -> io::Result<Stream> {
        UnixStream::connect(socket).await.map(BufReader::new)
    }

    pub async fn write(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
        stream.get_mut().write_all(bytes).await
    }

    pub async fn read_line(stream: &mut Stream) -> io::Result<String> {
        let mut line = String::new();
        stream.take(LONGEST).read_line(&mut line).await?;
        if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// The desk on Windows is a named pipe, which neither end has yet.
#[cfg(windows)]
mod system {
    use std::io;
    use std::path::Path;

    pub enum Stream {}

    pub async fn open(_socket: &Path) -> io::Result<Stream> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub async fn write(stream: &mut Stream, _bytes: &[u8]) -> io::Result<()> {
        match *stream {}
    }

    pub async fn read_line(stream: &mut Stream) -> io::Result<String> {
        match *stream {}
    }
}
