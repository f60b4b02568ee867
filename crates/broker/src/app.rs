//! What all parts of the running broker share.

use std::sync::Arc;

use ed25519_dalek::SigningKey;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wakati_ledger::Ledger;
use wakati_protocol::ids::BrokerId;

use crate::checkpoints::Checkpoints;
use crate::hub::Hub;
use crate::models::Models;
use crate::open_jobs::OpenJobs;
use crate::operator::Home;
use crate::settings::Settings;

/// The running broker.
pub struct App {
    pub settings: Settings,
    pub ledger: Ledger,
    pub models: Models,
    pub hub: Hub,
    pub checkpoints: Checkpoints,
    pub open_jobs: OpenJobs,
    pub key: SigningKey,
    /// No new job is taken.
    pub draining: CancellationToken,
    /// Running jobs end now, with an error frame.
    pub abort: CancellationToken,
    /// Relays stop where they stand, as a crash would stop them. Only tests use it.
    pub crash: CancellationToken,
    /// Links end.
    pub closing: CancellationToken,
    /// Relays and links; all are waited for at the end.
    pub tasks: TaskTracker,
}

/// Everybody's handle on it.
pub type Shared = Arc<App>;

impl App {
    /// A broker that has its books open, and nothing else yet.
    pub fn new(home: &Home, settings: Settings, ledger: Ledger, key: SigningKey) -> Self {
        Self {
            models: Models::open(home.models()),
            hub: Hub::new(rand::random(), settings.beat),
            settings,
            ledger,
            checkpoints: Checkpoints::default(),
            open_jobs: OpenJobs::default(),
            key,
            draining: CancellationToken::new(),
            abort: CancellationToken::new(),
            crash: CancellationToken::new(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    pub fn id(&self) -> BrokerId {
        BrokerId(self.key.verifying_key().to_bytes())
    }

    /// The broker's signature.
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        wakati_protocol::receipt::sign(&self.key, bytes)
    }

    /// Stops all tasks where they stand.
    pub async fn crash_relays(&self) {
        self.crash.cancel();
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
