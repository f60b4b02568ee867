//! A desktop of its own for each test: a screen without a monitor, a window manager, a session bus, and in place of a
//! panel and a notification server, ends of the bus that the test holds.

pub mod bus;
pub mod game_mode;
mod joined;
mod notices;
mod page;
mod processes;
pub mod screen;
mod tray;

pub use bus::Bus;
pub use joined::Joined;
pub use notices::{Notices, Shown};
pub use page::{Look, Page};
pub use processes::{Marked, with_environment};
pub use screen::Screen;
pub use tray::{Item, Panel, Row};

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use tokio::process::Command;

/// How long anything on the desktop may take. A debug build of the window on a busy machine needs much of it.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Screen, window manager and bus. All of them end with it.
pub struct Desktop {
    pub screen: Screen,
    pub bus: Bus,
}

impl Desktop {
    /// Starts them all; `folder` is theirs.
    ///
    /// # Errors
    /// When one of them is not installed or does not start.
    pub async fn start(folder: &Path) -> anyhow::Result<Self> {
        let screen = Screen::start(folder).await?;
        let bus = Bus::start(folder).await?;
        Ok(Self { screen, bus })
    }

    /// A command whose process lives on this desktop and in this home, and in no other.
    #[must_use]
    pub fn command(&self, program: &Path, home: &Path) -> Command {
        let mut command = Command::new(program);
        self.environment(home).into_iter().for_each(|(name, value)| {
            command.env(name, value);
        });
        command.env_remove("WAYLAND_DISPLAY").env_remove("XDG_RUNTIME_DIR").kill_on_drop(true);
        command
    }

    /// What places a process on this desktop and in this home.
    #[must_use]
    pub fn environment(&self, home: &Path) -> Vec<(&'static str, String)> {
        let text = |path: &Path| path.display().to_string();
        vec![
            ("DISPLAY", self.screen.display().to_owned()),
            ("DBUS_SESSION_BUS_ADDRESS", self.bus.address().to_owned()),
            ("HOME", text(home)),
            ("XDG_CONFIG_HOME", text(&home.join("config"))),
            ("XDG_CACHE_HOME", text(&home.join("cache"))),
            ("XDG_DATA_HOME", text(&home.join("data"))),
            // A machine without a GPU cannot share buffers with the screen.
            ("WEBKIT_DISABLE_DMABUF_RENDERER", "1".to_owned()),
            ("NO_AT_BRIDGE", "1".to_owned()),
        ]
    }
}

/// Asks again and again until the answer is something.
///
/// # Errors
/// When there is no answer within the deadline; the message says what was waited for.
pub async fn until<T>(
    what: &str,
    deadline: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> anyhow::Result<T> {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return Ok(answer);
        }
        if began.elapsed() > deadline {
            bail!("waited {deadline:?} for {what}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
