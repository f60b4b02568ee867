//! The process table of the system that this is built for.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::SystemTable;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::SystemTable;

#[cfg(not(any(target_os = "linux", windows)))]
mod macos;
#[cfg(not(any(target_os = "linux", windows)))]
pub use macos::SystemTable;
