//! The agent itself: what it knows, and which state follows.

use std::collections::VecDeque;
use std::time::Duration;

use wakati_protocol::units::Percent;

use crate::backoff::Ends;
use crate::effect::Effect;
use crate::fault::Fault;
use crate::games::Games;
use crate::moment::Moment;
use crate::observation::{Gpu, Link, Memory, Model, Observation, Processes, WorkerSeen};
use crate::pause::Paused;
use crate::rest::Rest;
use crate::rules::Rules;
use crate::status::{Activity, Hardware, Status};
use crate::want::{Refused, Want};

/// A worker that shows no progress in loading for this long is taken for hung.
const LOADING_LIMIT: Duration = Duration::from_secs(600);
/// The worker is killed and its memory checked again after this long without an answer.
const CHECK_LIMIT: Duration = Duration::from_secs(5);
/// And this long after the answer that it still holds memory.
const HELD_WAIT: Duration = Duration::from_secs(1);

/// Decides whether this machine serves. See the crate's diagram.
#[derive(Debug)]
pub struct Agent {
    rules: Rules,
    state: State,
    games: Games,
    paused: Option<Paused>,
    gpu: GpuKnown,
    link: Link,
    model: Model,
    ends: Ends,
    /// The worker will not serve until the owner acts.
    worker_fault: Option<Fault>,
    memory_fault: Option<Fault>,
    processes_unreadable: bool,
    gpu_unreadable: bool,
    quitting: bool,
    jobs: u32,
    effects: VecDeque<Effect>,
}

#[derive(Debug)]
enum State {
    Resting(Rest),
    Warming { running: Running, loaded: Option<Percent>, give_up: Moment },
    Serving(Running),
    Yielding { why: Rest, check_again: Moment },
    Off,
}

