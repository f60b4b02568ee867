//! The hands of the loop: the worker, the session with the broker, and the jobs between them.
//!
//! It does what the agent decided and says what happened; it decides nothing about whether to serve.

use std::path::PathBuf;
use std::time::Instant;

use tokio::sync::mpsc;
use wakati_agent::{Hardware, WorkerRefusal, WorkerSeen};
use wakati_engine::{Model, NotStarted, Spec, WorkerEvent};
use wakati_protocol::ids::{BrokerId, JobId};
use wakati_protocol::job::{End, Finish, Job};
use wakati_protocol::link::{Bye, ModelOffer, Offer, YieldReason, Yielding, to_broker, to_node};
use wakati_protocol::money::Prices;
use wakati_protocol::pipe::{Refused, RefusedReason, to_worker};
use wakati_protocol::receipt::ReceiptAck;
use wakati_protocol::units::MiB;

use crate::clock;
use crate::crew::Crew;
use crate::journal::{Journal, Record};
use crate::link::Joined;
use crate::relay::{self, NotTaken, Over, Relay, Standing};
use crate::speed::Speed;

/// What the node serves, and how.
#[derive(Debug, Clone)]
pub struct Serving {
    pub model: Model,
    pub program: PathBuf,
    pub context: u32,
    pub slots: u32,
    pub prices: Prices,
    /// GPU memory that stays free for other programs.
    pub reserve: MiB,
}

struct Session {
    broker: BrokerId,
    words: mpsc::Sender<to_broker::Body>,
}

/// Worker, session and jobs.
pub struct Station {
    serving: Option<Serving>,
    session: Option<Session>,
    crew: Crew,
    relay: Relay,
    /// Jobs are taken while there is a session.
    taking: bool,
    /// The broker has an offer with a model in it.
    offered: bool,
    pub speed: Speed,
}

impl Station {
    #[must_use]
    pub fn new(serving: Option<Serving>) -> Self {
        Self {
            serving,
            session: None,
            crew: Crew::default(),
            relay: Relay::default(),
            taking: false,
            offered: false,
            speed: Speed::new(Instant::now()),
        }
    }

    #[must_use]
    pub fn serving(&self) -> Option<&Serving> {
        self.serving.as_ref()
    }

    /// Jobs that run now.
    #[must_use]
    pub fn active(&self) -> u32 {
        self.relay.active()
    }

    /// The worker's process, while there is one.
    #[must_use]
    pub fn worker_pid(&self) -> Option<u32> {
        self.crew.pid()
    }

    /// The worker's next event; waits for ever while there is no worker.
    pub async fn worker_event(&mut self) -> WorkerEvent {
        self.crew.event().await
    }

    /// Starts a worker for the model.
    ///
    /// # Errors
    /// When the system does not start it.
    pub fn warm(&mut self, hardware: Hardware) -> Result<(), NotStarted> {
        let Some(Serving { model, program, context, slots, reserve, .. }) = &self.serving else {
            return Ok(());
        };
        let spec = Spec {
            program: program.clone(),
            weights: model.weights.clone(),
            context: *context,
            slots: *slots,
            hardware: match hardware {
                Hardware::Gpu => wakati_engine::Hardware::Gpu { reserve: *reserve },
                Hardware::Processor => wakati_engine::Hardware::Processor,
            },
        };
        self.crew.start(&spec)
    }

    /// Lets jobs come.
    pub fn serve(&mut self) {
        self.taking = true;
        self.offer();
    }

    /// Takes no new job from now on.
    pub fn stop_taking(&mut self) {
        self.taking = false;
    }

    /// Withdraws the offer and hands every running job back, after the last token that the worker has said.
    /// How many there were.
    pub fn hand_back(&mut self, reason: YieldReason, journal: &Journal) -> u32 {
        // Nothing waits behind the last event that is here, and the end of the process is not waited for.
        for event in self.crew.last_words() {
            self.hear(event, journal);
        }
        let (over, handed_back): (Vec<_>, Vec<_>) = self.relay.end_all().into_iter().unzip();
        let count = u32::try_from(over.len()).unwrap_or(u32::MAX);
        if self.offered || count > 0 {
            self.say(to_broker::Body::Yielding(Yielding { reason: reason.into(), handed_back }));
            self.offer();
        }
        over.iter().for_each(|over| self.cancel(over));
        over.iter().for_each(|over| record_end(journal, over, "handed back"));
        if self.crew.pid().is_none() {
            self.relay.worker_gone();
        }
        count
    }

