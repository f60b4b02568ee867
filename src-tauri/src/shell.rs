//! The shell's one loop: it wakes for snapshots, clicks, wishes for the window, signals and notices.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use jiff::{Timestamp, Zoned};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wakati_node::desk::{NoAnswer, Visit};
use wakati_node::{EndSignal, Handle, Node, RunOptions};
use wakati_protocol::desk::{Answer, Ask, Snapshot};

use crate::notices::Notices;
use crate::tray::menu::Action;
use crate::tray::{Event, Tray, View};
use crate::window_process::WindowProcess;

/// Clicks wait here for the shell. A shell that has so many waiting hangs, and what comes then is dropped.
const EVENTS: usize = 16;
/// One wish for the window is as good as several.
const WINDOW_WISHES: usize = 1;
/// A panel that starts with the session may take so long to show trays. After that the window is opened instead.
const PATIENCE_FOR_A_TRAY: Duration = Duration::from_secs(10);

/// How the application starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the window.
    Open,
    /// In the tray only.
    Hidden,
}

/// Asks an application that already runs in this home to show its window.
///
/// # Errors
/// When something runs there that has no window to show.
pub async fn open_running(home: &Path) -> anyhow::Result<Running> {
    let mut visit = match Visit::begin(home).await {
        Ok(visit) => visit,
        Err(NoAnswer::NotRunning) => return Ok(Running::No),
        Err(error) => return Err(error.into()),
    };
    match visit.ask(&Ask::OpenWindow).await? {
        Answer::Done => Ok(Running::Yes),
        Answer::Refused { sentence } | Answer::Garbled { sentence } => anyhow::bail!(sentence),
        Answer::Snapshot(_) | Answer::Why { .. } | Answer::Earnings { .. } => {
            anyhow::bail!("the node misunderstood")
        }
    }
}

/// Whether an application runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Running {
    Yes,
    No,
}

/// Runs the application until its owner quits, the system ends it, or the node cannot go on.
///
/// # Errors
/// When the node cannot start or fails.
pub async fn run(home: &Path, start: Start) -> anyhow::Result<()> {
    let (open_window, window_wishes) = mpsc::channel(WINDOW_WISHES);
    let node = Node::open(home, RunOptions { open_window: Some(open_window) }).await?;
    let handle = node.handle();
    let stop = CancellationToken::new();
    let running = tokio::spawn(node.run(stop.clone()));

    let snapshots = handle.snapshots();
    let (events, tray_events) = mpsc::channel(EVENTS);
    let view = View::of(&snapshots.borrow());
    let tray = Tray::show(view, events).await;
    let mut shell = Shell {
        handle,
        tray,
        notices: Notices::remembered(home.join("notices.json")),
        window: WindowProcess::new(home.to_owned())?,
        open_without_tray: None,
    };
    if start == Start::Open {
        shell.open().await;
    }
    let ended = shell.live(Inputs { snapshots, tray_events, window_wishes, running, stop }).await;
    shell.window.close().await;
    shell.tray.hide().await;
    ended
}

/// What wakes the shell from outside.
struct Inputs {
    snapshots: watch::Receiver<Snapshot>,
    tray_events: mpsc::Receiver<Event>,
    window_wishes: mpsc::Receiver<()>,
    running: JoinHandle<anyhow::Result<()>>,
    stop: CancellationToken,
}

struct Shell {
    handle: Handle,
    tray: Tray,
    notices: Notices,
    window: WindowProcess,
    /// When to open the window because no tray has appeared.
    open_without_tray: Option<Instant>,
}

impl Shell {
    /// Lives until the node has ended, and says how it ended.
    async fn live(&mut self, mut inputs: Inputs) -> anyhow::Result<()> {
        let mut signal = EndSignal::listen()?;
        let first = inputs.snapshots.borrow_and_update().clone();
        self.show(&first).await;
        loop {
            tokio::select! {
                ended = &mut inputs.running => return ended.context("the node panicked")?,
                Ok(()) = inputs.snapshots.changed() => {
                    let snapshot = inputs.snapshots.borrow_and_update().clone();
                    self.show(&snapshot).await;
                }
                Some(event) = inputs.tray_events.recv() => self.on_tray(event, &inputs.stop).await,
                Some(()) = inputs.window_wishes.recv() => self.open().await,
                () = self.window.closed() => {}
                () = signal.wait() => inputs.stop.cancel(),
                () = until(self.notices.wake_at()) => self.notices.show_due(&Zoned::now()).await,
                () = until_instant(self.open_without_tray) => self.open().await,
            }
        }
    }

    async fn show(&mut self, snapshot: &Snapshot) {
        self.tray.update(View::of(snapshot)).await;
        self.notices.see(snapshot, Timestamp::now());
        self.notices.show_due(&Zoned::now()).await;
    }

    async fn on_tray(&mut self, event: Event, stop: &CancellationToken) {
        match event {
            Event::Clicked(Action::Inform) => {}
            Event::Clicked(Action::PauseHour) => self.wish(Ask::Pause { minutes: Some(60) }).await,
            Event::Clicked(Action::PauseUntil) => self.wish(Ask::Pause { minutes: None }).await,
            Event::Clicked(Action::Resume) => self.wish(Ask::Resume).await,
            Event::Clicked(Action::Open) => self.open().await,
            // The node hands its jobs back, ends, and the loop with it.
            Event::Clicked(Action::Quit) => stop.cancel(),
            Event::Shown => self.open_without_tray = None,
            Event::NotShown if self.window.is_open() => {}
            Event::NotShown => self.open_without_tray = Some(Instant::now() + PATIENCE_FOR_A_TRAY),
        }
    }

    async fn wish(&self, ask: Ask) {
        match self.handle.ask(ask).await {
            Answer::Refused { sentence } | Answer::Garbled { sentence } => {
                tracing::info!(sentence, "not granted")
            }
            Answer::Done | Answer::Snapshot(_) | Answer::Why { .. } | Answer::Earnings { .. } => {}
        }
    }

    async fn open(&mut self) {
        self.open_without_tray = None;
        if let Err(error) = self.window.open().await {
            tracing::error!(%error, "the window does not open");
        }
    }
}

/// Until this moment; for ever without one.
async fn until(moment: Option<Timestamp>) {
    let Some(moment) = moment else { return std::future::pending().await };
    let wait = moment.duration_since(Timestamp::now());
    tokio::time::sleep(Duration::try_from(wait).unwrap_or_default()).await;
}

async fn until_instant(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
