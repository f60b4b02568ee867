//! The senses of the screen and of the power supply, on one thread.

use std::time::{Duration, Instant};

use wakati_agent::{Power, Seen, Sense};
use wakati_senses::{Screen, ScreenSeen, Supply};

use super::{Sensed, Tell, sign};

const EVERY: Duration = Duration::from_secs(1);

/// Looks at the screen and the power supply every second.
pub(super) fn sense() -> impl FnOnce(&mut Tell<'_>) + Send + 'static {
    |tell| {
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
            std::thread::sleep(EVERY);
        }
    }
}
