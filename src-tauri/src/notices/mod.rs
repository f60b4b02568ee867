//! Notices: which snapshots are worth one, and the way to the desktop.

mod etiquette;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::civil::Date;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};
use wakati_protocol::desk::{Shape, Snapshot};

use crate::labels::Labels;
use etiquette::{Etiquette, Kind, Notice};

/// What is remembered from one run to the next.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Memory {
    /// The last day on which each kind was shown.
    #[serde(default)]
    shown: BTreeMap<Kind, Date>,
    /// Whether the first hand-over ever has been told or missed.
    #[serde(default)]
    handed_over_once: bool,
}

/// Watches the snapshots and tells the owner the few things worth a notice.
#[derive(Debug)]
pub struct Notices {
    etiquette: Etiquette,
    handed_over_once: bool,
    needs_you: bool,
    file: PathBuf,
}

impl Notices {
    /// Goes on where the last run ended. A memory that cannot be read costs one notice too many, and is replaced.
    pub fn remembered(file: PathBuf) -> Self {
        let memory: Memory =
            std::fs::read(&file).ok().and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
        Self {
            etiquette: Etiquette::new(memory.shown),
            handed_over_once: memory.handed_over_once,
            needs_you: false,
            file,
        }
    }

    /// Takes note of a snapshot.
    pub fn see(&mut self, snapshot: &Snapshot, now: Timestamp) {
        self.etiquette.game(snapshot.game.is_some(), now);
        let needs_you = snapshot.shape == Shape::NeedsYou;
        if needs_you && !self.needs_you {
            let notice = Notice { title: snapshot.sentence.clone(), body: snapshot.reason.clone() };
            self.etiquette.offer(Kind::NeedsYou, notice);
        } else if !needs_you {
            self.etiquette.withdraw(Kind::NeedsYou);
        }
        self.needs_you = needs_you;
        if let Some(hand_over) = &snapshot.last_hand_over
            && !self.handed_over_once
        {
            self.handed_over_once = true;
            let title = Labels::of(&snapshot.language).handed_over(hand_over);
            self.etiquette.offer(Kind::FirstHandOver, Notice { title, body: String::new() });
        }
    }

    /// Shows what is due.
    pub async fn show_due(&mut self, now: &Zoned) {
        let Some(notice) = self.etiquette.due(now.timestamp(), now.date()) else { return };
        let memory =
            Memory { shown: self.etiquette.shown().clone(), handed_over_once: self.handed_over_once };
        let written = serde_json::to_vec(&memory).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|json| std::fs::write(&self.file, json)) {
            tracing::warn!(%error, "cannot remember which notices were shown");
        }
        if let Err(error) = send(&notice).await {
            tracing::warn!(%error, "this desktop shows no notices");
        }
    }

    /// When to call `show_due` again, if nothing else happens.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.etiquette.wake_at()
    }
}

#[cfg(all(unix, not(target_os = "macos")))]
async fn send(notice: &Notice) -> Result<(), notify_rust::error::Error> {
    desktop_notice(notice).show_async().await.map(drop)
}

#[cfg(not(all(unix, not(target_os = "macos"))))]
async fn send(notice: &Notice) -> Result<(), notify_rust::error::Error> {
    desktop_notice(notice).show().map(drop)
}

fn desktop_notice(notice: &Notice) -> notify_rust::Notification {
    let mut desktop = notify_rust::Notification::new();
    desktop.appname("Wakati").summary(&notice.title).body(&notice.body).icon("wakati");
    desktop
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use wakati_protocol::desk::HandOver;
    use wakati_protocol::units::UnixMillis;

    use super::*;
    use crate::tray::tests::snapshot;

    const DAY: Date = date(2026, 11, 30);

    fn handed_over() -> Snapshot {
        let mut snapshot = snapshot();
        snapshot.last_hand_over = Some(HandOver {
            at: UnixMillis(0),
            to: "Elden Ring".into(),
            stopped_ms: 10,
            worker_gone_ms: 200,
            memory_back_ms: 512,
            vram_left: None,
            jobs_handed_back: 0,
        });
        snapshot
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn starting_and_serving_are_worth_no_notice() {
        let folder = tempfile::tempdir().unwrap();
        let mut notices = Notices::remembered(folder.path().join("notices.json"));
        for second in 0..10 {
            notices.see(&snapshot(), at(second));
            assert_eq!(notices.etiquette.due(at(second), DAY), None);
        }
    }

    #[test]
    fn only_the_first_hand_over_ever_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut notices = Notices::remembered(folder.path().join("notices.json"));
        notices.see(&handed_over(), at(0));
        let told = notices.etiquette.due(at(0), DAY).unwrap();
        assert_eq!(told.title, "Your machine went to Elden Ring in 0.6 s");
        notices.see(&handed_over(), at(100_000));
        assert_eq!(notices.etiquette.due(at(100_000), date(2026, 12, 1)), None);
    }

    #[test]
    fn a_state_that_needs_the_owner_is_told_when_it_begins() {
        let folder = tempfile::tempdir().unwrap();
        let mut notices = Notices::remembered(folder.path().join("notices.json"));
        let mut refused = snapshot();
        refused.shape = Shape::NeedsYou;
        refused.sentence = "The broker refused this machine".into();
        notices.see(&refused, at(0));
        assert_eq!(notices.etiquette.due(at(0), DAY).unwrap().title, refused.sentence);
        notices.see(&refused, at(100_000));
        assert_eq!(notices.etiquette.due(at(100_000), date(2026, 12, 1)), None);
    }
}
