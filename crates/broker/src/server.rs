//! Starting and ending the broker.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use wakati_ledger::{Ledger, LedgerError};

use crate::app::{App, Shared};
use crate::clock::now;
use crate::key::{self, BadKey};
use crate::operator::Home;
use crate::settings::Settings;
use crate::{api, measures};

/// How often the models' folder is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long links and relays may take to end after they were told to.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// Why the broker did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(
        "{0} is not on loopback, so the broker did not start; it listens on this machine only: choose 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    #[error(
        "another broker already serves from {folder}, so this one did not start; stop the other one, or choose another folder with --data",
        folder = .0.display()
    )]
    AlreadyServing(PathBuf),
    #[error(
        "{0} cannot be listened on ({1}), so the broker did not start; choose another address with --listen"
    )]
    Listen(SocketAddr, io::Error),
    #[error(
        "the data folder {folder} cannot be used ({cause}), so the broker did not start; check its permissions and disk, or choose another with --data",
        folder = .folder.display()
    )]
    Folder { folder: PathBuf, cause: io::Error },
    #[error(transparent)]
    Key(#[from] BadKey),
    #[error(transparent)]
    Books(#[from] LedgerError),
}

/// A broker that serves. Ending it is [`Running::stop`]; dropping it is as abrupt as a crash.
pub struct Running {
    pub address: SocketAddr,
    app: Shared,
    http: JoinHandle<std::io::Result<()>>,
    keepers: Vec<JoinHandle<()>>,
    /// Held as long as this process serves.
    _lock: File,
}

/// Starts serving from a data folder.
///
/// # Errors
/// When the address is not on loopback or taken, or the folder or the books cannot be used.
pub async fn start(home: &Home, listen: SocketAddr, settings: Settings) -> Result<Running, ServeError> {
    if !listen.ip().is_loopback() {
        return Err(ServeError::NotLoopback(listen));
    }
    let unusable = |cause| ServeError::Folder { folder: home.folder().to_owned(), cause };
    home.create().map_err(unusable)?;
    let lock = match lock(&home.lock()) {
        Ok(lock) => lock,
        Err(TryLockError::WouldBlock) => return Err(ServeError::AlreadyServing(home.folder().to_owned())),
        Err(TryLockError::Error(cause)) => return Err(unusable(cause)),
    };
    let key = key::load_or_make(&home.key())?;
    let ledger = Ledger::open(&home.books()).await?;
    let sign = |bytes: &[u8]| wakati_protocol::receipt::sign(&key, bytes);
    let recovered = ledger.recover(now(), &sign).await?;
    for (job, error) in &recovered.left {
        tracing::error!(%job, %error, "a job of an earlier run could not be settled; its hold stays");
    }
    if recovered.settled > 0 {
        tracing::warn!(
            jobs = recovered.settled,
            "jobs of an earlier run settled at their last known position"
        );
    }
    let listener = TcpListener::bind(listen).await.map_err(|error| ServeError::Listen(listen, error))?;
    let address = listener.local_addr().map_err(|error| ServeError::Listen(listen, error))?;
    // Whoever waits for the address may use it at once: connections queue in the socket.
    home.write_address(&format!("http://{address}")).map_err(unusable)?;
    measures::recorder();
    let app = Arc::new(App::new(home, settings, ledger, key));
    let keepers = keepers(&app);
    let draining = app.draining.clone();
    let router = api::routes(Arc::clone(&app));
    // Tokens are small and must not wait for one another's acknowledgements (Nagle's algorithm, 40 ms).
    let listener = listener.tap_io(|socket| {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "a socket keeps waiting to fill its packets");
        }
    });
    let http =
        axum::serve(listener, router).with_graceful_shutdown(async move { draining.cancelled().await });
    Ok(Running { address, http: tokio::spawn(http.into_future()), keepers, app, _lock: lock })
}

/// Held while it lives. A file system without locks is an error of its own: two brokers on one folder would settle
/// each other's jobs.
fn lock(file: &Path) -> Result<File, TryLockError> {
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(file);
    let lock = lock.map_err(TryLockError::Error)?;
    lock.try_lock()?;
    Ok(lock)
}

/// The tasks that keep the broker in order while it runs.
fn keepers(app: &Shared) -> Vec<JoinHandle<()>> {
    let writes = Arc::clone(app);
    let checkpoints = tokio::spawn(async move {
        writes.checkpoints.run(&writes.ledger, writes.closing.clone()).await;
    });
    let looks = Arc::clone(app);
    let models = tokio::spawn(async move {
        let mut every = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                _ = every.tick() => {}
                () = looks.closing.cancelled() => return,
            }
            let app = Arc::clone(&looks);
            // Loading a tokenizer takes hundreds of milliseconds.
            if let Err(error) = tokio::task::spawn_blocking(move || app.models.look_again()).await {
                tracing::error!(%error, "the models could not be looked at; the next turn looks again");
            }
            measures::recorder().run_upkeep();
        }
    });
    vec![checkpoints, models, tokio::spawn(crate::open_jobs::keep(Arc::clone(app)))]
}

impl Running {
    /// Ends politely: no new work, time for what runs, error frames for what is left, everything joined.
    pub async fn stop(self) {
        self.stop_or_cut_short(std::future::pending()).await;
    }

    /// As [`Running::stop`]; when `cut_short` comes first, the time for what runs is over.
    pub async fn stop_or_cut_short(self, cut_short: impl Future<Output = ()>) {
        let Self { app, mut http, keepers, .. } = self;
        tracing::info!("draining");
        app.draining.cancel();
        let drained = tokio::select! {
            _ = &mut http => true,
            () = tokio::time::sleep(app.settings.drain) => false,
            () = cut_short => false,
        };
        if !drained {
            tracing::warn!("the time for draining is over; running answers end with an error");
            app.abort.cancel();
            if tokio::time::timeout(LAST_MOMENT, &mut http).await.is_err() {
                http.abort();
                let _ = http.await;
            }
        }
        app.abort.cancel();
        app.closing.cancel();
        app.tasks.close();
        if tokio::time::timeout(LAST_MOMENT, app.tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not end in time; the next start settles their jobs");
        }
        for keeper in keepers {
            let _ = keeper.await;
        }
        app.ledger.close().await;
        tracing::info!("ended");
    }

    /// Ends as a crash would: nothing is settled, nothing is said.
    #[doc(hidden)]
    pub async fn crash(self) {
        self.http.abort();
        for keeper in &self.keepers {
            keeper.abort();
        }
        self.app.crash_relays().await;
        let _ = self.http.await;
        for keeper in self.keepers {
            let _ = keeper.await;
        }
    }
}
