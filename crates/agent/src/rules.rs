//! The owner's rules.

use std::time::Duration;

use wakati_protocol::units::{Celsius, MiB};

use crate::calendar::Calendar;
use crate::fault::SettingProblem;

/// What the owner's settings decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// How long after a game's end serving returns.
    pub quiet: Duration,
    /// The same after a game that only soft signs spoke of: such signs also vanish for a moment.
    pub quiet_after_soft: Duration,
    /// Serve without a supported GPU, on the processor.
    pub on_processor: bool,
    /// Serve while the machine runs on its battery.
    pub on_battery: bool,
    /// Serve beside a film in full screen.
    pub beside_films: bool,
    /// Serve only when nobody has touched the machine for this long; `None` is always.
    pub away: Option<Duration>,
    /// When to serve.
    pub calendar: Calendar,
    /// The GPU is not kept hotter than this.
    pub hottest: Celsius,
    /// GPU memory that stays free for everything else.
    pub reserve: MiB,
    /// A setting that cannot be used and without which nothing may be sold, such as a price.
    pub unusable: Option<SettingProblem>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(30),
            quiet_after_soft: Duration::from_secs(90),
            on_processor: false,
            on_battery: false,
            beside_films: true,
            away: None,
            calendar: Calendar::default(),
            // NVIDIA's consumer boards slow down by themselves from 83 degrees on.
            hottest: Celsius(83),
            reserve: MiB(512),
            unusable: None,
        }
    }
}
