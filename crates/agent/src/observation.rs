//! What the agent is told about the world.

use serde::{Deserialize, Serialize};

use crate::fault::{BrokerRefusal, WorkerRefusal};

/// One thing seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    Processes(Processes),
    Gpu(Gpu),
    Worker(WorkerSeen),
    /// The answer to [`crate::Effect::CheckMemory`].
    Memory(Memory),
    Link(Link),
    Model(Model),
    /// How many jobs run on this node.
    Jobs(u32),
}

/// What the process list says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Processes {
    /// It was read; `None` when no game runs.
    Read(Option<Game>),
    /// It could not be read. What was known before still holds.
    Unreadable,
}

/// A game that runs. Its name is the owner's own and never leaves the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Game {
    pub name: String,
    pub pid: u32,
    pub evidence: GameEvidence,
}

/// Why a process is taken for a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GameEvidence {
    /// A game launcher started it, as the application with this number.
    Launcher { app: u32 },
    /// It is on the owner's list of programs.
    OwnersList,
}

/// Whether there is a GPU that Wakati can serve on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gpu {
    Present,
    Absent,
    /// It could not be asked. What was known before still holds; if nothing was, it counts as absent.
    Unreadable,
}

/// What the worker process did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerSeen {
    /// It loads its model.
    Loading { bytes: u64, of_bytes: u64 },
    /// It takes jobs.
    Ready,
    /// It will not serve; the process ends by itself.
    Refused(WorkerRefusal),
    /// The process could not be started, so there is none.
    NotStarted,
    /// The process is gone, because it was killed or by itself. Of a worker that was killed, this is told before the
    /// [`Memory::Back`] that follows, or not at all: after it, the next worker would be meant.
    Gone,
}

/// Whether the worker has given its memory back. On the processor the process being gone is all there is to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// The process is gone and holds nothing.
    Back,
    /// Something is still held. `mebibytes` is `None` where that cannot be measured.
    Held { mebibytes: Option<u64> },
}

/// The link to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// No broker in the settings.
    NotJoined,
    /// No session at the moment; it is being dialled. Jobs of the lost session are cancelled by whoever runs them.
    Dialling,
    Joined,
    Refused(BrokerRefusal),
}

/// The model in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Model {
    /// None is chosen, or its files are not there.
    Missing,
    Ready {
        name: String,
    },
}
