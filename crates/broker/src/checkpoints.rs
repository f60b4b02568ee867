//! How far each open job has come, written to the books a little behind.
//!
//! Relays only count in memory; one task writes all counts that moved in one transaction. So the disk is at most
//! [`EVERY`] and one write behind what consumers have, and never before it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use wakati_ledger::Ledger;
use wakati_protocol::ids::JobId;

/// At 300 tokens a second in one stream, 32 tokens.
const EVERY: Duration = Duration::from_millis(100);

/// Positions that a consumer has, counted by whoever hands them over.
pub type Delivered = Arc<AtomicU32>;

/// The open jobs of this process.
#[derive(Default)]
pub struct Checkpoints {
    jobs: Mutex<HashMap<JobId, (Delivered, u32)>>,
    opened: Notify,
}

impl Checkpoints {
    pub fn watch(&self, job: JobId, delivered: &Delivered) {
        self.jobs().insert(job, (Arc::clone(delivered), 0));
        self.opened.notify_one();
    }

    pub fn forget(&self, job: JobId) {
        self.jobs().remove(&job);
    }

    /// Writes until `end`.
    pub async fn run(&self, ledger: &Ledger, end: CancellationToken) {
        let turns = async {
            loop {
                let idle = self.jobs().is_empty();
                if idle {
                    self.opened.notified().await;
                }
                tokio::time::sleep(EVERY).await;
                let moved = self.moved();
                if !moved.is_empty()
                    && let Err(error) = ledger.checkpoint(&moved).await
                {
                    tracing::warn!(%error, "positions not written; the next turn writes them");
                    self.write_again(&moved);
                }
            }
        };
        tokio::select! {
            () = turns => {}
            () = end.cancelled() => {}
        }
    }

    fn moved(&self) -> Vec<(JobId, u32)> {
        let mut moved = Vec::new();
        for (job, (delivered, written)) in self.jobs().iter_mut() {
            let now = delivered.load(Ordering::Acquire);
            if now > *written {
                *written = now;
                moved.push((*job, now));
            }
        }
        moved
    }

    fn write_again(&self, moved: &[(JobId, u32)]) {
        let mut jobs = self.jobs();
        for (job, _) in moved {
            if let Some((_, written)) = jobs.get_mut(job) {
                *written = 0;
            }
        }
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<JobId, (Delivered, u32)>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
