//! The system's wish that the program ends: Ctrl-C, and on Unix SIGTERM.

use std::io;

/// Listens from when it is made, so that no signal between two waits is missed.
#[derive(Debug)]
pub struct EndSignal {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
}

impl EndSignal {
    /// Begins to listen. From then on these signals no longer end the program by themselves.
    ///
    /// # Errors
    /// When the system does not let us.
    #[cfg(unix)]
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Begins to listen. From then on Ctrl-C no longer ends the program by itself.
    ///
    /// # Errors
    /// When the system does not let us.
    #[cfg(windows)]
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: tokio::signal::windows::ctrl_c()? })
    }

    /// Waits for the next wish.
    pub async fn wait(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(windows)]
        self.interrupt.recv().await;
    }
}
