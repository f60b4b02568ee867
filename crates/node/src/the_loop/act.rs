//! What the agent has decided, done.

use std::time::{Duration, Instant};

use wakati_agent::{Activity, Effect, Hardware, Memory, Observation, Rest, WorkerSeen};
use wakati_protocol::desk::HandOver;
use wakati_protocol::link::YieldReason;
use wakati_protocol::units::MiB;

use super::{Check, Loop};
use crate::journal::Record;
use crate::look::{Attention, MaySleep, Pace, Wanted};
use crate::stopwatch::Stopwatch;

/// After this long the agent is told that memory is still held.
const CHECK_PATIENCE: Duration = Duration::from_secs(3);

impl Loop {
    /// Does what the agent has decided.
    pub(super) fn act(&mut self) {
        while let Some(effect) = self.agent.next_effect() {
            tracing::debug!(?effect, "effect");
            match effect {
                Effect::StopTaking => self.station.stop_taking(),
                Effect::HandBack(reason) => self.hand_back(reason),
                Effect::KillWorker => self.station.kill_worker(),
                Effect::CheckMemory => {
                    self.check =
                        Some(Check { since: Instant::now(), pid: self.station.worker_pid(), gone: None });
                    self.recheck();
                }
                Effect::Warm(hardware) => self.warm(hardware),
                Effect::Offer => self.station.serve(),
                Effect::Rest(_) => {}
                Effect::Finish => self.finished = true,
            }
        }
        self.log_activity();
    }

    fn hand_back(&mut self, reason: YieldReason) {
        let count = self.station.hand_back(reason, &self.inputs.journal);
        let Activity::Yielding(Rest::Game { name, .. }) = self.agent.status().activity else { return };
        if let Some((sign, at)) = self.sign {
            self.stopwatch = Some(Stopwatch::stopped(name, sign, at, count));
        }
    }

    fn warm(&mut self, hardware: Hardware) {
        self.hardware = hardware;
        if let Err(error) = self.station.warm(hardware) {
            tracing::error!(%error, "the worker does not start");
            self.see(Observation::Worker(WorkerSeen::NotStarted));
        }
        self.worker = self.station.worker_pid();
    }

    /// Looks whether the worker is gone and its memory with it. True when the check is over.
    pub(super) fn recheck(&mut self) -> bool {
        let Some((memory, vram_left)) = self.memory() else { return false };
        self.check = None;
        if memory == Memory::Back
            && let Some(stopwatch) = self.stopwatch.take()
        {
            self.handed_over(stopwatch.memory_back(vram_left));
        }
        self.see(Observation::Memory(memory));
        true
    }

    /// What is known of the worker's memory, as soon as it is known; and how much of the GPU's is left with us.
    fn memory(&mut self) -> Option<(Memory, Option<MiB>)> {
        let check = self.check.as_mut()?;
        let late = check.since.elapsed() > CHECK_PATIENCE;
        let runs = self.station.worker_pid().is_some();
        if runs || check.pid.is_some_and(|pid| wakati_engine::resident_bytes(pid).is_some()) {
            return late.then_some((Memory::Held { mebibytes: None }, None));
        }
        // On the processor the process being gone is all there is.
        if self.hardware == Hardware::Processor {
            return Some((Memory::Back, None));
        }
        let gone = *check.gone.get_or_insert_with(|| {
            self.outputs.eyes.look_now();
            Instant::now()
        });
        if self.looked_at < gone {
            // With senses that hang, a process that is gone has to be enough.
            return late.then_some((Memory::Back, None));
        }
        match self.scene.machine.vram_ours {
            None => Some((Memory::Back, None)),
            Some(MiB(0)) => Some((Memory::Back, Some(MiB(0)))),
            Some(left) if late => Some((Memory::Held { mebibytes: Some(left.0) }, Some(left))),
            Some(_) => {
                self.outputs.eyes.look_now();
                None
            }
        }
    }

    fn handed_over(&mut self, hand_over: HandOver) {
        tracing::info!(
            stopped_ms = hand_over.stopped_ms,
            worker_gone_ms = hand_over.worker_gone_ms,
            memory_back_ms = hand_over.memory_back_ms,
            jobs = hand_over.jobs_handed_back,
            "machine handed over"
        );
        self.inputs.journal.write(Record::HandedOver(hand_over.clone()));
        self.scene.last_hand_over = Some(hand_over);
    }

    /// Writes down what the machine does, whenever that changes.
    fn log_activity(&mut self) {
        let activity = self.agent.status().activity;
        if self.logged.as_ref() == Some(&activity) {
            return;
        }
        // Plain data that always has a JSON form.
        let status = serde_json::to_string(&activity).unwrap_or_default();
        self.inputs.journal.write(Record::Entered { shape: activity.shape(), status });
        let sleep = match &activity {
            Activity::Resting(_) | Activity::Off => MaySleep::Yes,
            Activity::Warming { .. }
            | Activity::Serving { .. }
            | Activity::Unreachable { .. }
            | Activity::Yielding(_) => MaySleep::NotYet,
        };
        let pace = match &activity {
            Activity::Resting(Rest::Game { .. }) => Pace::Easy,
            Activity::Resting(_)
            | Activity::Warming { .. }
            | Activity::Serving { .. }
            | Activity::Unreachable { .. }
            | Activity::Yielding(_)
            | Activity::Off => Pace::Watchful,
        };
        let worker = self.worker;
        self.outputs.eyes.want(Wanted { attention: Attention::of(&activity), worker, sleep, pace });
        self.logged = Some(activity);
    }
}
