//! The sense of the GPU, on its own thread: a driver that hangs holds up this thread and nothing else.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use wakati_agent::{Gpu, GpuUse};
use wakati_protocol::desk::Machine;
use wakati_senses::{GpuReading, GpuSeen, Gpus};

use super::{Attention, Sensed, Tell, Wanted};

/// How often the GPU is asked while somebody may look at its numbers.
const GPU_EVERY: Duration = Duration::from_secs(1);
/// How often it is asked while there is none: a driver may load long after the login.
const NO_GPU_EVERY: Duration = Duration::from_secs(10);

/// Looks at the GPU as often as it is wanted, and whenever it is nudged. It ends when the nudges do.
pub(super) fn sense(
    wanted: watch::Receiver<Wanted>,
    nudged: Receiver<()>,
) -> impl FnOnce(&mut Tell<'_>) + Send + 'static {
    move |tell| {
        let mut gpus = Gpus::default();
        let mut asked = Instant::now();
        let mut seen = gpus.look(&[]);
        let mut fresh = true;
        let mut taken_back = false;
        loop {
            let Wanted { attention, worker, .. } = *wanted.borrow();
            // Numbers are told while they are fresh, and taken back once when nobody asks for new ones.
            let left_alone = attention == Attention::GpuLeftAlone;
            if (fresh || left_alone && !taken_back) && !tell(told(&seen, attention, asked)) {
                return;
            }
            taken_back = left_alone;
            let nudge = match nudged.recv_timeout(GPU_EVERY) {
                Ok(()) => true,
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let every = match (attention, &seen) {
                (Attention::GpuLeftAlone, _) => None,
                (Attention::GpuWanted, _) | (Attention::All, GpuSeen::Absent) => Some(NO_GPU_EVERY),
                (Attention::All, GpuSeen::Unreadable | GpuSeen::Present(_)) => Some(GPU_EVERY),
            };
            fresh = nudge || every.is_some_and(|every| asked.elapsed() >= every);
            if fresh {
                asked = Instant::now();
                seen = gpus.look(worker.as_slice());
            }
        }
    }
}

fn told(seen: &GpuSeen, attention: Attention, at: Instant) -> Sensed {
    let gpu = match seen {
        GpuSeen::Absent => Gpu::Absent,
        GpuSeen::Unreadable => Gpu::Unreadable,
        GpuSeen::Present(_) => Gpu::Present,
    };
    let usage = match seen {
        GpuSeen::Present(reading) if attention != Attention::GpuLeftAlone => GpuUse {
            others: reading.others_busy,
            free: Some(reading.vram_free),
            temperature: reading.temperature,
        },
        GpuSeen::Present(_) | GpuSeen::Absent | GpuSeen::Unreadable => GpuUse::default(),
    };
    Sensed::Gpu { gpu, usage, machine: machine(seen, attention), at }
}

/// The GPU's numbers; its name and size alone while it is left alone.
fn machine(seen: &GpuSeen, attention: Attention) -> Machine {
    let GpuSeen::Present(reading) = seen else { return Machine::default() };
    let GpuReading { name, vram_total, vram_free, vram_ours, temperature, power, utilisation, .. } =
        reading.clone();
    let named = Machine { gpu: Some(name), vram_total: Some(vram_total), ..Machine::default() };
    match attention {
        Attention::GpuLeftAlone => named,
        Attention::All | Attention::GpuWanted => {
            Machine { vram_free: Some(vram_free), vram_ours, temperature, power, utilisation, ..named }
        }
    }
}
