//! Opening the database: one writer, several readers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Sqlite, SqliteConnection, Transaction};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::error::LedgerError;

/// How long a write waits for another process (an operator's command) before it fails.
const BUSY: Duration = Duration::from_secs(10);
/// Readers at the same time; each costs a thread.
const READERS: u32 = 4;

/// What must be on the disk before a write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    /// Survives the end of this process. A power cut may lose the last of them, always a whole suffix.
    Process,
    /// Survives a power cut, with everything written before.
    Power,
}

/// The books.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// The writers take turns here: SQLite has one at a time, and a queue is fairer and faster than its time-outs.
    turn: Arc<Mutex<()>>,
    fast_writer: SqlitePool,
    sure_writer: SqlitePool,
    readers: SqlitePool,
}

/// A transaction that has the write lock from its start, so that it never fails half way for lack of it.
pub(crate) struct Write {
    transaction: Transaction<'static, Sqlite>,
    _turn: OwnedMutexGuard<()>,
}

impl Write {
    pub(crate) fn on(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }

    pub(crate) async fn commit(self) -> Result<(), LedgerError> {
        Ok(self.transaction.commit().await?)
    }
}

impl Ledger {
    /// Opens the books in this file, and makes them when there are none.
    ///
    /// # Errors
    /// When the file cannot be used or its migrations fail.
    pub async fn open(file: &Path) -> Result<Self, LedgerError> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(BUSY);
        let pool = |most: u32, synchronous| {
            let options = options.clone().synchronous(synchronous);
            SqlitePoolOptions::new().max_connections(most).test_before_acquire(false).connect_with(options)
        };
        let sure_writer = pool(1, SqliteSynchronous::Full).await?;
        sqlx::migrate!().run(&sure_writer).await?;
        let fast_writer = pool(1, SqliteSynchronous::Normal).await?;
        let readers = pool(READERS, SqliteSynchronous::Normal).await?;
        Ok(Self { turn: Arc::default(), fast_writer, sure_writer, readers })
    }

    /// Whether the database answers.
    pub async fn answers(&self) -> bool {
        sqlx::query("SELECT 1").execute(&self.readers).await.is_ok()
    }

    /// Waits for running work and closes the file.
    pub async fn close(&self) {
        self.readers.close().await;
        self.fast_writer.close().await;
        self.sure_writer.close().await;
    }

    pub(crate) fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    pub(crate) async fn write(&self, durable: Durable) -> Result<Write, LedgerError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let writer = match durable {
            Durable::Process => &self.fast_writer,
            Durable::Power => &self.sure_writer,
        };
        let transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
        Ok(Write { transaction, _turn: turn })
    }
}
