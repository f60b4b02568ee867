//! GameMode's real daemon on a private bus, and programs that register with it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::process::{Child, Command};

use super::bus::Bus;
use super::until;

/// The daemon starts within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running daemon.
pub struct GameMode {
    address: String,
    _daemon: Child,
}

/// A program that told the daemon that it is a game. It ends when dropped.
pub struct Registered {
    pub started: Instant,
    pub process: Child,
}

impl GameMode {
    /// Starts the daemon and waits until it is on the bus: nothing else would start it there.
    ///
    /// # Errors
    /// When GameMode is not installed or does not start.
    pub async fn start(bus: &Bus) -> anyhow::Result<Self> {
        let mut daemon = Command::new("gamemoded");
        daemon.env("DBUS_SESSION_BUS_ADDRESS", bus.address()).stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = daemon.kill_on_drop(true).spawn().context("gamemode is not installed")?;
        let names = zbus::fdo::DBusProxy::new(&bus.connect().await?).await?;
        until("GameMode's daemon to be on the bus", PATIENCE, async || {
            names.name_has_owner("com.feralinteractive.GameMode".try_into().ok()?).await.ok()?.then_some(())
        })
        .await?;
        Ok(Self { address: bus.address().to_owned(), _daemon: daemon })
    }

    /// Does what `gamemoderun sleep 600` does: the library registers the program that it is loaded into.
    ///
    /// # Errors
    /// When the program does not start.
    pub fn game(&self) -> anyhow::Result<Registered> {
        let mut game = Command::new("sleep");
        game.arg("600")
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .env("LD_PRELOAD", "libgamemodeauto.so.0");
        let started = Instant::now();
        Ok(Registered { started, process: game.kill_on_drop(true).spawn()? })
    }
}
