//! The audit: every rule of the books checked again, on a live database.

use serde::Serialize;
use sqlx::AssertSqlSafe;

use crate::error::LedgerError;
use crate::open::Ledger;

/// A rule that does not hold, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub rule: &'static str,
    /// Which rows, as the database names them.
    pub place: String,
}

/// Each query returns one text for each row that breaks the rule.
const RULES: [(&str, &str); 11] = [
    (
        "the postings of every event sum to zero",
        "SELECT 'event ' || event FROM postings GROUP BY event HAVING SUM(amount) <> 0",
    ),
    (
        "every balance is the sum of its postings",
        "SELECT kind || ' ' || name FROM accounts a
         WHERE balance <> COALESCE((SELECT SUM(amount) FROM postings WHERE account = a.id), 0)",
    ),
    (
        "nothing below zero but what comes from outside or is absorbed",
        "SELECT kind || ' ' || name FROM accounts
         WHERE balance < 0 AND kind NOT IN ('outside', 'absorption')",
    ),
    (
        "charge + absorption = pay + fee in every settled job",
        "SELECT 'job ' || hex(id) FROM jobs j WHERE state = 'settled' AND charge + absorption <>
         fee + COALESCE((SELECT SUM(pay) FROM attempts WHERE job = j.id), 0)",
    ),
    (
        "a charge is what was captured, within its hold",
        "SELECT 'job ' || hex(j.id) FROM jobs j JOIN holds h ON h.job = j.id
         WHERE j.state = 'settled' AND (j.charge <> h.captured OR h.captured > h.amount OR h.state = 'open')",
    ),
    (
        "an open job has an open hold",
        "SELECT 'job ' || hex(j.id) FROM jobs j LEFT JOIN holds h ON h.job = j.id
         WHERE j.state = 'open' AND (h.state IS NULL OR h.state <> 'open')",
    ),
    (
        "what is held is the sum of the open holds",
        "SELECT 'held ' || a.name FROM accounts a WHERE a.kind = 'held' AND a.balance <> COALESCE(
         (SELECT SUM(h.amount) FROM holds h JOIN jobs j ON j.id = h.job
          WHERE j.account = a.name AND h.state = 'open'), 0)",
    ),
    (
        "the positions of the attempts are the job's, each once",
        "SELECT 'job ' || hex(j.id) FROM jobs j WHERE j.state = 'settled' AND j.delivered <>
         COALESCE((SELECT SUM(positions) FROM attempts WHERE job = j.id), 0)",
    ),
    (
        "an owner's balance is the pay of all their nodes",
        "SELECT 'owner ' || o.name FROM owners o WHERE
         COALESCE((SELECT balance FROM accounts WHERE kind = 'payable' AND name = o.name), 0) <>
         COALESCE((SELECT SUM(t.pay) FROM attempts t JOIN nodes n ON n.key = t.node WHERE n.owner = o.id), 0)",
    ),
    (
        "every paid attempt has its receipt",
        "SELECT 'job ' || hex(t.job) || ' attempt ' || t.attempt FROM attempts t
         LEFT JOIN receipts r ON r.job = t.job AND r.attempt = t.attempt
         WHERE t.pay > 0 AND r.sequence IS NULL",
    ),
    (
        "the receipts of a node are numbered without a gap",
        "SELECT 'node ' || hex(n.key) FROM nodes n WHERE n.sequence <>
         (SELECT COUNT(*) FROM receipts WHERE node = n.key)",
    ),
];

impl Ledger {
    /// Checks every rule and lists what does not hold. An empty list is a clean bill.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn audit(&self) -> Result<Vec<Fault>, LedgerError> {
        let mut at_once = self.readers().begin().await?;
        let mut faults = Vec::new();
        for (rule, query) in RULES {
            // The text is one of the constants above.
            let places: Vec<String> =
                sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(&mut *at_once).await?;
            faults.extend(places.into_iter().map(|place| Fault { rule, place }));
        }
        Ok(faults)
    }
}