    /// Kills the worker. `WorkerSeen::Gone` follows, if there was one.
    pub fn kill_worker(&mut self) {
        self.crew.kill();
    }

    /// A second has passed: a worker that hangs is killed, and `WorkerSeen::Gone` follows.
    pub fn second(&mut self) {
        self.crew.second();
    }

    /// Ends everything: polite to the broker, sudden to the worker.
    pub async fn close(mut self, journal: &Journal) {
        self.stop_taking();
        self.hand_back(YieldReason::Owner, journal);
        self.say(to_broker::Body::Bye(Bye {}));
        self.crew.end().await;
    }

    /// A session stands.
    pub fn joined(&mut self, joined: Joined, journal: &Journal) {
        let Joined { broker, welcome, words } = joined;
        journal.write(Record::SessionBegan { broker, session: welcome.session });
        self.session = Some(Session { broker, words });
        self.offered = false;
    }

    /// The session is lost: every attempt in it is over at once.
    pub fn lost(&mut self, cause: String, journal: &Journal) {
        self.session = None;
        for (over, _) in self.relay.end_all() {
            self.cancel(&over);
            record_end(journal, &over, "link lost");
        }
        journal.write(Record::SessionEnded { cause });
    }

    /// A frame from the broker.
    pub fn frame(&mut self, body: to_node::Body, journal: &Journal) {
        match body {
            to_node::Body::Job(job) => self.job(job, journal),
            to_node::Body::Credit(credit) if self.relay.runs(&credit.job, credit.attempt) => {
                self.tell(to_worker::Body::Credit(credit))
            }
            to_node::Body::Cancel(cancel) if self.relay.runs(&cancel.job, cancel.attempt) => {
                self.tell(to_worker::Body::Cancel(cancel))
            }
            // They crossed with the attempt's end.
            to_node::Body::Credit(_) | to_node::Body::Cancel(_) => {}
            to_node::Body::Receipt(receipt) => {
                let Some(session) = &self.session else { return };
                let live = self.relay.known(&receipt.job, receipt.attempt);
                journal.write(Record::Receipt { broker: session.broker, receipt, live });
            }
            to_node::Body::Challenge(_)
            | to_node::Body::Welcome(_)
            | to_node::Body::Refuse(_)
            | to_node::Body::Beat(_)
            | to_node::Body::Bye(_) => tracing::warn!("the broker said something out of turn"),
        }
    }

    /// A receipt is stored for good.
    pub fn acknowledge(&mut self, broker: BrokerId, ack: ReceiptAck) {
        // Another broker's receipt is acknowledged when that broker sends it again.
        if self.session.as_ref().is_some_and(|session| session.broker == broker) {
            self.say(to_broker::Body::ReceiptAck(ack));
        }
    }

    /// An event from the worker; what the agent should know of it.
    pub fn hear(&mut self, event: WorkerEvent, journal: &Journal) -> Option<WorkerSeen> {
        self.crew.hear(&event);
        match event {
            WorkerEvent::Hello(hello) => {
                tracing::info!(variant = hello.variant, enforced = ?hello.enforced, "worker says hello");
                None
            }
            WorkerEvent::Loading(loading) => {
                Some(WorkerSeen::Loading { bytes: loading.bytes, of_bytes: loading.of_bytes })
            }
            WorkerEvent::Ready(ready) => {
                tracing::info!(
                    load_ms = ready.load_ms,
                    speed_centi_tps = ready.speed_centi_tps,
                    "worker ready"
                );
                Some(WorkerSeen::Ready)
            }
            WorkerEvent::Refused(refused) => {
                tracing::warn!(reason = ?refused.reason(), detail = refused.detail, "worker refused the model");
                Some(WorkerSeen::Refused(refusal(&refused)))
            }
            WorkerEvent::Tokens(tokens) => {
                if self.relay.tokens(&tokens) {
                    let count = u32::try_from(tokens.ids.len()).unwrap_or(u32::MAX);
                    self.speed.count(count, Instant::now());
                    self.say(to_broker::Body::Tokens(tokens));
                }
                None
            }
            WorkerEvent::End(end) => {
                if let Some(over) = self.relay.ended(&end) {
                    record_end(journal, &over, relay::finish_name(end.finish()));
                    self.say(to_broker::Body::End(end));
                }
                None
            }
            WorkerEvent::Beat(_) => None,
            WorkerEvent::Exited(_) => {
                self.relay.worker_gone();
                Some(WorkerSeen::Gone)
            }
        }
    }

