//! The senses look at the machine: which processes run, and how the GPU is.
//!
//! They deliberately decide nothing: whether what they see is a reason to stop serving is the agent's. They know no
//! settings but the owner's list of programs that is handed to them, keep no thread and never sleep. A driver that
//! hangs hangs the caller, who therefore looks from a thread of its own.
//!
//! Of other people's processes they read what any user may read (the process table, and on Linux the command line and
//! the program's path); nothing is opened, injected or drawn over.
//!
//! ```text
//! os/ (one file per system) -> Processes -> recognise -> Seen
//! NVML ----------------------> Gpus ------------------> GpuSeen
//! ```

mod gpu;
mod os;
mod processes;
mod recognise;

pub use gpu::{GpuReading, GpuSeen, Gpus};
pub use os::SystemTable;
pub use processes::{Facts, ProcessTable, Processes, Seen};
pub use recognise::{Evidence, Game, OwnersList};

/// Whether a sense works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Works,
    /// It could not look this time.
    Failed,
}
