//! The window's process: started when the window is wanted, gone when it is closed.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

/// How long a window may take to close by itself.
const CLOSING: Duration = Duration::from_secs(2);

/// What the shell says to the window, one word a line on its standard input.
pub mod words {
    /// Come to the front.
    pub const PRESENT: &str = "present";
    /// Close.
    pub const CLOSE: &str = "close";
}

/// At most one window.
pub struct WindowProcess {
    program: PathBuf,
    home: PathBuf,
    child: Option<Child>,
}

impl WindowProcess {
    /// No window yet. Its program lies beside this one.
    ///
    /// # Errors
    /// When the system does not say where this program lies.
    pub fn new(home: PathBuf) -> anyhow::Result<Self> {
        let program = std::env::current_exe()
            .context("this system does not say where the program lies")?
            .with_file_name(format!("wakati-window{}", std::env::consts::EXE_SUFFIX));
        Ok(Self { program, home, child: None })
    }

    /// Opens the window, or brings the open one to the front.
    ///
    /// # Errors
    /// When the window's program cannot be started.
    pub async fn open(&mut self) -> anyhow::Result<()> {
        if let Some(child) = &mut self.child
            && child.try_wait()?.is_none()
            && say(child, words::PRESENT).await
        {
            return Ok(());
        }
        let child = Command::new(&self.program)
            .arg("--home")
            .arg(&self.home)
            .stdin(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        self.child = Some(child);
        Ok(())
    }

    /// Waits until an open window has closed; for ever when none is open.
    pub async fn closed(&mut self) {
        let Some(child) = &mut self.child else { return std::future::pending().await };
        match child.wait().await {
            Ok(status) => tracing::debug!(%status, "window closed"),
            Err(error) => tracing::warn!(%error, "lost sight of the window"),
        }
        self.child = None;
    }

    /// Closes the window and waits until it has.
    pub async fn close(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let said = say(&mut child, words::CLOSE).await;
        if said && tokio::time::timeout(CLOSING, child.wait()).await.is_ok() {
            return;
        }
        if let Err(error) = child.kill().await {
            tracing::warn!(%error, "cannot end the window");
        }
    }
}

/// Whether the window could be told.
async fn say(child: &mut Child, word: &str) -> bool {
    let Some(stdin) = &mut child.stdin else { return false };
    stdin.write_all(format!("{word}\n").as_bytes()).await.is_ok()
}
