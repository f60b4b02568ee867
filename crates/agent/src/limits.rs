//! The owner's limits and the state of the machine, as far as they keep it from serving: the GPU's load, memory and
//! heat, power, sleep, the calendar, and the owner's presence.
//!
//! The owner may wave some of them aside (see [`Limit::may_be_waved`]): that holds until the limit ends by itself.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Zoned;
use wakati_protocol::units::Percent;

use crate::moment::Moment;
use crate::observation::{GpuUse, Power, Sleep};
use crate::rest::Rest;
use crate::rules::Rules;
use crate::veto::{Patience, Reading, Veto};

/// Others need the GPU when they keep it busier than this,
const BUSY: Percent = Percent(50);
/// and do not when they keep it no busier than this.
const CALM: Percent = Percent(30);
const LOAD: Patience = Patience { over: Duration::from_secs(10), under: Duration::from_secs(90) };
/// Memory that others have taken is given at once: the next allocation may be a second away.
const MEMORY: Patience = Patience { over: Duration::ZERO, under: Duration::from_secs(90) };
const HEAT: Patience = Patience { over: Duration::from_secs(10), under: Duration::from_secs(60) };
/// The GPU has cooled down when it is so much below its limit.
const COOLER: i32 = 10;

/// What is known of the limits.
#[derive(Debug)]
pub(crate) struct Limits {
    load: Veto,
    memory: Veto,
    heat: Veto,
    power: Power,
    sleep: Sleep,
    /// When the owner counts as away, if nobody touches the machine until then.
    away_at: Option<Moment>,
    window: Option<Window>,
    waved: BTreeSet<Limit>,
}

/// What the owner's calendar said when it was asked last.
#[derive(Debug)]
struct Window {
    asked: Moment,
    local: Zoned,
    is_open: bool,
    /// When that changes.
    edge: Option<Zoned>,
}

impl Window {
    fn ask(asked: Moment, local: Zoned, rules: &Rules) -> Self {
        let (is_open, edge) = rules.calendar.at(&local);
        let edge = edge.map(|edge| edge.to_zoned(local.time_zone().clone()));
        Self { asked, local, is_open, edge }
    }

    fn changes_at(&self) -> Option<Moment> {
        let wait = self.edge.as_ref()?.duration_since(&self.local);
        // Moments are whole milliseconds, and the edge must not lie ahead of them.
        Some(self.asked.plus(Duration::try_from(wait).ok()? + Duration::from_millis(1)))
    }
}

/// One limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    Sleep,
    Film,
    Load,
    Memory,
    Heat,
    Battery,
    Calendar,
    Presence,
}

impl Limit {
    /// In the order in which they are told.
    const ALL: [Self; 8] = [
        Self::Sleep,
        Self::Film,
        Self::Load,
        Self::Memory,
        Self::Heat,
        Self::Battery,
        Self::Calendar,
        Self::Presence,
    ];

    /// What harms the machine or another program is not the owner's to wave aside.
    fn may_be_waved(self) -> bool {
        match self {
            Self::Film | Self::Battery | Self::Calendar | Self::Presence => true,
            Self::Sleep | Self::Load | Self::Memory | Self::Heat => false,
        }
    }
}

impl Limits {
    pub(crate) fn new() -> Self {
        Self {
            load: Veto::new(LOAD),
            memory: Veto::new(MEMORY),
            heat: Veto::new(HEAT),
            power: Power::Mains,
            sleep: Sleep::Awake,
            away_at: None,
            window: None,
            waved: BTreeSet::new(),
        }
    }

    pub(crate) fn see_gpu(&mut self, now: Moment, rules: &Rules, seen: GpuUse) {
        if let Some(others) = seen.others {
            let reading = match others {
                busy if busy > BUSY => Reading::Over,
                calm if calm <= CALM => Reading::Under,
                _ => Reading::Between,
            };
            self.load.see(now, reading);
        }
        if let Some(free) = seen.free {
            let reading = if free < rules.reserve { Reading::Over } else { Reading::Under };
            self.memory.see(now, reading);
        }
        if let Some(temperature) = seen.temperature {
            let reading = match temperature.0 {
                hot if hot >= rules.hottest.0 => Reading::Over,
                cool if cool <= rules.hottest.0 - COOLER => Reading::Under,
                _ => Reading::Between,
            };
            self.heat.see(now, reading);
        }
    }

