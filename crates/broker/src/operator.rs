//! What an operator does from the command line. All of it works while the broker serves from the same folder.

use std::io;
use std::path::{Path, PathBuf};

use wakati_catalogue::{Entry, ImportError, KeepWeights, Options, import};
use wakati_ledger::{Books, CreditError, Fault, Ledger, LedgerError, NotCredited};
use wakati_protocol::money::NanoUsd;

use crate::clock::now;

pub use crate::report::books_as_text;

/// Letters in a name, at most.
const LONGEST_NAME: usize = 64;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error(
        "this is not a name, so nothing was changed; a name has 1 to {LONGEST_NAME} letters, digits, spaces or . _ - @ +"
    )]
    BadName,
    #[error(
        "{account} has ${available} available, so ${wanted} were not taken back; take back at most what is available"
    )]
    Overdrawn { account: String, available: NanoUsd, wanted: NanoUsd },
    #[error(
        "{account} has ${available} available and cannot have ${wanted} more, so nothing was credited; credit less"
    )]
    TooMuch { account: String, available: NanoUsd, wanted: NanoUsd },
    #[error(transparent)]
    Books(#[from] LedgerError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(
        "the data folder {folder} cannot be used ({cause}), so nothing was changed; check its permissions and disk, or choose another with --data",
        folder = .folder.display()
    )]
    Folder { folder: PathBuf, cause: io::Error },
}

/// The broker's data folder.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

impl Home {
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.0.join("broker.toml")
    }

    pub(crate) fn books(&self) -> PathBuf {
        self.0.join("broker.sqlite")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.0.join("broker.key")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("broker.lock")
    }

    pub(crate) fn models(&self) -> PathBuf {
        self.0.join("models")
    }

    pub(crate) fn create(&self) -> io::Result<()> {
        std::fs::create_dir_all(self.models())?;
        // The books name who pays and who earns: for the operator's eyes.
        #[cfg(unix)]
        std::fs::set_permissions(&self.0, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        Ok(())
    }

    fn create_for_operator(&self) -> Result<(), OperatorError> {
        self.create().map_err(|cause| OperatorError::Folder { folder: self.0.clone(), cause })
    }

    /// Whole or not at all: others read it.
    pub(crate) fn write_address(&self, url: &str) -> io::Result<()> {
        let new = self.0.join("address.new");
        std::fs::write(&new, url)?;
        std::fs::rename(new, self.0.join("address"))
    }

    async fn ledger(&self) -> Result<Ledger, OperatorError> {
        self.create_for_operator()?;
        Ok(Ledger::open(&self.books()).await?)
    }
}

fn name(text: &str) -> Result<&str, OperatorError> {
    let fine = |c: char| c.is_alphanumeric() || " ._-@+".contains(c);
    let length = text.chars().count();
    let sound = (1..=LONGEST_NAME).contains(&length) && text.chars().all(fine) && text.trim() == text;
    if sound { Ok(text) } else { Err(OperatorError::BadName) }
}

/// Imports a GGUF file into the catalogue. The broker needs no weights, only their digest.
///
/// # Errors
/// When the file is no model that can be served.
pub fn add_model(home: &Home, gguf: &Path) -> Result<Entry, OperatorError> {
    home.create_for_operator()?;
    let options = Options { weights: KeepWeights::EntryOnly, ..Options::default() };
    Ok(import(gguf, &home.models(), options)?)
}

/// Makes a key for an account. The key is in the result and nowhere else.
///
/// # Errors
/// When the name is not one or the books cannot be used.
pub async fn create_key(home: &Home, account: &str) -> Result<String, OperatorError> {
    let account = name(account)?;
    let ledger = home.ledger().await?;
    let key = ledger.create_key(account, "made by the operator", now()).await?;
    ledger.close().await;
    Ok(key.reveal().to_owned())
}

/// Credits an account; returns what it has available.
///
/// # Errors
/// When the name is not one, more would be taken than there is, or the books cannot be used.
pub async fn credit(home: &Home, account: &str, amount: NanoUsd) -> Result<NanoUsd, OperatorError> {
    let account = name(account)?;
    let ledger = home.ledger().await?;
    let credited = ledger.credit(account, amount, now()).await;
    ledger.close().await;
    let account = account.to_owned();
    match credited {
        Ok(funds) => Ok(funds.available),
        Err(CreditError::Refused(NotCredited::Overdrawn { available })) => {
            Err(OperatorError::Overdrawn { account, available, wanted: -amount })
        }
        Err(CreditError::Refused(NotCredited::TooMuch { available })) => {
            Err(OperatorError::TooMuch { account, available, wanted: amount })
        }
        Err(CreditError::Failed(error)) => Err(error.into()),
    }
}

/// Makes an invite for one node of an owner.
///
/// # Errors
/// When the name is not one or the books cannot be used.
pub async fn invite(home: &Home, owner: &str) -> Result<String, OperatorError> {
    let owner = name(owner)?;
    let ledger = home.ledger().await?;
    let invite = ledger.invite(owner, now()).await?;
    ledger.close().await;
    Ok(invite.reveal().to_owned())
}

/// Reads the books.
///
/// # Errors
/// When they cannot be used.
pub async fn books(home: &Home) -> Result<Books, OperatorError> {
    let ledger = home.ledger().await?;
    let books = ledger.books().await?;
    ledger.close().await;
    Ok(books)
}

/// Checks the books; an empty list is a clean bill.
///
/// # Errors
/// When they cannot be used.
pub async fn audit(home: &Home) -> Result<Vec<Fault>, OperatorError> {
    let ledger = home.ledger().await?;
    let faults = ledger.audit().await?;
    ledger.close().await;
    Ok(faults)
}
