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
use crate::without_tray::WithoutTray;

/// Clicks wait here for the shell. A shell that has so many waiting hangs, and what comes then is dropped.
const EVENTS: usize = 16;
/// One wish for the window is as good as several.
const WINDOW_WISHES: usize = 1;
/// An application that does not answer a second start for this long has stopped.
const PATIENCE: Duration = Duration::from_secs(5);

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
/// When something runs there that has no window to show, or does not answer for five seconds.
pub async fn open_running(home: &Path) -> anyhow::Result<Running> {
    ask_within(PATIENCE, home).await
}

async fn ask_within(patience: Duration, home: &Path) -> anyhow::Result<Running> {
    let asked = tokio::time::timeout(patience, ask_to_open(home)).await;
    asked.with_context(|| {
        format!("Wakati runs already in {} and does not answer; end it, then start it again", home.display())
    })?
}

async fn ask_to_open(home: &Path) -> anyhow::Result<Running> {
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
    // Whatever can fail comes before the node's task is started, which is joined at the end.
    let window = WindowProcess::new(home.to_owned())?;
    let end = EndSignal::listen()?;
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
        window,
        without_tray: WithoutTray::default(),
    };
    if start == Start::Open {
        shell.open().await;
    }
    let ended = shell.live(Inputs { snapshots, tray_events, window_wishes, end, running, stop }).await;
    shell.window.close().await;
    shell.tray.hide().await;
    ended
}

/// What wakes the shell from outside.
struct Inputs {
    snapshots: watch::Receiver<Snapshot>,
    tray_events: mpsc::Receiver<Event>,
    window_wishes: mpsc::Receiver<()>,
    end: EndSignal,
    running: JoinHandle<anyhow::Result<()>>,
    stop: CancellationToken,
}

struct Shell {
    handle: Handle,
    tray: Tray,
    notices: Notices,
    window: WindowProcess,
    without_tray: WithoutTray,
}

impl Shell {
    /// Lives until the node has ended, and says how it ended.
    async fn live(&mut self, mut inputs: Inputs) -> anyhow::Result<()> {
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
                () = inputs.end.wait() => inputs.stop.cancel(),
                () = until(self.notices.wake_at()) => self.notices.show_due(&Zoned::now()).await,
                () = until_instant(self.without_tray.wake_at()) => self.open().await,
            }
        }
    }

    async fn show(&mut self, snapshot: &Snapshot) {
        self.without_tray.game(snapshot.game.is_some(), Instant::now());
        self.tray.update(View::of(snapshot)).await;
        self.notices.see(snapshot, Timestamp::now());
        self.notices.show_due(&Zoned::now()).await;
    }

    async fn on_tray(&mut self, event: Event, stop: &CancellationToken) {
        match event {
            Event::Clicked(Action::Inform) => {}
            Event::Clicked(Action::PauseTomorrow) => self.wish(Ask::PauseUntilTomorrow).await,
            Event::Clicked(Action::PauseHour) => self.wish(Ask::Pause { minutes: Some(60) }).await,
            Event::Clicked(Action::PauseUntil) => self.wish(Ask::Pause { minutes: None }).await,
            Event::Clicked(Action::Resume) => self.wish(Ask::Resume).await,
            Event::Clicked(Action::Open | Action::ServeAnyway) => self.open().await,
            // The node hands its jobs back, ends, and the loop with it.
            Event::Clicked(Action::Quit) => stop.cancel(),
            Event::Shown => self.without_tray.over(),
            Event::NotShown if self.window.is_open() => {}
            Event::NotShown => self.without_tray.missing(Instant::now()),
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
        self.without_tray.over();
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

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_start_does_not_wait_for_an_application_that_has_stopped() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(open_running(home.path()).await.unwrap(), Running::No);
        // It listens, as a stopped process still does, and never answers.
        let _stopped = std::os::unix::net::UnixListener::bind(home.path().join("desk.sock")).unwrap();
        let error = ask_within(Duration::from_millis(50), home.path()).await.unwrap_err();
        assert!(error.to_string().contains("does not answer"), "{error}");
    }
}
