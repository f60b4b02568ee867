//! Who may do what: consumers' keys, owners, their nodes and the invites by which nodes join.

use sha2::{Digest, Sha256};
use sqlx::SqliteConnection;
use wakati_protocol::ids::NodeId;
use wakati_protocol::units::UnixMillis;

use crate::error::LedgerError;
use crate::open::{Durable, Ledger};

/// A secret that is shown once and stored as a hash only. It has no `Debug` and no `Display` by design.
pub struct Secret(String);

impl Secret {
    fn new(prefix: &str) -> Result<Self, LedgerError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| LedgerError::NoChance)?;
        Ok(Self(format!("{prefix}{}", hex::encode(bytes))))
    }

    /// The secret itself, to print it for the person who asked for it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// The holder of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumer {
    /// The key's row.
    pub key: i64,
    pub account: String,
}

/// Whether a node may join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// It belongs to this owner, from now on or already.
    Owner(String),
    /// It is not registered and showed no invite.
    NotInvited,
    /// There is no such invite, or another node has used it.
    BadInvite,
}

fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}

async fn owner_of(on: &mut SqliteConnection, node: &NodeId) -> Result<Option<String>, LedgerError> {
    Ok(sqlx::query_scalar("SELECT o.name FROM nodes n JOIN owners o ON o.id = n.owner WHERE n.key = ?")
        .bind(node.to_vec())
        .fetch_optional(on)
        .await?)
}

/// The owner whose unused invite this is.
async fn invited_by(on: &mut SqliteConnection, invite: &str) -> Result<Option<i64>, LedgerError> {
    Ok(sqlx::query_scalar("SELECT owner FROM invites WHERE hash = ? AND used_by IS NULL")
        .bind(hash(invite))
        .fetch_optional(on)
        .await?)
}

impl Ledger {
    /// Makes a key for an account.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn create_key(&self, account: &str, name: &str, at: UnixMillis) -> Result<Secret, LedgerError> {
        let secret = Secret::new("wk-")?;
        let mut write = self.write(Durable::Power).await?;
        sqlx::query("INSERT INTO keys (hash, account, name, created_at) VALUES (?, ?, ?, ?)")
            .bind(hash(secret.reveal()))
            .bind(account)
            .bind(name)
            .bind(at.0)
            .execute(write.on())
            .await?;
        write.commit().await?;
        Ok(secret)
    }

    /// Whose key this is; `None` for an unknown or revoked one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn holder(&self, key: &str) -> Result<Option<Consumer>, LedgerError> {
        let row: Option<(i64, String)> =
            sqlx::query_as("SELECT id, account FROM keys WHERE hash = ? AND revoked_at IS NULL")
                .bind(hash(key))
                .fetch_optional(self.readers())
                .await?;
        Ok(row.map(|(key, account)| Consumer { key, account }))
    }

    /// Makes an invite with which one node of this owner can join. The owner is made when new.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn invite(&self, owner: &str, at: UnixMillis) -> Result<Secret, LedgerError> {
        let secret = Secret::new("wi-")?;
        let mut write = self.write(Durable::Power).await?;
        let owner: i64 = sqlx::query_scalar(
            "INSERT INTO owners (name, created_at) VALUES (?, ?)
             ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id",
        )
        .bind(owner)
        .bind(at.0)
        .fetch_one(write.on())
        .await?;
        sqlx::query("INSERT INTO invites (hash, owner, created_at) VALUES (?, ?, ?)")
            .bind(hash(secret.reveal()))
            .bind(owner)
            .bind(at.0)
            .execute(write.on())
            .await?;
        write.commit().await?;
        Ok(secret)
    }

    /// Lets a node in: one that is registered, or one with an unused invite, which it uses up.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn admit(&self, node: &NodeId, invite: &str, at: UnixMillis) -> Result<Admission, LedgerError> {
        let mut reader = self.readers().acquire().await?;
        if let Some(owner) = owner_of(&mut reader, node).await? {
            return Ok(Admission::Owner(owner));
        }
        if invite.is_empty() {
            return Ok(Admission::NotInvited);
        }
        // Whoever guesses invites waits for nobody's write, and nobody for theirs.
        if invited_by(&mut reader, invite).await?.is_none() {
            return Ok(Admission::BadInvite);
        }
        drop(reader);
        let mut write = self.write(Durable::Power).await?;
        // Another node may have used it since.
        let Some(owner) = invited_by(write.on(), invite).await? else { return Ok(Admission::BadInvite) };
        sqlx::query("INSERT INTO nodes (key, owner, registered_at) VALUES (?, ?, ?)")
            .bind(node.to_vec())
            .bind(owner)
            .bind(at.0)
            .execute(write.on())
            .await?;
        sqlx::query("UPDATE invites SET used_by = ?, used_at = ? WHERE hash = ?")
            .bind(node.to_vec())
            .bind(at.0)
            .bind(hash(invite))
            .execute(write.on())
            .await?;
        let name = owner_of(write.on(), node).await?.unwrap_or_default();
        write.commit().await?;
        Ok(Admission::Owner(name))
    }
}
