//! What the owner must know, with the numbers that explain it.

use serde::{Deserialize, Serialize};

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The process list cannot be read, so a game that starts may be missed.
    ProcessesUnreadable,
    /// The GPU cannot be asked.
    GpuUnreadable,
    /// The worker ended by itself again and again.
    WorkerKeepsEnding { times: u32, within_minutes: u32 },
    /// The worker does not serve the model.
    WorkerRefused(WorkerRefusal),
    /// The worker program is missing or cannot be started.
    WorkerNotStarted,
    /// After a yield the worker still held memory; `None` where it cannot be measured.
    MemoryHeld { mebibytes: Option<u64> },
    /// A value in the settings file is not used.
    Setting(SettingProblem),
    /// The earnings log cannot be written.
    LogUnwritable,
    /// The broker's receipt says something else than this machine's own record.
    ReceiptDisagrees { sequence: u64 },
}

/// Why a worker does not serve a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerRefusal {
    NoFile,
    CorruptFile,
    UnknownArchitecture,
    DoesNotFit {
        needed_mebibytes: u64,
        free_mebibytes: u64,
    },
    /// The processor lacks AVX2.
    NoAvx2,
    /// The engine failed while loading.
    Engine,
}

/// Why there is no session with the broker, where dialling again does not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BrokerRefusal {
    /// No common version of the link.
    Version,
    /// Our signature does not fit our key.
    Signature,
    NotInvited,
    BadInvite,
    Full,
    /// This node's key is connected from somewhere else.
    AlreadyHere,
    /// Another broker answers at the address.
    BrokerChanged,
    /// The address in the settings cannot be dialled.
    BadAddress,
    Unknown,
}

/// What is wrong with the settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingProblem {
    /// This option has a value that cannot be used; its default holds.
    BadValue { option: String },
    /// There is no such option.
    UnknownOption { option: String },
    /// The file could not be understood. It was kept under this name, and defaults hold.
    SetAside { file: String },
    /// The file cannot be read; defaults hold.
    Unreadable { file: String },
}
