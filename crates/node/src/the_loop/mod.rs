//! The one loop. It is the only task that changes the agent, and it never waits for a disk, a socket or a sense.

mod act;
mod hear;
mod silence;

use std::time::{Duration, Instant};

use jiff::Zoned;
use jiff::tz::TimeZone;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use wakati_agent::{Activity, Agent, Hardware, Link, Model, Moment, Observation, Want};
use wakati_engine::WorkerEvent;
use wakati_protocol::desk::Snapshot;
use wakati_protocol::link::Beat;
use wakati_protocol::units::UnixMillis;

use crate::handle::Request;
use crate::journal::{Journal, Outcome, Record};
use crate::link::LinkEvent;
use crate::look::{Orders, Sensed};
use crate::snapshot::Scene;
use crate::station::Station;
use crate::stopwatch::Stopwatch;
use silence::Heard;

/// How often a snapshot is made when nothing else happens.
const SECOND: Duration = Duration::from_secs(1);
/// How often the memory of an ended worker is looked at.
const RECHECK: Duration = Duration::from_millis(10);

/// Everything that can wake the loop.
enum Wake {
    /// The program is told to end.
    Stop,
    /// A sense tells something.
    Sensed(Sensed),
    /// An owner's program wishes something.
    Asked(Request),
    Link(LinkEvent),
    Worker(WorkerEvent),
    /// The log has written something that concerns us.
    Written(Outcome),
    /// The figures have changed.
    Counted,
    /// The agent wanted to be woken now.
    Due,
    /// An ended worker's memory is to be looked at again.
    Recheck,
    /// A second has passed.
    Second,
}

/// What wakes the loop, apart from the worker and time.
pub struct Inputs {
    pub stop: CancellationToken,
    pub requests: mpsc::Receiver<Request>,
    pub link_events: mpsc::Receiver<LinkEvent>,
    pub sensed: mpsc::Receiver<Sensed>,
    pub journal: Journal,
}

/// What the loop tells the rest of the program.
pub struct Outputs {
    pub snapshots: watch::Sender<Snapshot>,
    pub beat: watch::Sender<Beat>,
    pub eyes: Orders,
}

/// The worker's memory is being checked.
struct Check {
    since: Instant,
    pid: Option<u32>,
    /// When the process was found gone, after which the GPU is asked.
    gone: Option<Instant>,
}

/// The loop's state: the agent, its hands, and what is shown.
pub struct Loop {
    agent: Agent,
    station: Station,
    inputs: Inputs,
    outputs: Outputs,
    scene: Scene,
    zone: TimeZone,
    began: Instant,
    seconds: tokio::time::Interval,
    alive: Instant,
    clock_told: Instant,
    /// When the newest look at the GPU began.
    looked_at: Instant,
    /// When the senses were last heard of, or said to be silent.
    heard: Heard,
    /// When the newest look for signs of a game began.
    sign: Option<(Instant, UnixMillis)>,
    stopwatch: Option<Stopwatch>,
    check: Option<Check>,
    /// Where the newest worker runs, or ran.
    hardware: Hardware,
    worker: Option<u32>,
    /// What the log says that the machine does.
    logged: Option<Activity>,
    /// When the program was told to end.
    ending: Option<Instant>,
    finished: bool,
}

impl Loop {
    #[must_use]
    pub fn new(
        agent: Agent,
        station: Station,
        inputs: Inputs,
        outputs: Outputs,
        scene: Scene,
        zone: TimeZone,
    ) -> Self {
        let now = Instant::now();
        let mut seconds = tokio::time::interval(SECOND);
        seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        Self {
            agent,
            station,
            inputs,
            outputs,
            scene,
            zone,
            began: now,
            seconds,
            alive: now,
            clock_told: now,
            looked_at: now,
            heard: Heard::new(now),
            sign: None,
            stopwatch: None,
            check: None,
            hardware: Hardware::Processor,
            worker: None,
            logged: None,
            ending: None,
            finished: false,
        }
    }

    /// Runs until everything is handed back after `stop`, or after the owner's wish to quit.
    pub async fn run(mut self, joined: bool) -> Inputs {
        self.begin(joined);
        while !self.finished {
            let wake = self.wait().await;
            let shows = self.wake(wake);
            self.act();
            if shows {
                self.show();
            }
        }
        let Self { station, inputs, .. } = self;
        station.close(&inputs.journal).await;
        inputs
    }

    fn begin(&mut self, joined: bool) {
        let model = match self.station.serving() {
            Some(serving) => {
                let entry = &serving.model.entry;
                let named = Record::ModelNamed { digest: entry.digest, name: entry.name.clone() };
                self.inputs.journal.write(named);
                Model::Ready { name: entry.name.clone() }
            }
            None => Model::Missing,
        };
        self.see(Observation::Model(model));
        self.see_link(if joined { Link::Dialling } else { Link::NotJoined });
        self.inputs.journal.write(Record::Alive);
        self.see(Observation::Clock(Zoned::now()));
        self.act();
        self.show();
    }

    async fn wait(&mut self) -> Wake {
        let due = self.agent.wake_at().map(|at| self.began + Duration::from_millis(at.0));
        let ending = self.ending.is_some();
        let checking = self.check.is_some();
        let Inputs { stop, requests, link_events, sensed, journal } = &mut self.inputs;
        tokio::select! {
            () = stop.cancelled(), if !ending => Wake::Stop,
            Some(sensed) = sensed.recv() => Wake::Sensed(sensed),
            Some(request) = requests.recv() => Wake::Asked(request),
            Some(event) = link_events.recv() => Wake::Link(event),
            event = self.station.worker_event() => Wake::Worker(event),
            Some(outcome) = journal.outcomes.recv() => Wake::Written(outcome),
            Ok(()) = journal.figures.changed() => Wake::Counted,
            () = sleep_until(due) => Wake::Due,
            () = tokio::time::sleep(RECHECK), if checking => Wake::Recheck,
            _ = self.seconds.tick() => Wake::Second,
        }
    }

    /// Takes in what happened; whether a person may see it.
    fn wake(&mut self, wake: Wake) -> bool {
        match wake {
            Wake::Stop => {
                self.ending = Some(Instant::now());
                // Quitting is refused only while quitting.
                let _ = self.agent.ask(self.now(), Want::Quit);
            }
            Wake::Sensed(sensed) => self.sensed(sensed),
            Wake::Asked(Request { wish, answer }) => self.asked(wish, answer),
            Wake::Link(event) => self.link(event),
            Wake::Worker(event) => return self.worker(event),
            Wake::Written(outcome) => self.written(outcome),
            Wake::Counted => self.scene.figures = *self.inputs.journal.figures.borrow_and_update(),
            Wake::Due => self.agent.tick(self.now()),
            Wake::Recheck => return self.recheck(),
            Wake::Second => self.second(),
        }
        true
    }

    fn now(&self) -> Moment {
        Moment(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn see(&mut self, observation: Observation) {
        self.agent.see(self.now(), observation);
    }

    fn see_link(&mut self, link: Link) {
        self.scene.link = link;
        self.see(Observation::Link(link));
    }

    /// Shows the present to whoever watches.
    fn show(&mut self) {
        let now = Instant::now();
        self.scene.tokens_per_second = self.station.speed.last_minute(now);
        let snapshot = self.scene.snapshot(&self.agent.status(), self.station.active());
        self.outputs.beat.send_replace(self.scene.beat(self.station.active()));
        self.outputs.snapshots.send_if_modified(|shown| {
            let changed = *shown != snapshot;
            *shown = snapshot;
            changed
        });
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
