//! The desktop application's shell: tray, notices, start with the computer, one running application per home.
//!
//! It puts the node's snapshots on the screen and the owner's clicks into the node's hands.
//! It deliberately decides nothing about serving, reads no sensor and no database, and draws no window:
//! the window is a program of its own (`wakati-window`), because on Linux the WebView's libraries alone
//! cost more memory than everything else in this process together.

pub mod arguments;
pub mod autostart;
mod labels;
mod money;
mod notices;
pub mod shell;
mod tray;
pub mod window_process;
mod without_tray;