    fn job(&mut self, job: Job, journal: &Journal) {
        let standing = self.standing();
        let admitted = match &standing {
            Some(standing) => self.relay.admit(&job, standing, clock::now()),
            None => Err(NotTaken::Busy),
        };
        let refusal = match admitted {
            Ok(row) => {
                let (id, attempt) = (row.job, row.attempt);
                tracing::info!(job = %id, attempt, input_tokens = row.input_tokens, "job taken");
                journal.write(Record::AttemptBegan(row));
                self.tell(to_worker::Body::Job(job));
                return;
            }
            Err(NotTaken::Unanswerable) => {
                tracing::warn!("the broker sent a job that cannot be answered");
                return;
            }
            Err(NotTaken::Busy) => relay::not_taken(&job, Finish::Busy, ""),
            Err(NotTaken::Refused(detail)) => relay::not_taken(&job, Finish::Refused, detail),
        };
        tracing::info!(job = named(&refusal), finish = ?refusal.finish(), detail = refusal.detail, "job not taken");
        self.say(to_broker::Body::End(refusal));
    }

    /// What stands on offer now, if jobs are taken.
    fn standing(&self) -> Option<Standing> {
        let session = self.session.as_ref().filter(|_| self.taking)?;
        let ready = self.crew.ready()?;
        let serving = self.serving.as_ref()?;
        Some(Standing {
            broker: session.broker,
            model: serving.model.entry.digest,
            prices: serving.prices,
            context: ready.context.min(serving.context),
            vocabulary: ready.vocabulary,
            slots: ready.slots.min(serving.slots),
        })
    }

    /// Says what is on offer now; nothing while no jobs are taken.
    fn offer(&mut self) {
        let speed_centi_tps = self.crew.ready().map_or(0, |ready| ready.speed_centi_tps);
        let models = self.standing().into_iter().map(|standing| ModelOffer {
            model: standing.model.to_vec(),
            context: standing.context,
            slots: standing.slots,
            input_price: standing.prices.input.0,
            output_price: standing.prices.output.0,
            speed_centi_tps,
        });
        let offer = Offer { models: models.collect() };
        self.offered = !offer.models.is_empty();
        self.say(to_broker::Body::Offer(offer));
    }

    fn cancel(&self, over: &Over) {
        self.tell(to_worker::Body::Cancel(relay::cancel(over.name)));
    }

    /// Says something to the worker. One that does not listen is killed; `Exited` follows.
    fn tell(&self, body: to_worker::Body) {
        if let Err(error) = self.crew.tell(body) {
            tracing::error!(%error, "the worker is killed");
            self.crew.kill();
        }
    }

    /// Says something to the broker, if there is a session. A broker that does not read is as good as gone: the
    /// session is dropped, and the link dials again.
    fn say(&mut self, body: to_broker::Body) {
        let Some(session) = &self.session else { return };
        if let Err(error) = session.words.try_send(body) {
            tracing::warn!(%error, "the broker does not read");
            self.session = None;
        }
    }
}

fn record_end(journal: &Journal, over: &Over, finish: &'static str) {
    let (job, attempt) = over.name;
    tracing::info!(job = %job, attempt, sent = over.sent, finish, "attempt over");
    journal.write(Record::AttemptEnded { job, attempt, sent: over.sent, finish });
}

fn named(end: &End) -> String {
    JobId::from_slice(&end.job).map_or_else(|_| String::new(), |job| job.to_string())
}

fn refusal(refused: &Refused) -> WorkerRefusal {
    match refused.reason() {
        RefusedReason::NoFile => WorkerRefusal::NoFile,
        RefusedReason::CorruptFile => WorkerRefusal::CorruptFile,
        RefusedReason::UnknownArchitecture => WorkerRefusal::UnknownArchitecture,
        RefusedReason::DoesNotFit => WorkerRefusal::DoesNotFit {
            needed_mebibytes: MiB::holding(refused.needed_bytes).0,
            free_mebibytes: MiB::holding(refused.free_bytes).0,
        },
        RefusedReason::NoAvx2 => WorkerRefusal::NoAvx2,
        RefusedReason::Engine | RefusedReason::Unknown => WorkerRefusal::Engine,
    }
}
