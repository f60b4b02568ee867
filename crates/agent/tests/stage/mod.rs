//! Plays an evening to the agent and writes down what it wants done.
//!
//! A script is a row of steps, `WAIT WHAT / WAIT WHAT`: after so long (`30s`, `40m`), this happens.
//! In the meantime the agent is woken exactly when it asked to be.

// Each test program uses its own part of the stage.
#![allow(dead_code)]

use std::time::Duration;

use jiff::Zoned;
use jiff::tz::TimeZone;
use wakati_agent::{
    Agent, BrokerRefusal, Effect, Gpu, GpuUse, Kind, Link, LocalTime, Memory, Model, Moment, Observation,
    Pause, Power, Refused, Rules, Seen, Sense, Sign, Sleep, Want, WorkerRefusal, WorkerSeen,
};
use wakati_protocol::units::{Celsius, MiB, Percent};

pub struct Stage {
    pub agent: Agent,
    pub now: Moment,
}

impl Stage {
    /// A machine without a GPU whose owner lets it use the processor, joined and looked at, before the first look
    /// at the processes.
    pub fn starting() -> Self {
        let rules = Rules { on_processor: true, ..Rules::default() };
        let mut stage = Self { agent: Agent::new(rules), now: Moment(1000) };
        stage.play("0s model / 0s broker / 0s no gpu");
        stage
    }

    /// A machine without a GPU whose owner has these rules, serving.
    pub fn serving_by(rules: Rules) -> Self {
        let mut stage = Self { agent: Agent::new(Rules { on_processor: true, ..rules }), now: Moment(1000) };
        stage.play("0s model / 0s broker / 0s no gpu / 0s quiet / 3s ready");
        stage
    }

    /// The same machine, serving.
    pub fn serving() -> Self {
        let mut stage = Self::starting();
        stage.play("0s quiet / 3s ready");
        stage
    }

    /// The same machine, at rest because this game runs.
    pub fn in_a_game() -> Self {
        let mut stage = Self::serving();
        stage.play("0s game / 1s back");
        stage
    }

    /// Plays a script; what the agent wanted, in order.
    pub fn play(&mut self, script: &str) -> Vec<String> {
        let mut wanted = Vec::new();
        for step in script.split('/').map(str::trim) {
            let (wait, what) = step.split_once(' ').unwrap_or((step, ""));
            let until = self.now.plus(length(wait));
            while let Some(wake) = self.agent.wake_at().filter(|wake| *wake <= until) {
                self.now = self.now.max(wake);
                self.agent.tick(self.now);
                self.drain(&mut wanted);
            }
            self.now = until;
            if let Some(refused) = self.happen(what) {
                wanted.push(format!("refused: {}", name_of(&refused)));
            }
            self.drain(&mut wanted);
        }
        wanted
    }

    fn drain(&mut self, wanted: &mut Vec<String>) {
        while let Some(effect) = self.agent.next_effect() {
            wanted.push(written(&effect));
        }
    }

    fn happen(&mut self, what: &str) -> Option<Refused> {
        let wish = match what {
            "" => return None,
            "pause" => Want::Pause(Pause::UntilResumed),
            "pause 10m" => {
                Want::Pause(Pause::For { length: Duration::from_secs(600), until: clock("2026-07-01T21:30") })
            }
            "resume" => Want::Resume,
            "serve anyway" => Want::ServeAnyway,
            "quit" => Want::Quit,
            seen => {
                self.agent.see(self.now, observation(seen));
                return None;
            }
        };
        self.agent.ask(self.now, wish).err()
    }
}

