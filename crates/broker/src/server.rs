//! Starting and ending the broker.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt;
use ed25519_dalek::SigningKey;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use wakati_ledger::{Ledger, LedgerError};

use crate::app::{App, Shared};
use crate::clock::now;
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
        "{0} is not on loopback; this build of the broker listens on this machine only (127.0.0.1 or [::1])"
    )]
    NotLoopback(SocketAddr),
    #[error("another broker already serves from this folder")]
    AlreadyServing,
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    #[error("the data folder cannot be used: {0}")]
    Folder(#[from] std::io::Error),
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
    home.create()?;
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(home.lock())?;
    if lock.try_lock().is_err() {
        return Err(ServeError::AlreadyServing);
    }
    let key = broker_key(&home.key())?;
    let ledger = Ledger::open(&home.books()).await?;
    let sign = |bytes: &[u8]| wakati_protocol::receipt::sign(&key, bytes);
    let recovered = ledger.recover(now(), &sign).await?;
    if recovered > 0 {
        tracing::warn!(jobs = recovered, "jobs of an earlier run settled at their last known position");
    }
    let listener = TcpListener::bind(listen).await.map_err(|error| ServeError::Listen(listen, error))?;
    let address = listener.local_addr()?;
    // Whoever waits for the address may use it at once: connections queue in the socket.
    home.write_address(&format!("http://{address}"))?;
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
                tracing::error!(%error, "the models could not be looked at");
            }
            measures::recorder().run_upkeep();
        }
    });
    vec![checkpoints, models]
}

impl Running {
    /// Ends politely: no new work, time for what runs, error frames for what is left, everything joined.
    pub async fn stop(self) {
        let Self { app, http, keepers, .. } = self;
        tracing::info!("draining");
        app.draining.cancel();
        let abort = http.abort_handle();
        let mut http = http;
        if tokio::time::timeout(app.settings.drain, &mut http).await.is_err() {
            tracing::warn!("the time for draining is over; running answers end with an error");
            app.abort.cancel();
            let _ = tokio::time::timeout(LAST_MOMENT, &mut http).await;
        }
        abort.abort();
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
    }
}

/// Reads the broker's key, or makes it.
fn broker_key(file: &Path) -> std::io::Result<SigningKey> {
    match File::open(file) {
        Ok(mut open) => {
            let mut text = String::new();
            open.read_to_string(&mut text)?;
            let mut seed = [0; 32];
            hex::decode_to_slice(text.trim(), &mut seed)
                .map_err(|_| std::io::Error::other(format!("{} is not a key", file.display())))?;
            Ok(SigningKey::from_bytes(&seed))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let mut seed = [0; 32];
            getrandom::fill(&mut seed).map_err(std::io::Error::other)?;
            let mut options = OpenOptions::new();
            options.create_new(true).write(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut new = options.open(file)?;
            new.write_all(hex::encode(seed).as_bytes())?;
            new.sync_all()?;
            Ok(SigningKey::from_bytes(&seed))
        }
        Err(error) => Err(error),
    }
}
