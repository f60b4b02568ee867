//! What the end-to-end tests, the benches and `cargo xtask run` share: real programs in private homes.
//!
//! A [`House`] is a broker with money in it and the nodes that a test adds, each a real process with files of its own.
//! Nothing here is a second implementation of anything: programs are asked through their command lines, sockets and
//! API, and the books are read from both databases with plain SQL.

pub mod ask;
pub mod bench;
pub mod books;
pub mod broker;
pub mod client;
pub mod desktop;
pub mod game;
pub mod house;
pub mod node;
pub mod program;
pub mod prompts;
