//! The window's process: started when the window is wanted, gone when it is closed.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};

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
    open: Option<Open>,
}

/// A window that was opened and, as far as is known, still is.
struct Open {
    child: Child,
    /// Kept apart from the child, which would close it while it is waited for.
    stdin: ChildStdin,
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
        Ok(Self { program, home, open: None })
    }

    /// Whether there is a window.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Opens the window, or brings the open one to the front.
    ///
    /// # Errors
    /// When the window's program cannot be started.
    pub async fn open(&mut self) -> anyhow::Result<()> {
        if let Some(open) = &mut self.open
            && open.child.try_wait()?.is_none()
            && open.say(words::PRESENT).await
        {
            return Ok(());
        }
        let mut child = Command::new(&self.program)
            .arg("--home")
            .arg(&self.home)
            .stdin(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let stdin = child.stdin.take().context("the window has no standard input")?;
        self.open = Some(Open { child, stdin });
        Ok(())
    }

    /// Waits until an open window has closed; for ever when none is open.
    pub async fn closed(&mut self) {
        let Some(open) = &mut self.open else { return std::future::pending().await };
        match open.child.wait().await {
            Ok(status) => tracing::debug!(%status, "window closed"),
            Err(error) => tracing::warn!(%error, "lost sight of the window"),
        }
        self.open = None;
    }

    /// Closes the window and waits until it has.
    pub async fn close(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        let said = open.say(words::CLOSE).await;
        if said && tokio::time::timeout(CLOSING, open.child.wait()).await.is_ok() {
            return;
        }
        if let Err(error) = open.child.kill().await {
            tracing::warn!(%error, "cannot end the window");
        }
    }
}

impl Open {
    /// Whether the window could be told.
    async fn say(&mut self, word: &str) -> bool {
        self.stdin.write_all(format!("{word}\n").as_bytes()).await.is_ok()
    }
}
