//! The senses of the system that this is built for.

#[cfg(target_os = "linux")]
mod bus;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod power;
#[cfg(target_os = "linux")]
mod x11;
#[cfg(target_os = "linux")]
pub use {
    bus::{Delay, GameMode, SleepWatch},
    linux::SystemTable,
    power::supply,
    x11::Screen,
};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
mod windows_screen;
#[cfg(windows)]
mod windows_steam;
#[cfg(windows)]
pub use {
    windows::SystemTable,
    windows_screen::{Screen, supply},
};

#[cfg(not(any(target_os = "linux", windows)))]
mod macos;
#[cfg(not(any(target_os = "linux", windows)))]
pub use macos::SystemTable;
