//! Everything that the agent knows, and the first reason in it not to serve.

use crate::backoff::Ends;
use crate::fault::Fault;
use crate::in_use::InUse;
use crate::limits::Limits;
use crate::moment::Moment;
use crate::observation::{Gpu, Link, Model};
use crate::pause::Paused;
use crate::rest::Rest;
use crate::room::Room;
use crate::rules::Rules;
use crate::sign::{Seen, Sense};
use crate::status::Hardware;
use crate::want::Refused;

/// What is known, and what follows from it.
#[derive(Debug)]
pub(crate) struct Known {
    pub rules: Rules,
    pub in_use: InUse,
    pub limits: Limits,
    pub paused: Option<Paused>,
    pub gpu: GpuKnown,
    pub link: Link,
    pub model: Model,
    pub ends: Ends,
    pub room: Room,
    /// The worker will not serve until the owner acts.
    pub worker_fault: Option<Fault>,
    pub memory_fault: Option<Fault>,
    pub quitting: bool,
    processes_unreadable: bool,
    gpu_unreadable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GpuKnown {
    NotLooked,
    Present,
    Absent,
}

/// Whether a model is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worker {
    Runs,
    None,
}

impl Known {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            in_use: InUse::default(),
            limits: Limits::new(),
            paused: None,
            gpu: GpuKnown::NotLooked,
            link: Link::NotJoined,
            model: Model::Missing,
            ends: Ends::default(),
            room: Room::default(),
            worker_fault: None,
            memory_fault: None,
            quitting: false,
            processes_unreadable: false,
            gpu_unreadable: false,
        }
    }

    pub(crate) fn see_signs(&mut self, now: Moment, sense: Sense, seen: Seen) {
        if sense == Sense::Processes {
            self.processes_unreadable = seen == Seen::Unreadable;
        }
        self.in_use.see(now, &self.rules, sense, seen);
    }

    pub(crate) fn see_gpu(&mut self, seen: Gpu) {
        self.gpu_unreadable = seen == Gpu::Unreadable;
        self.gpu = match (seen, self.gpu) {
            (Gpu::Present, _) => GpuKnown::Present,
            (Gpu::Absent, _) | (Gpu::Unreadable, GpuKnown::NotLooked) => GpuKnown::Absent,
            (Gpu::Unreadable, known @ (GpuKnown::Present | GpuKnown::Absent)) => known,
        };
    }

    pub(crate) fn see_link(&mut self, link: Link) {
        self.link = match (self.link, link) {
            // A refusal holds until the broker lets us in: loading a model for each new try would be waste.
            (Link::Refused(refusal), Link::Dialling) => Link::Refused(refusal),
            (_, link) => link,
        };
    }

    /// What the owner waits for is not waited for any more.
    pub(crate) fn forget(&mut self) {
        self.paused = None;
        self.worker_fault = None;
        self.ends.forget();
        self.room = Room::default();
        self.in_use.forget_ended();
    }

    /// The owner wants to serve although something is in the way. False when nothing is that may be waved aside.
    pub(crate) fn wave(&mut self, now: Moment) -> bool {
        let game = self.in_use.playing().is_some() && self.in_use.allow();
        let film = self.in_use.film();
        let limit = self.limits.wave(now, &self.rules, film.as_deref());
        game || limit
    }

    /// Lets time pass.
    pub(crate) fn tick(&mut self, now: Moment) {
        self.in_use.tick(now, &self.rules);
        let film = self.in_use.film();
        self.limits.tick(now, &self.rules, film.as_deref());
        self.room.tick(now);
        self.paused.take_if(|paused| paused.ends().is_some_and(|ends| ends <= now));
    }

    /// When something changes by itself.
    pub(crate) fn wake_at(&self, now: Moment) -> Option<Moment> {
        let pause = self.paused.as_ref().and_then(Paused::ends);
        [pause, self.room.wake_at(), self.in_use.wake_at(), self.limits.wake_at(now)]
            .into_iter()
            .flatten()
            .min()
    }

    /// What the worker would run on.
    pub(crate) fn hardware(&self) -> Hardware {
        match self.gpu {
            GpuKnown::Present => Hardware::Gpu,
            GpuKnown::Absent | GpuKnown::NotLooked => Hardware::Processor,
        }
    }

    /// The first reason not to serve, in the order of [`Rest`].
    pub(crate) fn obstacle(&self, now: Moment, worker: Worker) -> Option<Rest> {
        let game = self.in_use.rest();
        if self.quitting {
            Some(Rest::Quitting)
        } else if self.in_use.playing().is_some() {
            game
        } else if let Some(paused) = &self.paused {
            Some(paused.rest())
        } else if self.gpu == GpuKnown::NotLooked {
            Some(Rest::Starting)
        } else if game.is_some() {
            game
        } else if let Some(limit) = self.limits.obstacle(now, &self.rules, self.in_use.film().as_deref()) {
            Some(limit)
        } else if let Some(fault) = self.blocking_fault() {
            Some(Rest::Fault(fault))
        } else if let Some(no_room) = self.room.rest() {
            Some(no_room)
        } else if self.model == Model::Missing {
            Some(Rest::NoModel)
        } else if let Some(rest) = self.link_obstacle(worker) {
            Some(rest)
        } else if self.gpu == GpuKnown::Absent && !self.rules.on_processor {
            Some(Rest::NoGpu)
        } else if self.ends.again_at().is_some_and(|again| again > now) {
            Some(Rest::WorkerEnded)
        } else {
            None
        }
    }

    fn link_obstacle(&self, worker: Worker) -> Option<Rest> {
        match self.link {
            Link::NotJoined => Some(Rest::NotJoined),
            Link::Refused(refusal) => Some(Rest::BrokerRefused(refusal)),
            // A model that is loaded stays so; none is loaded for a broker that is not there.
            Link::Dialling if worker == Worker::None => Some(Rest::Connecting),
            Link::Dialling | Link::Joined => None,
        }
    }

    fn blocking_fault(&self) -> Option<Fault> {
        self.rules.unusable.clone().map(Fault::Setting).or_else(|| self.worker_stays_off())
    }

    /// The worker will not be started until the owner resumes.
    fn worker_stays_off(&self) -> Option<Fault> {
        self.worker_fault.clone().or_else(|| self.ends.fault())
    }

    /// What the owner must know.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let seen = [
            (self.processes_unreadable, Fault::ProcessesUnreadable),
            (self.gpu_unreadable, Fault::GpuUnreadable),
        ];
        let seen = seen.into_iter().filter_map(|(is, fault)| is.then_some(fault));
        // What is wrong with the settings is told by whoever read them.
        self.worker_stays_off().into_iter().chain(self.memory_fault.clone()).chain(seen).collect()
    }

    /// Why there is nothing to resume, if so.
    pub(crate) fn resume_refused(&self) -> Option<Refused> {
        if self.quitting {
            return Some(Refused::Quitting);
        }
        if let Some(game) = self.in_use.playing() {
            return Some(Refused::GameRunning { name: game.name.clone() });
        }
        let something = self.paused.is_some()
            || self.worker_stays_off().is_some()
            || self.room.rest().is_some()
            || self.in_use.quiet_ends().is_some();
        (!something).then_some(Refused::NotPaused)
    }

    pub(crate) fn pause_refused(&self) -> Option<Refused> {
        self.quitting.then_some(Refused::Quitting)
    }
}
