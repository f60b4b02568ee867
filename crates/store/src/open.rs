//! Opening the file: settings, migrations, and what happens when it is damaged.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection};

/// SQLite's primary result codes for a damaged file and for one that is no database.
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_NOTADB: i32 = 26;

/// An open log.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: SqlitePool,
}

/// What [`Store::open`] found.
#[derive(Debug)]
pub struct Opened {
    pub store: Store,
    /// Where the damaged file was put, when there was one. The log beside it starts empty, and the broker
    /// sends every receipt again because the highest one stored is 0.
    pub damaged: Option<PathBuf>,
}

/// The log cannot be opened, and setting it aside would not be right either.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the log {path} was written by a newer version of Wakati; update this one", path = .0.display())]
    Newer(PathBuf),
    #[error(
        "the log {path} is damaged; start the node: it keeps the log aside and gets its receipts again from the broker",
        path = .0.display()
    )]
    Damaged(PathBuf),
    #[error("the log {path} cannot be opened: {cause}", path = .path.display())]
    Failed { path: PathBuf, cause: sqlx::Error },
    #[error("the damaged log {path} cannot be set aside: {cause}", path = .path.display())]
    NotSetAside { path: PathBuf, cause: std::io::Error },
    #[error("the log {path} cannot be brought up to date: {cause}", path = .path.display())]
    Migration { path: PathBuf, cause: sqlx::migrate::MigrateError },
}

impl Store {
    /// Opens the log at `path`, makes it if it is not there, and brings it up to date.
    /// A damaged file is renamed to `*.damaged-STAMP` and a new one is begun.
    ///
    /// # Errors
    /// When the file cannot be opened for a reason other than damage, or is from a newer version.
    pub async fn open(path: &Path, stamp: &str) -> Result<Opened, OpenError> {
        match open_sound(path).await {
            Ok(store) => Ok(Opened { store, damaged: None }),
            Err(Unsound::Other(error)) => Err(error),
            Err(Unsound::Damaged) => {
                let aside = set_aside(path, stamp)?;
                match open_sound(path).await {
                    Ok(store) => Ok(Opened { store, damaged: Some(aside) }),
                    Err(Unsound::Other(error)) => Err(error),
                    Err(Unsound::Damaged) => Err(OpenError::Failed {
                        path: path.to_owned(),
                        cause: sqlx::Error::Protocol("a new log is damaged at once".into()),
                    }),
                }
            }
        }
    }

    /// As [`Store::open`], but a damaged file stays where it is.
    ///
    /// # Errors
    /// When the file is damaged, cannot be opened, or is from a newer version.
    pub async fn open_sound(path: &Path) -> Result<Self, OpenError> {
        open_sound(path).await.map_err(|unsound| match unsound {
            Unsound::Damaged => OpenError::Damaged(path.to_owned()),
            Unsound::Other(error) => error,
        })
    }

    /// Closes the file; everything recorded is in it.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

enum Unsound {
    Damaged,
    Other(OpenError),
}

async fn open_sound(path: &Path) -> Result<Store, Unsound> {
    let failed = |cause: sqlx::Error| {
        if is_damage(&cause) {
            Unsound::Damaged
        } else {
            Unsound::Other(OpenError::Failed { path: path.to_owned(), cause })
        }
    };
    let options = options(path);
    check(&options).await.map_err(failed)?;
    // Two connections: the one writer, and a reader that does not wait for its fsync.
    let pool = SqlitePoolOptions::new().max_connections(2).connect_with(options).await.map_err(failed)?;
    sqlx::migrate!("./migrations").run(&pool).await.map_err(|cause| migration_failed(path, cause))?;
    Ok(Store { pool })
}

/// WAL, so that readers never block the writer. Synchronous FULL, because an acknowledged receipt is never sent
/// again: with NORMAL, a power cut could lose the last transactions of the WAL, and with them money.
/// A node writes a few rows a job, so the fsync costs nothing that anybody notices.
fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(5))
}

