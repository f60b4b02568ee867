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

mod elsewhere;
mod gpu;
mod launchers;
mod libraries;
mod os;
mod owners_list;
mod processes;
mod recognise;
mod screen;
mod wine;

pub use gpu::{GpuReading, GpuSeen, Gpus};
pub use os::SystemTable;
#[cfg(target_os = "linux")]
pub use os::{Delay, GameMode, SleepWatch};
#[cfg(any(target_os = "linux", windows))]
pub use os::{Screen, supply};
pub use owners_list::OwnersList;
pub use processes::{Facts, ProcessTable, Processes, Seen};
pub use recognise::{Kind, Sign};
pub use screen::ScreenSeen;

/// Whether a sense works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Works,
    /// It could not look this time.
    Failed,
}

/// Where the machine's power comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supply {
    Mains,
    Battery,
}
