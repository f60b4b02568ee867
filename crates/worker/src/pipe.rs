//! The two ends of the pipe: frames in from stdin, frames out to stdout.

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wakati_protocol::frame;
use wakati_protocol::pipe::{FromWorker, ToWorker, from_worker, to_worker};

/// Frames on their way out. When the node does not read, senders wait here; ids wait in their jobs' own buffers.
const OUT_FRAMES: usize = 64;
/// Frames on their way in. When this is full, the node's writes wait.
const IN_FRAMES: usize = 64;
/// Frames that are written together are flushed together, up to about this many bytes.
const WRITE_BYTES: usize = 64 << 10;

/// Writes frames to stdout until every sender is gone or the node has closed the pipe.
pub fn writer() -> (mpsc::Sender<from_worker::Body>, JoinHandle<()>) {
    let (send, mut frames) = mpsc::channel(OUT_FRAMES);
    let task = tokio::spawn(async move {
        let mut stdout = tokio::io::stdout();
        let mut buffer = BytesMut::new();
        while let Some(body) = frames.recv().await {
            frame::put(&FromWorker::from(body), &mut buffer);
            while buffer.len() < WRITE_BYTES {
                let Ok(body) = frames.try_recv() else { break };
                frame::put(&FromWorker::from(body), &mut buffer);
            }
            let written = stdout.write_all(&buffer).await;
            if written.is_err() || stdout.flush().await.is_err() {
                return;
            }
            buffer.clear();
        }
    });
    (send, task)
}

/// Reads frames from stdin until it ends or says something that is no frame.
pub fn reader() -> (mpsc::Receiver<to_worker::Body>, JoinHandle<anyhow::Result<()>>) {
    let (send, commands) = mpsc::channel(IN_FRAMES);
    let task = tokio::spawn(async move {
        let mut stdin = tokio::io::stdin();
        let mut buffer = BytesMut::new();
        while stdin.read_buf(&mut buffer).await? > 0 {
            while let Some(message) = frame::take::<ToWorker>(&mut buffer)? {
                // A body that this build does not know is a newer node's; both are installed together.
                let Some(body) = message.body else { continue };
                if send.send(body).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    });
    (commands, task)
}