async fn check(options: &SqliteConnectOptions) -> Result<(), sqlx::Error> {
    let mut connection = options.connect().await?;
    let verdict: String = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut connection).await?;
    connection.close().await?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(sqlx::Error::Decode(Box::new(QuickCheckFailed)))
}

#[derive(Debug, thiserror::Error)]
#[error("the quick check found damage")]
struct QuickCheckFailed;

fn is_damage(error: &sqlx::Error) -> bool {
    if let sqlx::Error::Decode(cause) = error {
        return cause.is::<QuickCheckFailed>();
    }
    let code = error.as_database_error().and_then(|e| e.code()).and_then(|c| c.parse::<i32>().ok());
    // The low byte of an extended result code is the primary one.
    code.is_some_and(|code| matches!(code & 0xff, SQLITE_CORRUPT | SQLITE_NOTADB))
}

fn migration_failed(path: &Path, cause: sqlx::migrate::MigrateError) -> Unsound {
    use sqlx::migrate::MigrateError;
    let path = path.to_owned();
    if let MigrateError::VersionMissing(_) = cause {
        return Unsound::Other(OpenError::Newer(path));
    }
    Unsound::Other(OpenError::Migration { path, cause })
}

/// Renames the file and its companions. The `-wal` may hold the newest rows, so it keeps its name beside the file.
fn set_aside(path: &Path, stamp: &str) -> Result<PathBuf, OpenError> {
    let with = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = with(&format!(".damaged-{stamp}"));
    for companion in ["", "-wal", "-shm"] {
        let from = with(companion);
        let to = with(&format!(".damaged-{stamp}{companion}"));
        match std::fs::rename(&from, &to) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(cause) => return Err(OpenError::NotSetAside { path: from, cause }),
        }
    }
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakati_protocol::units::UnixMillis;

    #[tokio::test]
    async fn a_damaged_log_is_kept_aside_and_a_new_one_begins() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("node.sqlite");
        std::fs::write(&path, vec![b'x'; 8192]).unwrap();
        let opened = Store::open(&path, "20260101T000000Z").await.unwrap();
        let aside = opened.damaged.unwrap();
        assert_eq!(std::fs::read(&aside).unwrap(), vec![b'x'; 8192]);
        assert_eq!(opened.store.receipts_to(&[1; 32], &[2; 32]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_damaged_log_stays_where_it_is_for_who_only_reads() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("node.sqlite");
        std::fs::write(&path, vec![b'x'; 8192]).unwrap();
        assert!(matches!(Store::open_sound(&path).await, Err(OpenError::Damaged(_))));
        assert_eq!(std::fs::read(&path).unwrap(), vec![b'x'; 8192]);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn pages_overwritten_in_the_middle_are_noticed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("node.sqlite");
        let opened = Store::open(&path, "a").await.unwrap();
        for i in 0..200 {
            opened.store.set_meta(&format!("key {i}"), &"v".repeat(200)).await.unwrap();
        }
        opened.store.close().await;
        let mut bytes = std::fs::read(&path).unwrap();
        for byte in &mut bytes[4096..] {
            *byte = 0xa5;
        }
        std::fs::write(&path, bytes).unwrap();
        assert!(Store::open(&path, "b").await.unwrap().damaged.is_some());
    }

    #[tokio::test]
    async fn a_sound_log_is_opened_again_with_its_rows() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("node.sqlite");
        let opened = Store::open(&path, "a").await.unwrap();
        opened.store.still_alive(UnixMillis(7)).await.unwrap();
        opened.store.close().await;
        let again = Store::open(&path, "b").await.unwrap();
        assert!(again.damaged.is_none());
        assert_eq!(again.store.last_alive().await.unwrap(), Some(UnixMillis(7)));
    }

    #[tokio::test]
    async fn a_log_from_a_newer_version_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("node.sqlite");
        let opened = Store::open(&path, "a").await.unwrap();
        sqlx::query(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
             VALUES (9999, 'later', 1, x'00', 0)",
        )
        .execute(&opened.store.pool)
        .await
        .unwrap();
        opened.store.close().await;
        assert!(matches!(Store::open(&path, "b").await, Err(OpenError::Newer(_))));
        assert!(path.exists());
    }
}
