//! D-Bus: games that register with GameMode, and the system going to sleep.
//!
//! Nothing is started by asking: GameMode's daemon runs only while a game wants it, and that it is not there is an
//! answer.

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, select};
use zbus::proxy::{CacheProperties, MethodFlags};
use zbus::zvariant::{OwnedFd, OwnedObjectPath};
use zbus::{Connection, Proxy};

use super::linux;
use crate::recognise::{Kind, Sign};

/// GameMode on the session's bus: `com.feralinteractive.GameMode`, as its daemon documents it.
pub struct GameMode {
    daemon: Proxy<'static>,
}

impl GameMode {
    /// Listens for games. The stream has an item whenever the list may have changed, and ends with the bus.
    ///
    /// # Errors
    /// When there is no session bus.
    pub async fn listen() -> zbus::Result<(Self, BoxStream<'static, ()>)> {
        let bus = Connection::session().await?;
        let daemon = proxy(
            &bus,
            "com.feralinteractive.GameMode",
            "/com/feralinteractive/GameMode",
            "com.feralinteractive.GameMode",
        )
        .await?;
        let signals = daemon.receive_all_signals().await?.map(|_| ());
        let owners = daemon.receive_owner_changed().await?.map(|_| ());
        Ok((Self { daemon }, select(signals, owners).boxed()))
    }

    /// The games that are registered now.
    ///
    /// # Errors
    /// When the bus is gone or the daemon does not answer.
    pub async fn games(&self) -> zbus::Result<Vec<Sign>> {
        let quietly = MethodFlags::NoAutoStart.into();
        let listed: zbus::Result<Option<Vec<(i32, OwnedObjectPath)>>> =
            self.daemon.call_with_flags("ListGames", quietly, &()).await;
        match listed {
            Ok(games) => Ok(games.unwrap_or_default().into_iter().filter_map(|(pid, _)| sign(pid)).collect()),
            Err(error) if is_absent(&error) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

fn sign(pid: i32) -> Option<Sign> {
    let pid = u32::try_from(pid).ok()?;
    let name = linux::name(pid);
    let lives = name.is_some();
    Some(Sign { kind: Kind::GameMode, name: name.unwrap_or_else(|| format!("process {pid}")), pid, lives })
}

/// The daemon does not run, and is not to be started.
fn is_absent(error: &zbus::Error) -> bool {
    let zbus::Error::MethodError(name, ..) = error else { return false };
    matches!(
        name.as_str(),
        "org.freedesktop.DBus.Error.NameHasNoOwner" | "org.freedesktop.DBus.Error.ServiceUnknown"
    )
}

/// Sleep, as systemd-logind announces it (`org.freedesktop.login1.Manager`).
pub struct SleepWatch {
    manager: Proxy<'static>,
}

/// While it lives, the system waits with going to sleep, for a few seconds at most.
#[derive(Debug)]
pub struct Delay(#[expect(dead_code, reason = "held until it is dropped")] OwnedFd);

impl SleepWatch {
    /// Listens for sleep. The stream says true when the system is about to sleep and false when it has woken, and ends
    /// with the bus.
    ///
    /// # Errors
    /// When there is no system bus or no logind.
    pub async fn listen() -> zbus::Result<(Self, BoxStream<'static, bool>)> {
        let bus = Connection::system().await?;
        let manager = proxy(
            &bus,
            "org.freedesktop.login1",
            "/org/freedesktop/login1",
            "org.freedesktop.login1.Manager",
        )
        .await?;
        let signals = manager.receive_signal("PrepareForSleep").await?;
        let signals = signals.filter_map(|message| async move { message.body().deserialize::<bool>().ok() });
        Ok((Self { manager }, signals.boxed()))
    }

    /// Asks the system to wait before it sleeps until the delay is dropped.
    ///
    /// # Errors
    /// When logind does not grant it.
    pub async fn delay(&self) -> zbus::Result<Delay> {
        let reason = ("sleep", "Wakati", "hands running jobs to another machine", "delay");
        self.manager.call("Inhibit", &reason).await.map(Delay)
    }
}

async fn proxy(
    bus: &Connection,
    name: &'static str,
    path: &'static str,
    interface: &'static str,
) -> zbus::Result<Proxy<'static>> {
    zbus::proxy::Builder::new(bus)
        .destination(name)?
        .path(path)?
        .interface(interface)?
        .cache_properties(CacheProperties::No)
        .build()
        .await
}
