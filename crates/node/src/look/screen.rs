//! The senses of the screen and of the power supply, on one thread.

use std::time::{Duration, Instant};

use tokio::sync::watch;
use wakati_agent::{Power, Seen, Sense};
use wakati_senses::{Screen, ScreenSeen, Supply};

use super::{Pace, Sensed, Tell, Wanted, sign, wait};

const WATCHFUL: Duration = Duration::from_secs(1);
const EASY: Duration = Duration::from_secs(5);

/// Looks at the screen and the power supply every second, and seldom while a game runs.
pub(super) fn sense(wanted: watch::Receiver<Wanted>) -> impl FnOnce(&mut Tell<'_>) + Send + 'static {
    move |tell| {
        let mut screen = Screen::default();
        loop {
            let at = Instant::now();
            let (seen, untouched) = match screen.look() {
                ScreenSeen::Absent => (Seen::Signs(Vec::new()), None),
                ScreenSeen::Unreadable => (Seen::Unreadable, None),
                ScreenSeen::Seen { signs, untouched } => {
                    (Seen::Signs(signs.into_iter().map(sign).collect()), untouched)
                }
            };
            let power = match wakati_senses::supply() {
                Some(Supply::Battery) => Power::Battery,
                Some(Supply::Mains) | None => Power::Mains,
            };
            let told = tell(Sensed::Signs { from: Sense::Screen, seen, at })
                && tell(Sensed::Power(power))
                && untouched.is_none_or(|untouched| tell(Sensed::Untouched(untouched)));
            if !told {
                return;
            }
            let pace = wanted.borrow().pace;
            let length = match pace {
                Pace::Watchful => WATCHFUL,
                Pace::Easy => EASY,
            };
            wait(&wanted, length);
        }
    }
}
