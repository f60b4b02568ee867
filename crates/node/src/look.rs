//! Looking at the machine, on a thread of its own: a driver that hangs holds up this thread and nothing else.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::{oneshot, watch};
use wakati_agent::{Activity, Game, GameEvidence, Gpu, Processes, Rest};
use wakati_protocol::desk::Machine;
use wakati_senses::{Evidence, GpuReading, GpuSeen, Gpus, Health, OwnersList, SystemTable};

use crate::settings::GameSettings;

/// How often the GPU is asked while somebody may look at its numbers.
const GPU_EVERY: Duration = Duration::from_secs(1);
/// How often it is asked while there is none: a driver may load long after the login.
const NO_GPU_EVERY: Duration = Duration::from_secs(10);
/// How long a hung driver may hold up the end of the program.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// What is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// Processes and GPU.
    All,
    /// The GPU now and then: serving waits for it.
    GpuWanted,
    /// Processes alone: at rest the GPU may sleep.
    ProcessesOnly,
}

impl Attention {
    /// What this activity needs to know.
    #[must_use]
    pub fn of(activity: &Activity) -> Self {
        match activity {
            Activity::Warming { .. }
            | Activity::Serving { .. }
            | Activity::Unreachable { .. }
            | Activity::Yielding(_)
            | Activity::Resting(Rest::Starting | Rest::WorkerEnded) => Self::All,
            Activity::Resting(Rest::NoGpu) => Self::GpuWanted,
            Activity::Resting(_) | Activity::Off => Self::ProcessesOnly,
        }
    }
}

/// What the loop wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    pub attention: Attention,
    /// The newest worker's process, whose GPU memory is ours, also after its end.
    pub worker: Option<u32>,
}

/// One look at the machine.
#[derive(Debug, Clone)]
pub struct Looked {
    /// When it began.
    pub at: Instant,
    pub processes: Processes,
    /// `None` when the GPU was not asked.
    pub gpu: Option<Gpu>,
    pub machine: Machine,
}

/// Tells the thread what to look at.
#[derive(Debug)]
pub struct Orders {
    wanted: watch::Sender<Wanted>,
    nudge: SyncSender<()>,
}

impl Orders {
    /// Sets what is looked at from the next look on.
    pub fn want(&self, wanted: Wanted) {
        self.wanted.send_replace(wanted);
    }

    /// Asks for a whole look now. One that is already asked for serves both.
    pub fn look_now(&self) {
        let _ = self.nudge.try_send(());
    }
}

/// The looking thread.
pub struct Looking {
    pub looks: watch::Receiver<Option<Looked>>,
    thread: JoinHandle<()>,
    ended: oneshot::Receiver<()>,
}

impl Looking {
    /// Starts the thread. It ends when the orders are dropped.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub fn start(games: &GameSettings) -> anyhow::Result<(Self, Orders)> {
        let (looks_in, looks) = watch::channel(None);
        let (wanted_in, wanted) = watch::channel(Wanted { attention: Attention::All, worker: None });
        // One nudge that waits is as good as many.
        let (nudge, nudged) = sync_channel(1);
        let mut eyes = Eyes::open(games);
        let poll = games.poll;
        let (running, ended) = oneshot::channel::<()>();
        let see = move || {
            let _running = running;
            let mut whole = true;
            loop {
                let looked = eyes.look(*wanted.borrow(), whole);
                // The newest look replaces one that the loop has not read.
                looks_in.send_replace(Some(looked));
                whole = match nudged.recv_timeout(poll) {
                    Err(RecvTimeoutError::Timeout) => false,
                    Ok(()) => true,
                    Err(RecvTimeoutError::Disconnected) => return,
                };
            }
        };
        let thread = std::thread::Builder::new().name("senses".into()).spawn(see);
        let thread = thread.context("the senses' thread does not start")?;
        Ok((Self { looks, thread, ended }, Orders { wanted: wanted_in, nudge }))
    }

    /// Joins the thread, after the orders are dropped. One that hangs in a driver is left to the end of the program.
    pub async fn end(self) {
        // The thread says nothing; its half is dropped when it ends.
        let ended = tokio::time::timeout(END_PATIENCE, self.ended).await.is_ok();
        if !(ended && self.thread.join().is_ok()) {
            tracing::warn!("the senses hang and are left behind");
        }
    }
}

/// The senses, with what the GPU said last.
struct Eyes {
    processes: wakati_senses::Processes<SystemTable>,
    gpus: Gpus,
    gpu: GpuSeen,
    asked_gpu: Option<Instant>,
}

impl Eyes {
    fn open(games: &GameSettings) -> Self {
        let list = OwnersList::new(&games.programs);
        Self {
            processes: wakati_senses::Processes::<SystemTable>::new(
                Default::default(),
                list,
                std::process::id(),
            ),
            gpus: Gpus::default(),
            gpu: GpuSeen::Absent,
            asked_gpu: None,
        }
    }

    fn look(&mut self, wanted: Wanted, whole: bool) -> Looked {
        let at = Instant::now();
        let seen = self.processes.look();
        let processes = match seen.health {
            Health::Works => Processes::Read(seen.game.map(game)),
            Health::Failed => Processes::Unreadable,
        };
        let asks = self.asks_gpu(wanted.attention, whole);
        if asks {
            self.gpu = self.gpus.look(wanted.worker.as_slice());
            self.asked_gpu = Some(Instant::now());
        }
        let gpu = match &self.gpu {
            GpuSeen::Absent => Gpu::Absent,
            GpuSeen::Unreadable => Gpu::Unreadable,
            GpuSeen::Present(_) => Gpu::Present,
        };
        let gpu = asks.then_some(gpu);
        Looked { at, processes, gpu, machine: self.machine(wanted.attention) }
    }

    fn asks_gpu(&self, attention: Attention, whole: bool) -> bool {
        let Some(asked) = self.asked_gpu else { return true };
        let every = match (attention, &self.gpu) {
            (Attention::ProcessesOnly, _) => return false,
            (Attention::GpuWanted, _) | (Attention::All, GpuSeen::Absent) => NO_GPU_EVERY,
            (Attention::All, GpuSeen::Unreadable | GpuSeen::Present(_)) => GPU_EVERY,
        };
        whole || asked.elapsed() >= every
    }

    /// The GPU's numbers, as long as they are fresh; its name and size for ever.
    fn machine(&self, attention: Attention) -> Machine {
        let GpuSeen::Present(reading) = &self.gpu else { return Machine::default() };
        let GpuReading { name, vram_total, vram_free, vram_ours, temperature, power, utilisation, .. } =
            reading.clone();
        let named = Machine { gpu: Some(name), vram_total: Some(vram_total), ..Machine::default() };
        match attention {
            Attention::ProcessesOnly => named,
            Attention::All | Attention::GpuWanted => {
                Machine { vram_free: Some(vram_free), vram_ours, temperature, power, utilisation, ..named }
            }
        }
    }
}

fn game(seen: wakati_senses::Game) -> Game {
    let evidence = match seen.evidence {
        Evidence::SteamReaper { app } => GameEvidence::Launcher { app },
        Evidence::OwnersList => GameEvidence::OwnersList,
    };
    Game { name: seen.name, pid: seen.pid, evidence }
}
