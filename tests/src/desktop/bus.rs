//! A session bus that knows no service files, so that nothing of the machine answers on it.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A running `dbus-daemon`.
pub struct Bus {
    address: String,
    _daemon: Child,
}

impl Bus {
    /// Starts one whose socket lies in this folder.
    ///
    /// # Errors
    /// When `dbus-daemon` is not installed or does not start.
    pub async fn start(folder: &Path) -> anyhow::Result<Self> {
        let config = folder.join("bus.conf");
        let socket = folder.join("bus");
        std::fs::write(&config, configuration(&socket))?;
        let mut daemon = Command::new("dbus-daemon")
            .arg("--nofork")
            .arg("--print-address=1")
            .arg(format!("--config-file={}", config.display()))
            .stdout(Stdio::piped())
            // It complains about limits that it may not raise in a container, and goes on.
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("dbus-daemon is not installed")?;
        let output = daemon.stdout.take().context("no output")?;
        let address =
            BufReader::new(output).lines().next_line().await?.context("dbus-daemon did not start")?;
        Ok(Self { address, _daemon: daemon })
    }

    /// Where programs find it.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A connection of the test's own.
    ///
    /// # Errors
    /// When the bus has gone.
    pub async fn connect(&self) -> anyhow::Result<zbus::Connection> {
        Ok(zbus::connection::Builder::address(self.address.as_str())?.build().await?)
    }
}

fn configuration(socket: &Path) -> String {
    format!(
        r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#,
        socket.display()
    )
}
