//! Jobs that are open in the books: those that a task of this process works on, and those that nobody does.
//!
//! ```text
//! enter -> worked on ---- ticket dropped ----------> nobody's: settled by the keeper at its last written position
//!              |                                         ^
//!              |                                         | next start
//!              +--- settlement failed -> with its ending, settled by the keeper
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wakati_ledger::{Ending, Finish};
use wakati_protocol::ids::JobId;

use crate::app::{App, Shared};
use crate::clock::now;
use crate::measures;

/// The jobs that somebody in this process answers for.
#[derive(Default)]
pub struct OpenJobs {
    jobs: Arc<Mutex<HashMap<JobId, Stage>>>,
}

#[derive(Clone, Copy)]
enum Stage {
    /// A task holds its ticket.
    WorkedOn,
    /// It is over, and only its settlement is missing.
    Unsettled(Ending),
}

/// Whoever holds it works on the job.
pub struct Ticket {
    jobs: Arc<Mutex<HashMap<JobId, Stage>>>,
    job: JobId,
}

fn lock(jobs: &Mutex<HashMap<JobId, Stage>>) -> MutexGuard<'_, HashMap<JobId, Stage>> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenJobs {
    /// To be called before the job is in the books, so that the keeper never takes it for nobody's.
    pub fn enter(&self, job: JobId) -> Ticket {
        lock(&self.jobs).insert(job, Stage::WorkedOn);
        Ticket { jobs: Arc::clone(&self.jobs), job }
    }

    /// How a job is to be settled; `None` while a task works on it.
    fn ending(&self, job: JobId) -> Option<Ending> {
        match lock(&self.jobs).get(&job) {
            Some(Stage::WorkedOn) => None,
            Some(Stage::Unsettled(ending)) => Some(*ending),
            None => Some(Ending { finish: Finish::Interrupted, delivered: None }),
        }
    }

    fn settled(&self, job: JobId) -> bool {
        lock(&self.jobs).remove(&job).is_some()
    }
}

impl Ticket {
    /// The job is over, but could not be settled: the keeper does it as soon as it can.
    pub fn leave_unsettled(self, ending: Ending) {
        lock(&self.jobs).insert(self.job, Stage::Unsettled(ending));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut jobs = lock(&self.jobs);
        if matches!(jobs.get(&self.job), Some(Stage::WorkedOn)) {
            jobs.remove(&self.job);
        }
    }
}

/// Settles jobs that nobody works on, until the broker ends.
pub async fn keep(app: Shared) {
    let mut every = tokio::time::interval(app.settings.settle_again);
    loop {
        tokio::select! {
            _ = every.tick() => settle_all(&app).await,
            () = app.closing.cancelled() => return,
        }
    }
}

async fn settle_all(app: &App) {
    // Read first: a job that is opened from now on is not among them, and one that is must have been entered before.
    let open = match app.ledger.open_jobs().await {
        Ok(open) => open,
        Err(error) => return tracing::warn!(%error, "the open jobs could not be read; the next turn does"),
    };
    for job in open {
        let Some(ending) = app.open_jobs.ending(job) else { continue };
        match app.ledger.settle(job, ending, now(), &|bytes| app.sign(bytes)).await {
            Ok(settled) => {
                // Its receipts are sent with the next ones that are due.
                tracing::info!(%job, charge = settled.charge.0, "job settled late");
                if app.open_jobs.settled(job) {
                    let finish = ending.finish.word();
                    measures::job_ended(finish, settled.prompt_tokens, settled.completion_tokens);
                }
            }
            Err(error) => tracing::error!(%job, %error, "a job cannot be settled; its hold stays"),
        }
    }
}
