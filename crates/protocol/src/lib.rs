//! The words that Wakati's programs speak to each other.
//!
//! Three conversations live here: the *link* between a node and its broker, the *pipe* between a node and
//! its worker, and the *desk*, the local socket at which an owner's own programs ask the node.
//! Beside them are the ids, units and money that all of them share.
//!
//! This crate is deliberately without I/O: no sockets, no clock, no files, no runtime.
//! It says what the messages are, how they are framed and how they are signed, and nothing about when.

#[cfg(feature = "bindings")]
pub mod bindings;
pub mod desk;
pub mod frame;
pub mod ids;
pub mod job;
pub mod link;
pub mod money;
pub mod pipe;
pub mod receipt;
pub mod units;

/// The version of the node link that this build speaks, and the oldest that it still understands.
pub const LINK_VERSION: u32 = 1;
/// The oldest version of the node link that this build understands.
pub const LINK_VERSION_OLDEST: u32 = 1;
/// The version of the pipe to the worker. Both ends are installed together, so it must match exactly.
pub const PIPE_VERSION: u32 = 1;
