//! The system packages that the builds and the tests need.

use std::process::{Command, Stdio};

use anyhow::bail;

use crate::shell::{self, say};

/// A C compiler, the downloads and the Python client.
const HEADLESS: &[&str] = &["build-essential", "pkg-config", "curl", "python3-venv"];
/// The window.
const DESKTOP: &[&str] = &["libwebkit2gtk-4.1-dev", "libgtk-3-dev"];
/// A private display for the window's tests.
const DISPLAY: &[&str] =
    &["webkit2gtk-driver", "xvfb", "openbox", "imagemagick", "dbus", "xdotool", "gamemode"];

/// How much of the house is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Headless,
    /// The window too.
    Desktop,
    /// The window and the display that its tests draw on.
    DesktopTests,
}

/// Installs what is missing, on Debian and Ubuntu.
///
/// # Errors
/// When something is missing and cannot be installed here; the message says what to install.
pub fn install(wanted: Wanted) -> anyhow::Result<()> {
    let needed = match wanted {
        Wanted::Headless => HEADLESS.to_vec(),
        Wanted::Desktop => [HEADLESS, DESKTOP].concat(),
        Wanted::DesktopTests => [HEADLESS, DESKTOP, DISPLAY].concat(),
    };
    if !answers("dpkg-query", "--version") {
        return check_elsewhere(wanted);
    }
    let missing: Vec<_> = needed.into_iter().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    say(&format!("installing {}", missing.join(" ")));
    let is_root = shell::output(Command::new("id").arg("-u"))?.trim() == "0";
    if !is_root && !answers("sudo", "--version") {
        bail!("please install these packages, then try again: {}", missing.join(" "));
    }
    shell::run(apt(is_root).arg("update"))?;
    shell::run(apt(is_root).args(["install", "--yes", "--no-install-recommends"]).args(missing))
}

/// `apt-get`, which asks no questions and shows its progress.
fn apt(is_root: bool) -> Command {
    let mut command = if is_root { Command::new("env") } else { Command::new("sudo") };
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"]).stdin(Stdio::null());
    if !is_root {
        // `sudo` may have to ask for the password.
        command.stdin(Stdio::inherit());
    }
    command
}

fn is_installed(package: &str) -> bool {
    Command::new("dpkg-query")
        .args(["--show", "--showformat=${db:Status-Status}", package])
        .stderr(Stdio::null())
        .output()
        .is_ok_and(|output| output.stdout == b"installed")
}

/// On another system: goes on when the programs answer, else says what to install.
fn check_elsewhere(wanted: Wanted) -> anyhow::Result<()> {
    let tools =
        [("cc", "--version"), ("pkg-config", "--version"), ("curl", "--version"), ("python3", "--version")];
    let mut missing: Vec<_> = tools
        .into_iter()
        .filter(|(tool, flag)| !answers(tool, flag))
        .map(|(tool, _)| tool.to_owned())
        .collect();
    if wanted != Wanted::Headless && !has_webkit() {
        missing.push("the development files of WebKitGTK 4.1 (or run with --headless)".into());
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "this is neither Debian nor Ubuntu; please install these with your system's package manager, then try again: {}",
        missing.join(", ")
    );
}

/// Whether the window can be built here.
pub fn has_webkit() -> bool {
    !cfg!(target_os = "linux")
        || Command::new("pkg-config")
            .args(["--exists", "webkit2gtk-4.1"])
            .status()
            .is_ok_and(|status| status.success())
}

fn answers(program: &str, flag: &str) -> bool {
    let command = Command::new(program).arg(flag).stdout(Stdio::null()).stderr(Stdio::null()).status();
    command.is_ok_and(|status| status.success())
}
