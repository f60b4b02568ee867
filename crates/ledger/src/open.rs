//! Opening the database: one writer, several readers.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Sqlite, SqliteConnection, Transaction};

use crate::error::LedgerError;

/// How long a write waits for another process (an operator's command) before it fails.
const BUSY: Duration = Duration::from_secs(10);
/// How long a write waits for its turn: longer than a disk that still works can stall.
const TURN: Duration = Duration::from_secs(300);
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

impl Durable {
    /// In one message to the database's thread. Within a transaction `synchronous` can no longer be set.
    fn begin(self) -> &'static str {
        match self {
            Self::Process => "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE",
            Self::Power => "PRAGMA synchronous = FULL; BEGIN IMMEDIATE",
        }
    }
}

/// The books.
#[derive(Debug, Clone)]
pub struct Ledger {
    /// One connection, for which writes queue: SQLite has one writer at a time, and a queue is fairer and faster than
    /// its time-outs.
    writer: SqlitePool,
    readers: SqlitePool,
}

/// A transaction that has the write lock from its start, so that it never fails half way for lack of it.
pub(crate) struct Write(Transaction<'static, Sqlite>);

impl Write {
    pub(crate) fn on(&mut self) -> &mut SqliteConnection {
        &mut self.0
    }

    pub(crate) async fn commit(self) -> Result<(), LedgerError> {
        Ok(self.0.commit().await?)
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
        let pool = |most| SqlitePoolOptions::new().max_connections(most).test_before_acquire(false);
        let sure = options.clone().synchronous(SqliteSynchronous::Full);
        let writer = pool(1).acquire_timeout(TURN).connect_with(sure).await?;
        sqlx::migrate!().run(&writer).await?;
        let readers = pool(READERS).connect_with(options).await?;
        Ok(Self { writer, readers })
    }

    /// Whether the database answers.
    pub async fn answers(&self) -> bool {
        sqlx::query("SELECT 1").execute(&self.readers).await.is_ok()
    }

    /// Waits for running work and closes the file.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    pub(crate) fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    pub(crate) async fn write(&self, durable: Durable) -> Result<Write, LedgerError> {
        Ok(Write(self.writer.begin_with(durable.begin()).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_write_is_as_durable_as_it_asks_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("books")).await.unwrap();
        // SQLite's documentation of `PRAGMA synchronous`: 1 is NORMAL, 2 is FULL.
        for (durable, level) in
            [(Durable::Process, 1), (Durable::Power, 2), (Durable::Process, 1), (Durable::Power, 2)]
        {
            let mut write = ledger.write(durable).await.unwrap();
            let found: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(write.on()).await.unwrap();
            assert_eq!(found, level, "{durable:?}");
            write.commit().await.unwrap();
        }
    }

    #[tokio::test]
    async fn writes_queue_and_one_that_is_dropped_changes_nothing_and_lets_the_next_one_in() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("books")).await.unwrap();
        let writes = (0..20).map(|n| {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                let mut write = ledger.write(Durable::Process).await.unwrap();
                sqlx::query("INSERT INTO owners (name, created_at) VALUES (?, 0)")
                    .bind(n.to_string())
                    .execute(write.on())
                    .await
                    .unwrap();
                if n % 2 == 0 {
                    write.commit().await.unwrap();
                }
            })
        });
        for write in writes.collect::<Vec<_>>() {
            write.await.unwrap();
        }
        assert_eq!(ledger.books().await.unwrap().owners.len(), 10);
    }
}
