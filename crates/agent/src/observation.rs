//! What the agent is told about the world.

use std::time::Duration;

use jiff::Zoned;
use wakati_protocol::units::{Celsius, MiB, Percent};

use crate::fault::{BrokerRefusal, WorkerRefusal};
use crate::sign::{Seen, Sense};

/// One thing seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    Signs(Sense, Seen),
    Gpu(Gpu),
    /// How the GPU is used, where it tells.
    GpuUse(GpuUse),
    Power(Power),
    /// How long nobody has touched keyboard, mouse or gamepad.
    Untouched(Duration),
    Sleep(Sleep),
    /// The owner's clock. Tell it at the start, every minute and after every jump.
    Clock(Zoned),
    Worker(WorkerSeen),
    /// The answer to [`crate::Effect::CheckMemory`].
    Memory(Memory),
    Link(Link),
    Model(Model),
    /// How many jobs run on this node.
    Jobs(u32),
}

/// Whether there is a GPU that Wakati can serve on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gpu {
    Present,
    Absent,
    /// It could not be asked. What was known before still holds; if nothing was, it counts as absent.
    Unreadable,
}

/// How the GPU is used. A part that is not known is `None`, and decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GpuUse {
    /// How busy other programs keep it.
    pub others: Option<Percent>,
    pub free: Option<MiB>,
    pub temperature: Option<Celsius>,
}

/// Where the machine's power comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    Mains,
    Battery,
}

/// Whether the machine is about to sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    About,
    Awake,
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
