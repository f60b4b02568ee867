//! What happened, taken in: looks, wishes, the link, the worker, the log and the passing of time.

use std::time::{Duration, Instant};

use jiff::{Timestamp, Zoned};
use tokio::sync::oneshot;
use wakati_agent::{Fault, Link, Observation, Pause, Want, WorkerSeen};
use wakati_engine::WorkerEvent;
use wakati_protocol::desk::{Answer, Denied};

use super::Loop;
use crate::handle::{Wish, local_after, next_morning};
use crate::journal::{Outcome, Record};
use crate::link::LinkEvent;
use crate::look::Sensed;
use crate::{clock, faults};

/// How often the log learns that the node lives. After a power cut this much of a day is uncertain at most.
const ALIVE: Duration = Duration::from_secs(30);
/// How often the agent is told the owner's clock, so that a jump is noticed soon.
const CLOCK: Duration = Duration::from_secs(10);
/// However stuck a worker is, the program ends this long after it was told to.
const END_PATIENCE: Duration = Duration::from_secs(10);

impl Loop {
    pub(super) fn sensed(&mut self, sensed: Sensed) {
        match sensed {
            Sensed::Signs { from, seen, at } => {
                self.heard.signs(from, Instant::now());
                self.sign = Some((at, clock::now()));
                self.see(Observation::Signs(from, seen));
            }
            Sensed::Gpu { gpu, usage, machine, at } => {
                self.heard.gpu(Instant::now());
                self.looked_at = at;
                self.scene.machine = machine;
                self.see(Observation::Gpu(gpu));
                self.see(Observation::GpuUse(usage));
                self.recheck();
            }
            Sensed::Power(power) => self.see(Observation::Power(power)),
            Sensed::Untouched(untouched) => self.see(Observation::Untouched(untouched)),
            Sensed::Sleep(sleep) => {
                self.see(Observation::Clock(Zoned::now()));
                self.see(Observation::Sleep(sleep));
            }
        }
    }

    pub(super) fn asked(&mut self, wish: Wish, answer: oneshot::Sender<Answer>) {
        let want = match wish {
            Wish::Pause { minutes: None } => Want::Pause(Pause::UntilResumed),
            Wish::Pause { minutes: Some(minutes) } => Want::Pause(Pause::For {
                length: Duration::from_secs(u64::from(minutes) * 60),
                until: local_after(minutes, &self.zone),
            }),
            Wish::PauseUntilTomorrow => {
                let now = Timestamp::now().to_zoned(self.zone.clone());
                let until = next_morning(&now);
                let length = Duration::try_from(now.duration_until(&until)).unwrap_or_default();
                Want::Pause(Pause::For { length, until })
            }
            Wish::Resume => Want::Resume,
            Wish::ServeAnyway => Want::ServeAnyway,
            Wish::Quit => {
                self.ending = Some(Instant::now());
                Want::Quit
            }
        };
        let said = match self.agent.ask(self.now(), want) {
            Ok(()) => Answer::Done,
            Err(refused) => Answer::Refused { sentence: self.scene.sentences.refused(&refused) },
        };
        // An asker that has left does not need the answer.
        let _ = answer.send(said);
    }

    pub(super) fn link(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Dialling => self.see_link(Link::Dialling),
            LinkEvent::Joined(joined) => {
                tracing::info!(broker = %joined.broker, "joined");
                self.station.joined(joined, &self.inputs.journal);
                self.see_link(Link::Joined);
            }
            LinkEvent::Refused(refusal) => self.see_link(Link::Refused(faults::of_refusal(&refusal))),
            LinkEvent::Frame(body) => {
                self.station.frame(body, &self.inputs.journal);
                self.see_jobs();
            }
            LinkEvent::Lost { cause } => {
                self.station.lost(cause, &self.inputs.journal);
                self.see_link(Link::Dialling);
                self.see_jobs();
            }
        }
    }

    pub(super) fn worker(&mut self, event: WorkerEvent) -> bool {
        let ends = matches!(event, WorkerEvent::End(_));
        if let WorkerEvent::Hello(hello) = &event {
            let words = hello.enforced.iter();
            self.scene.sandbox = Some(words.filter_map(|word| Denied::of_word(word)).collect());
        }
        let seen = self.station.hear(event, &self.inputs.journal);
        if let (Some(WorkerSeen::Gone), Some(stopwatch)) = (seen, &mut self.stopwatch) {
            stopwatch.worker_gone();
        }
        if let Some(seen) = seen {
            self.see(Observation::Worker(seen));
            self.recheck();
        }
        if ends {
            self.see_jobs();
        }
        ends || seen.is_some()
    }

    fn see_jobs(&mut self) {
        self.see(Observation::Jobs(self.station.active()));
    }

    pub(super) fn written(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Stored { broker, ack } => self.station.acknowledge(broker, ack),
            Outcome::Refused { sequence, cause } => {
                tracing::error!(sequence, %cause, "a receipt is not agreed with");
                self.scene.fault(Fault::ReceiptDisagrees { sequence });
            }
            Outcome::Conflict { sequence } => {
                tracing::error!(sequence, "a receipt contradicts a stored one");
                self.scene.fault(Fault::ReceiptDisagrees { sequence });
            }
            Outcome::DiskFailed => self.scene.fault(Fault::LogUnwritable),
        }
    }

    pub(super) fn second(&mut self) {
        if self.alive.elapsed() >= ALIVE {
            self.alive = Instant::now();
            self.inputs.journal.write(Record::Alive);
        }
        for silent in self.heard.silent(Instant::now(), &self.agent.status().activity) {
            tracing::warn!(?silent, "a sense does not answer");
            self.see(silent);
        }
        if self.clock_told.elapsed() >= CLOCK {
            self.clock_told = Instant::now();
            self.see(Observation::Clock(Zoned::now()));
        }
        if self.ending.is_some_and(|since| since.elapsed() > END_PATIENCE) {
            tracing::error!("the machine could not be handed back in time");
            self.finished = true;
        }
        self.station.second();
        let pid = self.station.worker_pid();
        self.scene.worker_resident = pid.and_then(wakati_engine::resident_bytes);
    }
}