pub fn observation(what: &str) -> Observation {
    let refusal = WorkerRefusal::DoesNotFit { needed_mebibytes: 9000, free_mebibytes: 4000 };
    match what {
        "game" => processes(&[(Kind::OwnersList, "Elden Ring", 4242)]),
        "other game" => processes(&[(Kind::OwnersList, "Doom", 4343)]),
        "quiet" => processes(&[]),
        "blind" => Observation::Signs(Sense::Processes, Seen::Unreadable),
        "remote play" => processes(&[(Kind::RemotePlay, "Moonlight", 4545)]),
        "game remote play" => {
            processes(&[(Kind::OwnersList, "Elden Ring", 4242), (Kind::RemotePlay, "Moonlight", 4545)])
        }
        "headset" => processes(&[(Kind::VirtualReality, "SteamVR", 4646)]),
        "game folder" => processes(&[(Kind::GameFolder, "Doom", 4343)]),
        "wine" => processes(&[(Kind::Compatibility, "setup", 77)]),
        "wine game folder" => {
            processes(&[(Kind::GameFolder, "Doom", 4343), (Kind::Compatibility, "Doom", 4343)])
        }
        "full screen" => screen(&[(Kind::FullScreen, "Doom", 4343)]),
        "browser full screen" => screen(&[(Kind::FullScreen, "firefox", 99)]),
        "film" => screen(&[(Kind::Film, "mpv", 55)]),
        "desktop" => screen(&[]),
        "game mode" => flag(true),
        "stale game mode" => flag(false),
        "no game mode" => Observation::Signs(Sense::GameMode, Seen::Signs(Vec::new())),
        "game mode blind" => Observation::Signs(Sense::GameMode, Seen::Unreadable),
        "others busy" => gpu_use(GpuUse { others: Some(Percent(51)), ..GpuUse::default() }),
        "others between" => gpu_use(GpuUse { others: Some(Percent(40)), ..GpuUse::default() }),
        "others calm" => gpu_use(GpuUse { others: Some(Percent(3)), ..GpuUse::default() }),
        "vram short" => gpu_use(GpuUse { free: Some(MiB(500)), ..GpuUse::default() }),
        "vram free" => gpu_use(GpuUse { free: Some(MiB(6000)), ..GpuUse::default() }),
        "hot" => gpu_use(GpuUse { temperature: Some(Celsius(83)), ..GpuUse::default() }),
        "warm" => gpu_use(GpuUse { temperature: Some(Celsius(80)), ..GpuUse::default() }),
        "cool" => gpu_use(GpuUse { temperature: Some(Celsius(73)), ..GpuUse::default() }),
        "battery" => Observation::Power(Power::Battery),
        "mains" => Observation::Power(Power::Mains),
        "half past nine" => Observation::Clock(clock("2026-07-01T21:30")),
        "going to sleep" => Observation::Sleep(Sleep::About),
        "awake" => Observation::Sleep(Sleep::Awake),
        "touched" => Observation::Untouched(Duration::ZERO),
        "untouched 4m" => Observation::Untouched(Duration::from_secs(240)),
        "gpu" => Observation::Gpu(Gpu::Present),
        "no gpu" => Observation::Gpu(Gpu::Absent),
        "gpu silent" => Observation::Gpu(Gpu::Unreadable),
        "loading" => Observation::Worker(WorkerSeen::Loading { bytes: 40, of_bytes: 100 }),
        "more loaded" => Observation::Worker(WorkerSeen::Loading { bytes: 60, of_bytes: 100 }),
        "ready" => Observation::Worker(WorkerSeen::Ready),
        "too large" => Observation::Worker(WorkerSeen::Refused(refusal)),
        "no worker" => Observation::Worker(WorkerSeen::NotStarted),
        "gone" => Observation::Worker(WorkerSeen::Gone),
        "back" => Observation::Memory(Memory::Back),
        "held" => Observation::Memory(Memory::Held { mebibytes: Some(300) }),
        "broker" => Observation::Link(Link::Joined),
        "no broker" => Observation::Link(Link::Dialling),
        "never joined" => Observation::Link(Link::NotJoined),
        "not invited" => Observation::Link(Link::Refused(BrokerRefusal::NotInvited)),
        "model" => Observation::Model(Model::Ready { name: "SmolLM2 135M".into() }),
        "no model" => Observation::Model(Model::Missing),
        "two jobs" => Observation::Jobs(2),
        other => panic!("no such thing happens: {other}"),
    }
}

fn processes(signs: &[(Kind, &str, u32)]) -> Observation {
    Observation::Signs(Sense::Processes, seen(signs))
}

fn screen(signs: &[(Kind, &str, u32)]) -> Observation {
    Observation::Signs(Sense::Screen, seen(signs))
}

fn seen(signs: &[(Kind, &str, u32)]) -> Seen {
    let sign = |(kind, name, pid): &(Kind, &str, u32)| Sign {
        kind: *kind,
        name: (*name).into(),
        pid: *pid,
        lives: true,
    };
    Seen::Signs(signs.iter().map(sign).collect())
}

fn flag(lives: bool) -> Observation {
    let sign = Sign { kind: Kind::GameMode, name: "Hades".into(), pid: 66, lives };
    Observation::Signs(Sense::GameMode, Seen::Signs(vec![sign]))
}

fn gpu_use(seen: GpuUse) -> Observation {
    Observation::GpuUse(seen)
}

/// A local time, in a zone without summer.
pub fn clock(local: &str) -> Zoned {
    let local: LocalTime = local.parse().expect("a local time");
    local.to_zoned(TimeZone::UTC).expect("a time that UTC has")
}

fn length(wait: &str) -> Duration {
    let (number, unit) = wait.split_at(wait.len() - 1);
    let number: u64 = number.parse().expect("a wait is a number and a unit");
    Duration::from_secs(match unit {
        "s" => number,
        "m" => number * 60,
        other => panic!("no such unit: {other}"),
    })
}

/// An effect in a few words.
pub fn written(effect: &Effect) -> String {
    match effect {
        Effect::StopTaking => "stop taking".into(),
        Effect::HandBack(reason) => format!("hand back: {reason:?}"),
        Effect::KillWorker => "kill worker".into(),
        Effect::CheckMemory => "check memory".into(),
        Effect::Warm(hardware) => format!("warm: {}", name_of(hardware)),
        Effect::Offer => "offer".into(),
        Effect::Rest(rest) => format!("rest: {}", name_of(rest)),
        Effect::Finish => "finish".into(),
    }
}

/// The name of an enum's variant.
fn name_of(value: &impl std::fmt::Debug) -> String {
    let all = format!("{value:?}");
    all.split([' ', '(', '{']).next().unwrap_or_default().into()
}

/// Plays a script and compares; both sides may be read aloud.
#[track_caller]
pub fn row(mut stage: Stage, script: &str, wanted: &[&str]) {
    assert_eq!(stage.play(script), wanted, "{script}");
}
