//! The worker that runs now, and those that are leaving.
//!
//! ```text
//! start -> warming -> Ready -> (a word at least every 20 s)* -> Exited -> leaving -> joined
//!                          \-> 20 s without a word: killed ---/
//! ```

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wakati_engine::{Exit, NotStarted, Spec, Stuck, Worker, WorkerEvent};
use wakati_protocol::pipe::{Ready, to_worker};

/// A worker that serves says a word a second. One that has said none for this many seconds hangs.
const SILENCE: u32 = 20;

/// The one worker, if there is one.
#[derive(Default)]
pub struct Crew {
    working: Option<Working>,
    /// Events that were passed over while jobs were handed back, to be heard next.
    unheard: VecDeque<WorkerEvent>,
    /// Workers whose process is gone, until everything of them is joined.
    leaving: JoinSet<()>,
}

struct Working {
    worker: Worker,
    events: mpsc::Receiver<WorkerEvent>,
    stage: Stage,
}

enum Stage {
    /// It loads the model, and may take its time.
    Warming,
    /// `silent` counts the seconds since its last word. They are counted and not measured, so that a computer that
    /// slept finds its worker as it left it.
    Serving { ready: Ready, silent: u32 },
}

impl Crew {
    /// The worker's process, while there is one.
    pub fn pid(&self) -> Option<u32> {
        self.working.as_ref().map(|working| working.worker.pid())
    }

    /// What the worker said when the model was loaded.
    pub fn ready(&self) -> Option<&Ready> {
        match &self.working.as_ref()?.stage {
            Stage::Warming => None,
            Stage::Serving { ready, .. } => Some(ready),
        }
    }

    /// Starts a worker, if there is none.
    ///
    /// # Errors
    /// When the system does not start it.
    pub fn start(&mut self, spec: &Spec) -> Result<(), NotStarted> {
        if self.working.is_none() {
            let (worker, events) = Worker::spawn(spec)?;
            self.working = Some(Working { worker, events, stage: Stage::Warming });
        }
        while self.leaving.try_join_next().is_some() {}
        Ok(())
    }

    /// The worker's next event; waits for ever while there is no worker.
    pub async fn event(&mut self) -> WorkerEvent {
        if let Some(event) = self.unheard.pop_front() {
            return event;
        }
        match &mut self.working {
            // The channel only closes after `Exited`, with which the worker goes.
            Some(working) => working.events.recv().await.unwrap_or(WorkerEvent::Exited(Exit::Killed)),
            None => std::future::pending().await,
        }
    }

    /// The tokens and ends that the worker has said and nobody has heard. Other events stay for [`Crew::event`].
    pub fn last_words(&mut self) -> Vec<WorkerEvent> {
        let mut last = Vec::new();
        while let Some(Ok(event)) = self.working.as_mut().map(|working| working.events.try_recv()) {
            match event {
                WorkerEvent::Tokens(_) | WorkerEvent::End(_) => last.push(event),
                WorkerEvent::Hello(_)
                | WorkerEvent::Loading(_)
                | WorkerEvent::Ready(_)
                | WorkerEvent::Refused(_)
                | WorkerEvent::Beat(_)
                | WorkerEvent::Exited(_) => self.unheard.push_back(event),
            }
        }
        last
    }

    /// Takes note of an event: the worker lives, is ready, or is gone.
    pub fn hear(&mut self, event: &WorkerEvent) {
        match event {
            WorkerEvent::Exited(_) => {
                self.unheard.clear();
                if let Some(Working { worker, .. }) = self.working.take() {
                    self.leaving.spawn(worker.end());
                }
            }
            WorkerEvent::Ready(ready) => {
                if let Some(working) = &mut self.working {
                    working.stage = Stage::Serving { ready: ready.clone(), silent: 0 };
                }
            }
            WorkerEvent::Hello(_)
            | WorkerEvent::Loading(_)
            | WorkerEvent::Refused(_)
            | WorkerEvent::Tokens(_)
            | WorkerEvent::End(_)
            | WorkerEvent::Beat(_) => {
                if let Some(Working { stage: Stage::Serving { silent, .. }, .. }) = &mut self.working {
                    *silent = 0;
                }
            }
        }
    }

    /// A second has passed. A worker that hangs is killed; `Exited` follows.
    pub fn second(&mut self) {
        let Some(Working { worker, stage: Stage::Serving { silent, .. }, .. }) = &mut self.working else {
            return;
        };
        *silent += 1;
        if *silent == SILENCE {
            tracing::error!(pid = worker.pid(), seconds = SILENCE, "the worker is silent and is killed");
            worker.kill();
        }
    }

    /// Says something to the worker, if there is one.
    ///
    /// # Errors
    /// When it does not listen.
    pub fn tell(&self, body: to_worker::Body) -> Result<(), Stuck> {
        self.working.as_ref().map_or(Ok(()), |working| working.worker.send(body))
    }

    /// Kills the worker; `Exited` follows, if there was one.
    pub fn kill(&self) {
        if let Some(working) = &self.working {
            working.worker.kill();
        }
    }

    /// Kills the worker and waits for everything of it and of those that are leaving.
    pub async fn end(mut self) {
        if let Some(Working { worker, events, .. }) = self.working.take() {
            drop(events);
            self.leaving.spawn(worker.end());
        }
        while self.leaving.join_next().await.is_some() {}
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use wakati_engine::Hardware;

    use super::*;

    /// A worker that says `Hello` and `Ready` and then nothing more.
    /// The frames are `Hello { version: 1, variant: "cpu" }` and `Ready { context: 9 }`.
    const FALLS_SILENT: &str = "#!/bin/sh\nprintf '\\011\\012\\007\\010\\001\\022\\003cpu\\004\\032\\002\\010\\011'\nexec sleep 600\n";

    async fn fallen_silent(folder: &std::path::Path) -> Crew {
        let program = folder.join("worker");
        std::fs::write(&program, FALLS_SILENT).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let hardware = Hardware::Processor;
        let spec = Spec { program, weights: "none".into(), context: 1, slots: 1, hardware };
        let mut crew = Crew::default();
        crew.start(&spec).unwrap();
        while crew.ready().is_none() {
            let event = crew.event().await;
            crew.hear(&event);
        }
        crew
    }

    #[tokio::test]
    async fn a_worker_that_is_silent_for_twenty_seconds_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let mut crew = fallen_silent(folder.path()).await;
        (1..SILENCE).for_each(|_| crew.second());
        crew.hear(&WorkerEvent::Beat(Default::default()));
        (1..SILENCE).for_each(|_| crew.second());
        assert!(crew.pid().is_some_and(|pid| wakati_engine::resident_bytes(pid).is_some()), "it may live");
        crew.second();
        let patience = Duration::from_secs(10);
        let gone = tokio::time::timeout(patience, crew.event()).await.expect("it is killed");
        assert_eq!(gone, WorkerEvent::Exited(Exit::Killed));
        crew.hear(&gone);
        assert_eq!(crew.pid(), None);
        crew.end().await;
    }
}
