//! The sense of processes, on its own thread.

use std::time::{Duration, Instant};

use tokio::sync::watch;
use wakati_agent::{Seen, Sense};
use wakati_senses::{Health, OwnersList, Processes, SystemTable};

use super::{Pace, Sensed, Tell, Wanted, sign, wait};
use crate::settings::GameSettings;

/// How often it is looked at while a game runs.
const EASY: Duration = Duration::from_secs(1);

/// Looks at the process list as often as the settings say, and seldom while a game runs.
pub(super) fn sense(
    games: &GameSettings,
    wanted: watch::Receiver<Wanted>,
) -> impl FnOnce(&mut Tell<'_>) + Send + 'static {
    let list = OwnersList::new(&games.programs, &games.not);
    let poll = games.poll;
    move |tell| {
        let mut processes = Processes::<SystemTable>::new(SystemTable::new(), list, std::process::id());
        loop {
            let at = Instant::now();
            let looked = processes.look();
            let seen = match looked.health {
                Health::Works => Seen::Signs(looked.signs.into_iter().map(sign).collect()),
                Health::Failed => Seen::Unreadable,
            };
            if !tell(Sensed::Signs { from: Sense::Processes, seen, at }) {
                return;
            }
            let pace = wanted.borrow().pace;
            let length = match pace {
                Pace::Watchful => poll,
                Pace::Easy => poll.max(EASY),
            };
            wait(&wanted, length);
        }
    }
}
