//! The agent itself: the state machine on top of what is known.

use std::collections::VecDeque;
use std::time::Duration;

use wakati_protocol::units::Percent;

use crate::effect::Effect;
use crate::fault::{Fault, WorkerRefusal};
use crate::known::{Known, Worker};
use crate::moment::Moment;
use crate::observation::{Link, Memory, Model, Observation, WorkerSeen};
use crate::pause::Paused;
use crate::rest::Rest;
use crate::room::Room;
use crate::rules::Rules;
use crate::status::{Activity, Hardware, Status};
use crate::want::{Refused, Want};

/// A worker that shows no progress in loading for this long is taken for hung,
const LOADING_PATIENCE: Duration = Duration::from_secs(600);
/// and one that loads for this long, whatever it shows.
const LOADING_LIMIT: Duration = Duration::from_secs(30 * 60);
/// The worker is killed and its memory checked again after this long without an answer.
const CHECK_LIMIT: Duration = Duration::from_secs(5);
/// And this long after the answer that it still holds memory.
const HELD_WAIT: Duration = Duration::from_secs(1);

/// Decides whether this machine serves. See the crate's diagram.
#[derive(Debug)]
pub struct Agent {
    known: Known,
    state: State,
    /// The newest moment that it was told.
    now: Moment,
    jobs: u32,
    effects: VecDeque<Effect>,
}

#[derive(Debug)]
enum State {
    Resting(Rest),
    Warming { running: Running, loading: Loading },
    Serving(Running),
    Yielding { why: Rest, check_again: Moment },
    Off,
}

/// How far a model has been loaded, and when that is given up.
#[derive(Debug)]
struct Loading {
    bytes: u64,
    loaded: Option<Percent>,
    /// No progress until then, and it is taken for hung.
    give_up: Moment,
    /// It is taken for hung then, whatever it says.
    last: Moment,
}

#[derive(Debug, Clone)]
struct Running {
    model: String,
    hardware: Hardware,
}

impl Loading {
    fn begin(now: Moment) -> Self {
        let (give_up, last) = (now.plus(LOADING_PATIENCE), now.plus(LOADING_LIMIT));
        Self { bytes: 0, loaded: None, give_up, last }
    }

    fn see(&mut self, now: Moment, bytes: u64, of_bytes: u64) {
        let percent = u128::from(bytes) * 100 / u128::from(of_bytes.max(1));
        self.loaded = Some(Percent(percent.min(100) as u8));
        if bytes > self.bytes {
            self.bytes = bytes;
            self.give_up = now.plus(LOADING_PATIENCE);
        }
    }

    fn ends(&self) -> Moment {
        self.give_up.min(self.last)
    }
}

