//! The one task that writes the log, so that the loop never waits for a disk.
//!
//! Records are written in the order in which they were said, so a receipt always finds the end of its attempt.

use ed25519_dalek::SigningKey;
use jiff::tz::TimeZone;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use wakati_protocol::desk::{Figures, HandOver, Shape};
use wakati_protocol::ids::{Attempt, BrokerId, JobId, ModelDigest};
use wakati_protocol::receipt::{self, Receipt, ReceiptAck};
use wakati_protocol::units::{Percent, UnixMillis};
use wakati_store::{AttemptRow, Finished, Kept, SignedReceipt, Store, StoreError};

use crate::clock;
use crate::key::node_id;
use crate::receipts::{self, Disagreement, Known};

/// Records wait here for the disk. When it is full the disk hangs: records are dropped with a warning, and a receipt
/// that is dropped is not acknowledged, so the broker sends it again.
const RECORDS: usize = 1024;
/// Outcomes wait here for the loop, which reads them before anything slow.
const OUTCOMES: usize = 256;

/// What is to be written down.
#[derive(Debug)]
pub enum Record {
    AttemptBegan(AttemptRow),
    AttemptEnded {
        job: JobId,
        attempt: Attempt,
        sent: u32,
        finish: &'static str,
    },
    /// The machine does something else from now on; `status` is JSON.
    Entered {
        shape: Shape,
        status: String,
    },
    SessionBegan {
        broker: BrokerId,
        session: Vec<u8>,
    },
    SessionEnded {
        cause: String,
    },
    HandedOver(HandOver),
    ModelNamed {
        digest: ModelDigest,
        name: String,
    },
    /// The node lives; figures are counted anew.
    Alive,
    /// `live` is what the loop knows of an attempt that still runs.
    Receipt {
        broker: BrokerId,
        receipt: Receipt,
        live: Option<Known>,
    },
}

/// What became of a receipt.
#[derive(Debug)]
pub enum Outcome {
    /// Stored for good: it can be acknowledged.
    Stored { broker: BrokerId, ack: ReceiptAck },
    /// Not agreed with, kept aside, not acknowledged.
    Refused { sequence: u64, cause: Disagreement },
    /// It contradicts one that is stored.
    Conflict { sequence: u64 },
    /// The disk did not take something.
    DiskFailed,
}

/// The loop's end of the journal.
#[derive(Debug)]
pub struct Journal {
    records: mpsc::Sender<Record>,
    pub outcomes: mpsc::Receiver<Outcome>,
    pub figures: watch::Receiver<Option<Figures>>,
    writer: JoinHandle<()>,
}

impl Journal {
    /// Starts the writer.
    #[must_use]
    pub fn start(store: Store, key: SigningKey, zone: TimeZone) -> Self {
        let (records, said) = mpsc::channel(RECORDS);
        let (outcome_in, outcomes) = mpsc::channel(OUTCOMES);
        let (figures_in, figures) = watch::channel(None);
        let writer = Writer { store, key, zone, outcomes: outcome_in, figures: figures_in, session: None };
        Self { records, outcomes, figures, writer: tokio::spawn(writer.run(said)) }
    }

    /// Writes something down, later, in order.
    pub fn write(&self, record: Record) {
        if let Err(error) = self.records.try_send(record) {
            tracing::warn!(%error, "the log is behind; a record is lost");
        }
    }

    /// Writes down everything that was said, and ends.
    pub async fn end(self) {
        drop((self.records, self.outcomes));
        if let Err(error) = self.writer.await {
            tracing::error!(%error, "the journal failed");
        }
    }
}

struct Writer {
    store: Store,
    key: SigningKey,
    zone: TimeZone,
    outcomes: mpsc::Sender<Outcome>,
    figures: watch::Sender<Option<Figures>>,
    session: Option<i64>,
}

impl Writer {
    async fn run(mut self, mut said: mpsc::Receiver<Record>) {
        self.count().await;
        while let Some(record) = said.recv().await {
            let counts = matches!(record, Record::Alive | Record::Receipt { .. } | Record::Entered { .. });
            match self.write(record, clock::now()).await {
                Ok(None) => {}
                // Nobody listens any more when the node ends; the receipt is stored all the same.
                Ok(Some(outcome)) => drop(self.outcomes.send(outcome).await),
                Err(error) => {
                    tracing::error!(%error, "the log cannot be written");
                    let _ = self.outcomes.send(Outcome::DiskFailed).await;
                }
            }
            if counts && said.is_empty() {
                self.count().await;
            }
        }
        let now = clock::now();
        let left = self.store.leave(now).await;
        if let Err(error) = left.and(self.store.still_alive(now).await) {
            tracing::error!(%error, "the log cannot be closed");
        }
        self.store.close().await;
    }

