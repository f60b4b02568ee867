//! The sense of processes, on its own thread.

use std::time::Instant;

use wakati_agent::{Seen, Sense};
use wakati_senses::{Health, OwnersList, Processes, SystemTable};

use super::{Sensed, Tell, sign};
use crate::settings::GameSettings;

/// Looks at the process list as often as the settings say.
pub(super) fn sense(games: &GameSettings) -> impl FnOnce(&mut Tell<'_>) + Send + 'static {
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
            std::thread::sleep(poll);
        }
    }
}
