//! A screen without a monitor, and a window manager on it.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A running Xvfb with openbox.
pub struct Screen {
    display: String,
    _server: Child,
    _manager: Child,
}

impl Screen {
    /// Starts them on a display that is free.
    ///
    /// # Errors
    /// When one of them is not installed or does not start.
    pub async fn start(folder: &Path) -> anyhow::Result<Self> {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "880x624x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("Xvfb is not installed")?;
        let output = server.stdout.take().context("no output")?;
        let number = BufReader::new(output).lines().next_line().await?.context("Xvfb did not start")?;
        let display = format!(":{}", number.trim());
        let manager = Command::new("openbox")
            .env("DISPLAY", &display)
            .env("HOME", folder)
            .env("XDG_CONFIG_HOME", folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("openbox is not installed")?;
        Ok(Self { display, _server: server, _manager: manager })
    }

    /// Its name, as in `DISPLAY`.
    #[must_use]
    pub fn display(&self) -> &str {
        &self.display
    }

    /// Takes a picture of all that is on it.
    ///
    /// # Errors
    /// When ImageMagick is not installed or fails.
    pub async fn picture(&self, file: &Path) -> anyhow::Result<()> {
        let taken = Command::new("import")
            .args(["-display", &self.display, "-window", "root"])
            .arg(file)
            .status()
            .await
            .context("ImageMagick is not installed")?;
        if !taken.success() {
            bail!("no picture could be taken");
        }
        Ok(())
    }

    /// The windows with this title, by their ids.
    pub async fn windows(&self, title: &str) -> Vec<String> {
        // It also ends with an error when it finds none.
        let found = self.xdotool(&["search", "--onlyvisible", "--name", &format!("^{title}$")]).await;
        found.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Closes a window as the keyboard does; openbox has Alt+F4 for it.
    ///
    /// # Errors
    /// When xdotool is not installed or the window has gone.
    pub async fn close(&self, window: &str) -> anyhow::Result<()> {
        self.xdotool(&["windowactivate", "--sync", window, "key", "alt+F4"]).await.map(drop)
    }

    async fn xdotool(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let done = Command::new("xdotool")
            .env("DISPLAY", &self.display)
            .args(arguments)
            .output()
            .await
            .context("xdotool is not installed")?;
        if !done.status.success() {
            bail!("xdotool {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        }
        Ok(String::from_utf8(done.stdout)?)
    }
}
