//! The command lines of both programs.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Turns the idle time of this machine's GPU into income, from the tray.
#[derive(Debug, Parser)]
#[command(name = "wakati", version)]
pub struct Arguments {
    /// The folder with the settings, the key, the log and the models.
    #[arg(long, env = "WAKATI_HOME")]
    pub home: Option<PathBuf>,
    /// Start in the tray, without the window.
    #[arg(long)]
    pub hidden: bool,
    /// Start with the computer from now on, or no longer; then end.
    #[arg(long, value_name = "on|off")]
    pub start_with_computer: Option<Switch>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

/// The window of a running Wakati. Started by `wakati`, not by hand.
#[derive(Debug, Parser)]
#[command(name = "wakati-window", version)]
pub struct WindowArguments {
    /// The folder of the running Wakati.
    #[arg(long, env = "WAKATI_HOME")]
    pub home: Option<PathBuf>,
}