impl Agent {
    /// At rest, until the machine has been looked at.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            known: Known::new(rules),
            state: State::Resting(Rest::Starting),
            now: Moment::default(),
            jobs: 0,
            effects: VecDeque::new(),
        }
    }

    /// Takes in one observation.
    pub fn see(&mut self, now: Moment, observation: Observation) {
        let known = &mut self.known;
        match observation {
            Observation::Signs(sense, seen) => known.see_signs(now, sense, seen),
            Observation::Gpu(seen) => known.see_gpu(seen),
            Observation::GpuUse(seen) => known.limits.see_gpu(now, &known.rules, seen),
            Observation::Power(power) => known.limits.see_power(power),
            Observation::Untouched(untouched) => known.limits.see_untouched(now, &known.rules, untouched),
            Observation::Sleep(sleep) => known.limits.see_sleep(sleep),
            Observation::Clock(local) => {
                known.paused.take_if(|paused| paused.is_over(&local));
                known.limits.see_clock(now, &known.rules, local);
            }
            Observation::Worker(seen) => self.see_worker(now, seen),
            Observation::Memory(seen) => self.see_memory(now, seen),
            Observation::Link(link) => self.see_link(link),
            Observation::Model(model) => known.model = model,
            Observation::Jobs(jobs) => self.jobs = jobs,
        }
        self.tick(now);
    }

    /// Takes in one wish of the owner.
    ///
    /// # Errors
    /// When the wish is not granted; then nothing has changed.
    pub fn ask(&mut self, now: Moment, want: Want) -> Result<(), Refused> {
        match want {
            Want::Pause(pause) => {
                self.known.pause_refused().map_or(Ok(()), Err)?;
                self.known.paused = Some(Paused::begin(now, pause));
            }
            Want::Resume => {
                self.known.resume_refused().map_or(Ok(()), Err)?;
                self.known.forget();
            }
            Want::ServeAnyway => {
                self.known.pause_refused().map_or(Ok(()), Err)?;
                if !self.known.wave(now) {
                    return Err(Refused::NothingToOverride);
                }
            }
            Want::Quit => self.known.quitting = true,
        }
        self.tick(now);
        Ok(())
    }

    /// Lets time pass: call it at [`Agent::wake_at`] at the latest.
    pub fn tick(&mut self, now: Moment) {
        self.now = now;
        self.known.tick(now);
        match &mut self.state {
            State::Warming { loading, .. } if loading.ends() <= now => self.known.ends.add(now),
            State::Yielding { check_again, .. } if *check_again <= now => {
                *check_again = now.plus(CHECK_LIMIT);
                self.effects.extend([Effect::KillWorker, Effect::CheckMemory]);
            }
            State::Resting(_)
            | State::Warming { .. }
            | State::Serving(_)
            | State::Yielding { .. }
            | State::Off => {}
        }
        self.settle(now);
    }

    /// The next thing to do, oldest first.
    pub fn next_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When `tick` changes something by itself, if it ever does.
    #[must_use]
    pub fn wake_at(&self) -> Option<Moment> {
        let state = match &self.state {
            State::Warming { loading, .. } => Some(loading.ends()),
            State::Yielding { check_again, .. } => Some(*check_again),
            State::Resting(Rest::WorkerEnded) => self.known.ends.again_at(),
            State::Resting(_) | State::Serving(_) | State::Off => None,
        };
        [state, self.known.wake_at(self.now)].into_iter().flatten().min()
    }

    /// What the node is doing.
    #[must_use]
    pub fn status(&self) -> Status {
        let at_work = |running: &Running| (running.model.clone(), running.hardware);
        let activity = match &self.state {
            State::Resting(rest) => Activity::Resting(rest.clone()),
            State::Warming { running, .. } => {
                let (model, hardware) = at_work(running);
                Activity::Warming { model, hardware }
            }
            State::Serving(running) => {
                let (model, hardware) = at_work(running);
                match self.known.link {
                    Link::Joined => Activity::Serving { model, hardware },
                    Link::NotJoined | Link::Dialling | Link::Refused(_) => {
                        Activity::Unreachable { model, hardware }
                    }
                }
            }
            State::Yielding { why, .. } => Activity::Yielding(why.clone()),
            State::Off => Activity::Off,
        };
        let loaded = match &self.state {
            State::Warming { loading, .. } => loading.loaded,
            State::Resting(_) | State::Serving(_) | State::Yielding { .. } | State::Off => None,
        };
        Status {
            activity,
            jobs: self.jobs,
            loaded,
            faults: self.known.faults(),
            resume_refused: self.known.resume_refused(),
            pause_refused: self.known.pause_refused(),
        }
    }

    fn see_worker(&mut self, now: Moment, seen: WorkerSeen) {
        match (seen, &mut self.state) {
            (WorkerSeen::Loading { bytes, of_bytes }, State::Warming { loading, .. }) => {
                loading.see(now, bytes, of_bytes);
            }
            (WorkerSeen::Ready, State::Warming { running, .. }) => {
                self.state = State::Serving(running.clone());
                self.known.room = Room::default();
                if self.known.link == Link::Joined {
                    self.effects.push_back(Effect::Offer);
                }
            }
            (
                WorkerSeen::Refused(WorkerRefusal::DoesNotFit { needed_mebibytes, free_mebibytes }),
                State::Warming { .. },
            ) => self.known.room.was_short(now, needed_mebibytes, free_mebibytes),
            (WorkerSeen::Refused(refusal), State::Warming { .. }) => {
                self.known.worker_fault = Some(Fault::WorkerRefused(refusal));
            }
            (WorkerSeen::NotStarted, State::Warming { .. }) => {
                self.known.worker_fault = Some(Fault::WorkerNotStarted)
            }
            (WorkerSeen::Gone, State::Warming { .. } | State::Serving(_)) => self.known.ends.add(now),
            // The last words of a worker that is being killed, or a word that makes no sense now.
            (
                WorkerSeen::Loading { .. }
                | WorkerSeen::Ready
                | WorkerSeen::Refused(_)
                | WorkerSeen::NotStarted
                | WorkerSeen::Gone,
                State::Resting(_) | State::Serving(_) | State::Yielding { .. } | State::Off,
            ) => {}
        }
    }

    fn see_memory(&mut self, now: Moment, seen: Memory) {
        let State::Yielding { why, check_again } = &mut self.state else { return };
        match seen {
            Memory::Back => {
                self.known.memory_fault = None;
                self.state = State::Resting(why.clone());
                match self.obstacle(now) {
                    Some(why) => self.enter_rest(why),
                    None => self.enter_warming(now),
                }
            }
            Memory::Held { mebibytes } => {
                self.known.memory_fault = Some(Fault::MemoryHeld { mebibytes });
                *check_again = now.plus(HELD_WAIT);
            }
        }
    }

    fn see_link(&mut self, link: Link) {
        self.known.see_link(link);
        if link == Link::Joined && matches!(self.state, State::Serving(_)) {
            self.effects.push_back(Effect::Offer);
        }
    }

    /// Goes to the state that follows from what is known.
    fn settle(&mut self, now: Moment) {
        let obstacle = self.obstacle(now);
        match (&mut self.state, obstacle) {
            (State::Resting(_), None) => self.enter_warming(now),
            (State::Resting(Rest::Quitting), _) => {
                self.state = State::Off;
                self.effects.push_back(Effect::Finish);
            }
            (State::Resting(rest), Some(why)) if *rest != why => {
                self.enter_rest(why);
                self.settle(now);
            }
            (State::Warming { .. } | State::Serving(_), Some(why)) => self.enter_yielding(now, why),
            (State::Yielding { why, .. }, Some(newer)) => *why = newer,
            (State::Resting(_) | State::Yielding { .. } | State::Off, _)
            | (State::Warming { .. } | State::Serving(_), None) => {}
        }
    }

    fn obstacle(&self, now: Moment) -> Option<Rest> {
        let worker = match self.state {
            State::Resting(_) | State::Off => Worker::None,
            State::Warming { .. } | State::Serving(_) | State::Yielding { .. } => Worker::Runs,
        };
        self.known.obstacle(now, worker)
    }

    fn enter_rest(&mut self, why: Rest) {
        self.effects.push_back(Effect::Rest(why.clone()));
        self.state = State::Resting(why);
    }

    fn enter_warming(&mut self, now: Moment) {
        let Model::Ready { name } = &self.known.model else { return };
        let hardware = self.known.hardware();
        let running = Running { model: name.clone(), hardware };
        self.state = State::Warming { running, loading: Loading::begin(now) };
        self.effects.push_back(Effect::Warm(hardware));
    }

    fn enter_yielding(&mut self, now: Moment, why: Rest) {
        let reason = why.yield_reason();
        self.effects.extend([
            Effect::StopTaking,
            Effect::HandBack(reason),
            Effect::KillWorker,
            Effect::CheckMemory,
        ]);
        self.jobs = 0;
        self.state = State::Yielding { why, check_again: now.plus(CHECK_LIMIT) };
    }
}
