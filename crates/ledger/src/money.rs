//! Accounts and postings: the only code that moves money.

use sqlx::{AssertSqlSafe, SqliteConnection};
use wakati_protocol::ids::JobId;
use wakati_protocol::money::NanoUsd;
use wakati_protocol::units::UnixMillis;

use crate::error::{CreditError, LedgerError, NotCredited};
use crate::open::{Durable, Ledger};

/// What a consumer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Funds {
    pub available: NanoUsd,
    pub held: NanoUsd,
}

/// The kinds of account. The name is the consumer's or the owner's; the platform's own have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Account<'a> {
    Available(&'a str),
    Held(&'a str),
    Payable(&'a str),
    Fee,
    Absorption,
    Outside,
}

impl<'a> Account<'a> {
    fn parts(self) -> (&'static str, &'a str) {
        match self {
            Self::Available(name) => ("available", name),
            Self::Held(name) => ("held", name),
            Self::Payable(name) => ("payable", name),
            Self::Fee => ("fee", ""),
            Self::Absorption => ("absorption", ""),
            Self::Outside => ("outside", ""),
        }
    }
}

/// A new event; `MAX(id)` is its row for the rest of the transaction, which holds the write lock.
const EVENT: &str = "INSERT INTO events (kind, job, at) VALUES (?, ?, ?);";
/// One posting. The account is made first when it is new: an upsert would check the balance of the row that it
/// proposes, which a payment out of it makes negative.
const POSTING: &str = "
    INSERT INTO accounts (kind, name) VALUES (?, ?) ON CONFLICT DO NOTHING;
    UPDATE accounts SET balance = balance + ? WHERE kind = ? AND name = ?;
    INSERT INTO postings (event, account, amount)
        SELECT (SELECT MAX(id) FROM events), id, ? FROM accounts WHERE kind = ? AND name = ?;";

/// Writes one event. Postings of nothing are left out.
pub(crate) async fn post(
    on: &mut SqliteConnection,
    kind: &'static str,
    job: Option<JobId>,
    at: UnixMillis,
    postings: &[(Account<'_>, NanoUsd)],
) -> Result<(), LedgerError> {
    let sum: i128 = postings.iter().map(|(_, amount)| i128::from(amount.0)).sum();
    if sum != 0 {
        return Err(LedgerError::Wrong(format!("the postings of a {kind} sum to {sum}, not to zero")));
    }
    let real = postings.iter().filter(|(_, amount)| *amount != NanoUsd::ZERO);
    // All in one message to the database's thread: the way there and back costs more than the work.
    let statements = format!("{EVENT}{}", POSTING.repeat(real.clone().count()));
    let mut query = sqlx::query(AssertSqlSafe(statements)).bind(kind).bind(job.map(JobId::to_vec)).bind(at.0);
    for (account, amount) in real {
        let (kind, name) = account.parts();
        query = query.bind(kind).bind(name);
        query = query.bind(amount.0).bind(kind).bind(name);
        query = query.bind(amount.0).bind(kind).bind(name);
    }
    query.execute(on).await?;
    Ok(())
}

pub(crate) async fn funds_of(on: &mut SqliteConnection, consumer: &str) -> Result<Funds, LedgerError> {
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT kind, balance FROM accounts WHERE name = ? AND kind IN ('available', 'held')")
            .bind(consumer)
            .fetch_all(on)
            .await?;
    let mut funds = Funds::default();
    for (kind, balance) in rows {
        match kind.as_str() {
            "available" => funds.available = NanoUsd(balance),
            _ => funds.held = NanoUsd(balance),
        }
    }
    Ok(funds)
}

impl Ledger {
    /// Money comes in (or, below zero, goes out again) for a consumer; the account is made when it is new.
    ///
    /// # Errors
    /// [`CreditError::Refused`] when more would go out than is available, or be there than an account can have.
    pub async fn credit(
        &self,
        consumer: &str,
        amount: NanoUsd,
        at: UnixMillis,
    ) -> Result<Funds, CreditError> {
        let mut write = self.write(Durable::Power).await?;
        sqlx::query("INSERT INTO accounts (kind, name) VALUES ('available', ?) ON CONFLICT DO NOTHING")
            .bind(consumer)
            .execute(write.on())
            .await
            .map_err(LedgerError::from)?;
        let available = funds_of(write.on(), consumer).await?.available;
        match available.0.checked_add(amount.0) {
            None => return Err(CreditError::Refused(NotCredited::TooMuch { available })),
            Some(after) if after < 0 => {
                return Err(CreditError::Refused(NotCredited::Overdrawn { available }));
            }
            Some(_) => {}
        }
        let postings = [(Account::Outside, -amount), (Account::Available(consumer), amount)];
        post(write.on(), "credit", None, at, &postings).await?;
        let after = funds_of(write.on(), consumer).await?;
        write.commit().await?;
        Ok(after)
    }

    /// What a consumer has now.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn funds(&self, consumer: &str) -> Result<Funds, LedgerError> {
        let mut reader = self.readers().acquire().await?;
        funds_of(&mut reader, consumer).await
    }
}