    async fn write(&mut self, record: Record, now: UnixMillis) -> Result<Option<Outcome>, StoreError> {
        match record {
            Record::AttemptBegan(row) => self.store.attempt_began(&row).await?,
            Record::AttemptEnded { job, attempt, sent, finish } => {
                self.store.attempt_ended(job, attempt, sent, finish, now).await?;
            }
            Record::Entered { shape, status } => self.store.enter(shape, &status, now).await?,
            Record::SessionBegan { broker, session } => {
                self.session = Some(self.store.session_began(broker, &session, now).await?);
            }
            Record::SessionEnded { cause } => {
                if let Some(session) = self.session.take() {
                    self.store.session_ended(session, &cause, now).await?;
                }
            }
            Record::HandedOver(hand_over) => self.store.record_hand_over(&hand_over).await?,
            Record::ModelNamed { digest, name } => self.store.name_model(digest, &name).await?,
            Record::Alive => self.store.still_alive(now).await?,
            Record::Receipt { broker, receipt, live } => {
                return self.keep(broker, receipt, live, now).await.map(Some);
            }
        }
        Ok(None)
    }

    /// Checks, stores and signs a receipt.
    async fn keep(
        &self,
        broker: BrokerId,
        receipt: Receipt,
        live: Option<Known>,
        now: UnixMillis,
    ) -> Result<Outcome, StoreError> {
        let sequence = receipt.sequence;
        let known = match live {
            Some(known) => Some(known),
            None => self.recorded(&receipt).await?,
        };
        if let Err(cause) = receipts::check(&receipt, &broker.0, node_id(&self.key), known.as_ref()) {
            // Without the broker's signature it is evidence of nothing.
            if cause != Disagreement::Signature {
                self.store.refuse_receipt(&broker.0, &receipt, &cause.to_string(), now).await?;
            }
            return Ok(Outcome::Refused { sequence, cause });
        }
        let node_signature = receipt::sign(&self.key, &receipt.signed_bytes());
        let signed = SignedReceipt { broker: &broker.0, receipt: &receipt, node_signature: &node_signature };
        Ok(match self.store.keep_receipt(signed, now).await? {
            Kept::New | Kept::Already => {
                Outcome::Stored { broker, ack: ReceiptAck { sequence, node_signature } }
            }
            Kept::Conflict => Outcome::Conflict { sequence },
        })
    }

    async fn recorded(&self, receipt: &Receipt) -> Result<Option<Known>, StoreError> {
        let Ok(job) = JobId::from_slice(&receipt.job) else { return Ok(None) };
        let row = self.store.attempt(job, receipt.attempt).await?;
        Ok(row.map(|row| Known {
            model: row.model.to_vec(),
            first_position: row.first_position,
            sent: (row.finished == Finished::Ended).then_some(row.sent),
            input_tokens: row.input_tokens,
            prices: row.prices,
        }))
    }

    async fn count(&self) {
        match figures(&self.store, &self.zone, clock::now()).await {
            Ok(figures) => drop(self.figures.send_replace(Some(figures))),
            Err(error) => tracing::error!(%error, "the log cannot be read"),
        }
    }
}

/// The four figures of the first page.
async fn figures(store: &Store, zone: &TimeZone, now: UnixMillis) -> Result<Figures, StoreError> {
    let (from, to) = wakati_store::day(now, zone);
    let (first, last) = wakati_store::month(now, zone);
    let served = store.served_ms(from, to, now).await?;
    let passed = now.0.saturating_sub(from.0).max(1).unsigned_abs();
    Ok(Figures {
        today: store.earned(from, to).await?.pay,
        month: store.earned(first, last).await?.pay,
        jobs_today: store.attempts_between(from, to).await?,
        served_today: Percent(u8::try_from(served.min(passed) * 100 / passed).unwrap_or(100)),
        served_today_minutes: u32::try_from(served / 60_000).unwrap_or(u32::MAX),
    })
}