    pub(crate) fn see_power(&mut self, power: Power) {
        self.power = power;
    }

    pub(crate) fn see_sleep(&mut self, sleep: Sleep) {
        self.sleep = sleep;
    }

    pub(crate) fn see_untouched(&mut self, now: Moment, rules: &Rules, untouched: Duration) {
        self.away_at = rules.away.map(|away| now.plus(away.saturating_sub(untouched)));
    }

    pub(crate) fn see_clock(&mut self, now: Moment, rules: &Rules, local: Zoned) {
        self.window = Some(Window::ask(now, local, rules));
    }

    /// The owner wants to serve although these hold; `film` is told because the signs know it. False when none of
    /// them is in the way.
    pub(crate) fn wave(&mut self, now: Moment, rules: &Rules, film: Option<&str>) -> bool {
        let holding = Limit::ALL.into_iter().filter(|limit| limit.may_be_waved());
        let holding: Vec<_> = holding.filter(|limit| self.rest(*limit, now, rules, film).is_some()).collect();
        self.waved.extend(&holding);
        !holding.is_empty()
    }

    /// Lets time pass.
    pub(crate) fn tick(&mut self, now: Moment, rules: &Rules, film: Option<&str>) {
        if let Some(window) = self.window.take_if(|window| window.changes_at().is_some_and(|at| at <= now)) {
            let local = window.local.saturating_add(now.since(window.asked));
            self.window = Some(Window::ask(now, local, rules));
        }
        let over: Vec<_> = self
            .waved
            .iter()
            .copied()
            .filter(|limit| self.rest(*limit, now, rules, film).is_none())
            .collect();
        self.waved.retain(|limit| !over.contains(limit));
    }

    /// The first limit that is in the way.
    pub(crate) fn obstacle(&self, now: Moment, rules: &Rules, film: Option<&str>) -> Option<Rest> {
        let held = Limit::ALL.into_iter().filter(|limit| !self.waved.contains(limit));
        held.into_iter().find_map(|limit| self.rest(limit, now, rules, film))
    }

    /// When something changes by itself.
    pub(crate) fn wake_at(&self, now: Moment) -> Option<Moment> {
        let away = self.away_at.filter(|at| *at > now);
        let edge = self.window.as_ref().and_then(Window::changes_at);
        [away, edge].into_iter().flatten().min()
    }

    /// Why this limit keeps the machine from serving, if it does.
    fn rest(&self, limit: Limit, now: Moment, rules: &Rules, film: Option<&str>) -> Option<Rest> {
        match limit {
            Limit::Sleep => (self.sleep == Sleep::About).then_some(Rest::Sleeping),
            Limit::Film if rules.beside_films => None,
            Limit::Film => film.map(|name| Rest::Film { name: name.to_owned() }),
            Limit::Load => self.load.holds().then_some(Rest::GpuBusy),
            Limit::Memory => self.memory.holds().then_some(Rest::GpuMemory),
            Limit::Heat => self.heat.holds().then_some(Rest::TooHot { limit: rules.hottest }),
            Limit::Battery => (self.power == Power::Battery && !rules.on_battery).then_some(Rest::OnBattery),
            Limit::Calendar => self.closed(),
            Limit::Presence => {
                let minutes = u32::try_from(rules.away?.as_secs() / 60).unwrap_or(u32::MAX);
                self.away_at.is_some_and(|at| at > now).then_some(Rest::Present { minutes })
            }
        }
    }

    fn closed(&self) -> Option<Rest> {
        let window = self.window.as_ref().filter(|window| !window.is_open)?;
        Some(Rest::Closed { opens: window.edge.as_ref().map(Zoned::datetime) })
    }
}
