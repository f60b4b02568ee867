//! The node: one loop that looks through the senses, asks the agent, and does what it decided.
//!
//! It joins what the other crates know: it keeps the link to the broker, relays jobs to the worker and tokens back,
//! checks and keeps receipts, and answers the owner's programs at the desk. The desktop application embeds it;
//! `wakati-node` is the same without a window.
//! It deliberately decides nothing: whether to serve is the agent's, and every sentence is `wakati-words`'.
//!
//! ```text
//!  senses ----> +------+ ----> station: link <-> relay <-> worker
//!  desk   ----> | loop | ----> journal (the log)
//!  time   ----> +------+ ----> snapshots (desk, window)
//!                 agent
//! ```

mod clock;
mod crew;
pub mod desk;
mod end_signal;
mod faults;
mod handle;
pub mod home;
mod journal;
mod key;
mod link;
mod look;
mod node;
mod receipts;
mod relay;
mod sentences;
pub mod settings;
mod snapshot;
mod speed;
mod station;
mod stopwatch;
mod the_loop;

pub use end_signal::EndSignal;
pub use handle::Handle;
pub use link::{BadUrl, link_url};
pub use node::{Node, RunOptions, look_up, run};
pub use wakati_store::csv;