#[derive(Debug, Clone)]
struct Running {
    model: String,
    hardware: Hardware,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GpuKnown {
    NotLooked,
    Present,
    Absent,
}

impl Agent {
    /// At rest, until the machine has been looked at.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            state: State::Resting(Rest::Starting),
            games: Games::NotLooked,
            paused: None,
            gpu: GpuKnown::NotLooked,
            link: Link::NotJoined,
            model: Model::Missing,
            ends: Ends::default(),
            worker_fault: None,
            memory_fault: None,
            processes_unreadable: false,
            gpu_unreadable: false,
            quitting: false,
            jobs: 0,
            effects: VecDeque::new(),
        }
    }

    /// Takes in one observation.
    pub fn see(&mut self, now: Moment, observation: Observation) {
        match observation {
            Observation::Processes(seen) => {
                self.processes_unreadable = matches!(seen, Processes::Unreadable);
                self.games.see(now, &seen);
            }
            Observation::Gpu(seen) => self.see_gpu(seen),
            Observation::Worker(seen) => self.see_worker(now, seen),
            Observation::Memory(seen) => self.see_memory(now, seen),
            Observation::Link(link) => self.see_link(link),
            Observation::Model(model) => self.model = model,
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
                self.pause_refused().map_or(Ok(()), Err)?;
                self.paused = Some(Paused::begin(now, pause));
            }
            Want::Resume => {
                self.resume_refused().map_or(Ok(()), Err)?;
                self.paused = None;
                self.worker_fault = None;
                self.ends.forget();
                self.games.forget_ended();
            }
            Want::Quit => self.quitting = true,
        }
        self.tick(now);
        Ok(())
    }

    /// Lets time pass: call it at [`Agent::wake_at`] at the latest.
    pub fn tick(&mut self, now: Moment) {
        self.games.tick(now, self.rules.quiet);
        self.paused = self.paused.filter(|paused| paused.ends().is_none_or(|ends| ends > now));
        match &mut self.state {
            State::Warming { give_up, .. } if *give_up <= now => self.ends.add(now),
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
            State::Warming { give_up, .. } => Some(*give_up),
            State::Yielding { check_again, .. } => Some(*check_again),
            State::Resting(Rest::WorkerEnded) => self.ends.again_at(),
            State::Resting(_) | State::Serving(_) | State::Off => None,
        };
        let pause = self.paused.and_then(Paused::ends);
        [state, pause, self.games.quiet_ends(self.rules.quiet)].into_iter().flatten().min()
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
                match self.link {
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
            State::Warming { loaded, .. } => *loaded,
            State::Resting(_) | State::Serving(_) | State::Yielding { .. } | State::Off => None,
        };
        Status {
            activity,
            jobs: self.jobs,
            loaded,
            faults: self.faults(),
            resume_refused: self.resume_refused(),
            pause_refused: self.pause_refused(),
        }
    }

    fn see_gpu(&mut self, seen: Gpu) {
        self.gpu_unreadable = seen == Gpu::Unreadable;
        self.gpu = match (seen, self.gpu) {
            (Gpu::Present, _) => GpuKnown::Present,
            (Gpu::Absent, _) | (Gpu::Unreadable, GpuKnown::NotLooked) => GpuKnown::Absent,
            (Gpu::Unreadable, known @ (GpuKnown::Present | GpuKnown::Absent)) => known,
        };
    }

    fn see_worker(&mut self, now: Moment, seen: WorkerSeen) {
        match (seen, &mut self.state) {
            (WorkerSeen::Loading { bytes, of_bytes }, State::Warming { loaded, give_up, .. }) => {
                let percent = u128::from(bytes) * 100 / u128::from(of_bytes.max(1));
                *loaded = Some(Percent(percent.min(100) as u8));
                *give_up = now.plus(LOADING_LIMIT);
            }
            (WorkerSeen::Ready, State::Warming { running, .. }) => {
                self.state = State::Serving(running.clone());
                if self.link == Link::Joined {
                    self.effects.push_back(Effect::Offer);
                }
            }
            (WorkerSeen::Refused(refusal), State::Warming { .. }) => {
                self.worker_fault = Some(Fault::WorkerRefused(refusal));
            }
            (WorkerSeen::NotStarted, State::Warming { .. }) => {
                self.worker_fault = Some(Fault::WorkerNotStarted)
            }
            (WorkerSeen::Gone, State::Warming { .. } | State::Serving(_)) => self.ends.add(now),
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
                self.memory_fault = None;
                self.state = State::Resting(why.clone());
                match self.obstacle(now) {
                    Some(why) => self.enter_rest(why),
                    None => self.enter_warming(now),
                }
            }
            Memory::Held { mebibytes } => {
                self.memory_fault = Some(Fault::MemoryHeld { mebibytes });
                *check_again = now.plus(HELD_WAIT);
            }
        }
    }

    fn see_link(&mut self, link: Link) {
        self.link = match (self.link, link) {
            // A refusal holds until the broker lets us in: loading a model for each new try would be waste.
            (Link::Refused(refusal), Link::Dialling) => Link::Refused(refusal),
            (_, link) => link,
        };
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

    /// The first reason not to serve, in the order of [`Rest`].
    fn obstacle(&self, now: Moment) -> Option<Rest> {
        let game = self.games.rest(self.rules.quiet);
        if self.quitting {
            Some(Rest::Quitting)
        } else if self.games.running().is_some() {
            game
        } else if let Some(paused) = self.paused {
            Some(paused.rest())
        } else if self.gpu == GpuKnown::NotLooked {
            Some(Rest::Starting)
        } else if game.is_some() {
            game
        } else if let Some(fault) = self.blocking_fault() {
            Some(Rest::Fault(fault))
        } else if self.model == Model::Missing {
            Some(Rest::NoModel)
        } else if let Some(rest) = self.link_obstacle() {
            Some(rest)
        } else if self.gpu == GpuKnown::Absent && !self.rules.on_processor {
            Some(Rest::NoGpu)
        } else if self.ends.again_at().is_some_and(|again| again > now) {
            Some(Rest::WorkerEnded)
        } else {
            None
        }
    }

    fn link_obstacle(&self) -> Option<Rest> {
        match self.link {
            Link::NotJoined => Some(Rest::NotJoined),
            Link::Refused(refusal) => Some(Rest::BrokerRefused(refusal)),
            // A model that is loaded stays so; none is loaded for a broker that is not there.
            Link::Dialling if matches!(self.state, State::Resting(_)) => Some(Rest::Connecting),
            Link::Dialling | Link::Joined => None,
        }
    }

    fn enter_rest(&mut self, why: Rest) {
        self.effects.push_back(Effect::Rest(why.clone()));
        self.state = State::Resting(why);
    }

    fn enter_warming(&mut self, now: Moment) {
        let Model::Ready { name } = &self.model else { return };
        let hardware = match self.gpu {
            GpuKnown::Present => Hardware::Gpu,
            GpuKnown::Absent | GpuKnown::NotLooked => Hardware::Processor,
        };
        let running = Running { model: name.clone(), hardware };
        self.state = State::Warming { running, loaded: None, give_up: now.plus(LOADING_LIMIT) };
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

    fn blocking_fault(&self) -> Option<Fault> {
        self.worker_fault.clone().or_else(|| self.ends.fault())
    }

    fn faults(&self) -> Vec<Fault> {
        let seen = [
            (self.processes_unreadable, Fault::ProcessesUnreadable),
            (self.gpu_unreadable, Fault::GpuUnreadable),
        ];
        let seen = seen.into_iter().filter_map(|(is, fault)| is.then_some(fault));
        self.blocking_fault().into_iter().chain(self.memory_fault.clone()).chain(seen).collect()
    }

    fn resume_refused(&self) -> Option<Refused> {
        if self.quitting {
            return Some(Refused::Quitting);
        }
        if let Some(game) = self.games.running() {
            return Some(Refused::GameRunning { name: game.name.clone() });
        }
        let something = self.paused.is_some()
            || self.blocking_fault().is_some()
            || self.games.quiet_ends(self.rules.quiet).is_some();
        (!something).then_some(Refused::NotPaused)
    }

    fn pause_refused(&self) -> Option<Refused> {
        self.quitting.then_some(Refused::Quitting)
    }
}
