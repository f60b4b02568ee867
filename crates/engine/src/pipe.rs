//! Frames over byte streams: what the worker reads and writes.

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use wakati_protocol::frame::{self, BadFrame};
use wakati_protocol::pipe::{FromWorker, ToWorker};

/// A pipe that is of no more use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PipeBroken {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Garbled(#[from] BadFrame),
    #[error("the pipe ended inside a frame")]
    Cut,
}

/// The reading half.
pub(crate) struct Reader<R> {
    from: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, buffer: BytesMut::new() }
    }

    /// The next frame, or `None` at the end. Cancelling it loses nothing: bytes stay in the buffer.
    pub(crate) async fn next(&mut self) -> Result<Option<FromWorker>, PipeBroken> {
        loop {
            if let Some(message) = frame::take(&mut self.buffer)? {
                return Ok(Some(message));
            }
            self.buffer.reserve(16 << 10);
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(PipeBroken::Cut) };
            }
        }
    }
}

/// Writes one frame whole.
pub(crate) async fn write<W: AsyncWrite + Unpin>(to: &mut W, message: &ToWorker) -> Result<(), PipeBroken> {
    let mut bytes = BytesMut::new();
    frame::put(message, &mut bytes);
    to.write_all(&bytes).await?;
    to.flush().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakati_protocol::pipe::{Loading, from_worker};

    #[tokio::test]
    async fn frames_that_arrive_in_pieces_are_put_together() {
        let sent: Vec<FromWorker> = (0..3)
            .map(|i| from_worker::Body::Loading(Loading { bytes: i, of_bytes: 1 << 40 }).into())
            .collect();
        let mut wire = BytesMut::new();
        sent.iter().for_each(|message| frame::put(message, &mut wire));
        // A pipe of three bytes at a time.
        let (mut to, from) = tokio::io::duplex(3);
        let writer = tokio::spawn(async move { to.write_all(&wire).await });
        let mut reader = Reader::new(from);
        for expected in &sent {
            assert_eq!(reader.next().await.unwrap().as_ref(), Some(expected));
        }
        writer.await.unwrap().unwrap();
        assert!(reader.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_pipe_cut_inside_a_frame_is_said_to_be_cut() {
        let (mut to, from) = tokio::io::duplex(64);
        to.write_all(&[20, 1, 2]).await.unwrap();
        drop(to);
        assert!(matches!(Reader::new(from).next().await, Err(PipeBroken::Cut)));
    }
}
