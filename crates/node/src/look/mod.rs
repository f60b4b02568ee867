//! Looking at the machine. Each sense looks by itself, on a thread or a task of its own, and tells the loop: one that
//! is slow or hangs holds up nobody else.
//!
//! ```text
//! processes (thread) --+
//! GPU       (thread) --+--> Sensed --> the loop
//! screen    (thread) --+                 |
//! D-Bus     (task)   --+   <-- Orders ---+
//! ```

#[cfg(target_os = "linux")]
mod bus;
mod gpu;
mod processes;
#[cfg(any(target_os = "linux", windows))]
mod screen;

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::{mpsc, oneshot, watch};
use wakati_agent::{Activity, Gpu, GpuUse, Power, Rest, Seen, Sense, Sign, Sleep};
use wakati_protocol::desk::Machine;

use crate::settings::GameSettings;

/// What was sensed waits here for the loop. When it is full, the sense waits, and looks again afterwards.
const SENSED: usize = 32;
/// How long a hung driver may hold up the end of the program.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// What one sense tells.
#[derive(Debug)]
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "some of these senses are on Linux alone so far")
)]
pub enum Sensed {
    Signs { from: Sense, seen: Seen, at: Instant },
    Gpu { gpu: Gpu, usage: GpuUse, machine: Machine, at: Instant },
    Power(Power),
    Untouched(Duration),
    Sleep(Sleep),
}

/// What is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// The GPU's numbers, every second.
    All,
    /// The GPU now and then: serving waits for it.
    GpuWanted,
    /// At rest the GPU may sleep.
    GpuLeftAlone,
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
            | Activity::Resting(
                Rest::Starting | Rest::WorkerEnded | Rest::GpuBusy | Rest::GpuMemory | Rest::TooHot { .. },
            ) => Self::All,
            Activity::Resting(Rest::NoGpu) => Self::GpuWanted,
            Activity::Resting(_) | Activity::Off => Self::GpuLeftAlone,
        }
    }
}

/// What the loop wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    pub attention: Attention,
    /// The newest worker's process, whose GPU memory is ours, also after its end.
    pub worker: Option<u32>,
    pub sleep: MaySleep,
    pub pace: Pace,
}

/// How often processes and screen are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As the settings say: a game may start at any moment.
    Watchful,
    /// Seldom: the machine is the game's, and its end is soon enough noticed.
    Easy,
}

/// Whether the system may go to sleep now, when it wants to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaySleep {
    /// Nothing is lost by it.
    Yes,
    /// Running jobs are handed back first.
    NotYet,
}

/// Tells the senses what to look at.
#[derive(Debug)]
pub struct Orders {
    wanted: watch::Sender<Wanted>,
    nudge: std::sync::mpsc::SyncSender<()>,
}

impl Orders {
    /// Sets what is looked at from the next look on.
    pub fn want(&self, wanted: Wanted) {
        self.wanted.send_if_modified(|known| std::mem::replace(known, wanted) != wanted);
    }

    /// Asks for a look at the GPU now. One that is already asked for serves both.
    pub fn look_now(&self) {
        let _ = self.nudge.try_send(());
    }
}

/// The senses, at work.
pub struct Looking {
    threads: Vec<Thread>,
    #[cfg(target_os = "linux")]
    bus: tokio::task::JoinHandle<()>,
}

/// A sense's thread, and word of its end.
struct Thread {
    thread: JoinHandle<()>,
    ended: oneshot::Receiver<()>,
}

impl Looking {
    /// Starts the senses. They end when the receiver and the orders are dropped.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub fn start(games: &GameSettings) -> anyhow::Result<(Self, mpsc::Receiver<Sensed>, Orders)> {
        let (tell, sensed) = mpsc::channel(SENSED);
        let all =
            Wanted { attention: Attention::All, worker: None, sleep: MaySleep::Yes, pace: Pace::Watchful };
        let (wanted_in, wanted) = watch::channel(all);
        // One nudge that waits is as good as many.
        let (nudge, nudged) = std::sync::mpsc::sync_channel(1);
        let looks_at_processes = processes::sense(games, wanted.clone());
        let mut threads = vec![
            thread("processes", tell.clone(), looks_at_processes)?,
            thread("gpu", tell.clone(), gpu::sense(wanted.clone(), nudged))?,
        ];
        #[cfg(any(target_os = "linux", windows))]
        threads.push(thread("screen", tell.clone(), screen::sense(wanted.clone()))?);
        let looking = Self {
            threads: std::mem::take(&mut threads),
            #[cfg(target_os = "linux")]
            bus: tokio::spawn(bus::sense(tell, wanted)),
        };
        Ok((looking, sensed, Orders { wanted: wanted_in, nudge }))
    }

    /// Joins the senses, after receiver and orders are dropped. One that hangs in a driver is left to the end of the
    /// program.
    pub async fn end(self) {
        for Thread { thread, ended } in self.threads {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            // The thread says nothing; its half is dropped when it ends.
            let ended = tokio::time::timeout(END_PATIENCE, ended).await.is_ok();
            if !(ended && thread.join().is_ok()) {
                tracing::warn!(name, "a sense hangs and is left behind");
            }
        }
        #[cfg(target_os = "linux")]
        if self.bus.await.is_err() {
            tracing::warn!("the sense of D-Bus has failed");
        }
    }
}

/// The end of the program is noticed within this time.
const SLICE: Duration = Duration::from_millis(500);

/// Waits for so long, or until nobody wants to know anything any more.
fn wait(wanted: &watch::Receiver<Wanted>, length: Duration) {
    let until = Instant::now() + length;
    while wanted.has_changed().is_ok() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(SLICE));
    }
}

/// How a sense's thread tells; false when nobody listens any more.
type Tell<'a> = dyn FnMut(Sensed) -> bool + 'a;

fn thread(
    name: &str,
    tell: mpsc::Sender<Sensed>,
    sense: impl FnOnce(&mut Tell<'_>) + Send + 'static,
) -> anyhow::Result<Thread> {
    let (running, ended) = oneshot::channel::<()>();
    let look = move || {
        let _running = running;
        sense(&mut |sensed| tell.blocking_send(sensed).is_ok());
    };
    let thread = std::thread::Builder::new().name(name.into()).spawn(look);
    let thread = thread.with_context(|| format!("the thread of the sense {name} does not start"))?;
    Ok(Thread { thread, ended })
}

/// A sign as the agent knows it.
fn sign(seen: wakati_senses::Sign) -> Sign {
    use wakati_agent::Kind;
    use wakati_senses::Kind as Seen;
    let kind = match seen.kind {
        Seen::Launcher => Kind::Launcher,
        Seen::OwnersList => Kind::OwnersList,
        Seen::GameMode => Kind::GameMode,
        Seen::GameCompositor => Kind::GameCompositor,
        Seen::RemotePlay => Kind::RemotePlay,
        Seen::VirtualReality => Kind::VirtualReality,
        Seen::GameFolder => Kind::GameFolder,
        Seen::Compatibility => Kind::Compatibility,
        Seen::FullScreen => Kind::FullScreen,
        Seen::Film => Kind::Film,
    };
    Sign { kind, name: seen.name, pid: seen.pid, lives: seen.lives }
}
