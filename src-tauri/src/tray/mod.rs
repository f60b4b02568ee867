//! The tray: what it shows is plain data; one file per system puts it on the screen.

mod icon;
#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

pub mod menu;

use tokio::sync::mpsc;
use wakati_protocol::desk::{Shape, Snapshot};

use crate::labels::Labels;
use menu::{Action, Row};

/// What the tray shows at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub shape: Shape,
    pub tooltip: String,
    pub rows: Vec<Row>,
}

impl View {
    /// What to show for this snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        Self {
            shape: snapshot.shape,
            tooltip: snapshot.sentence.clone(),
            rows: menu::rows(snapshot, Labels::of(&snapshot.language)),
        }
    }
}

/// What happens at the tray.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Clicked(Action),
    /// The desktop shows the tray again.
    Shown,
    /// The desktop shows no tray, or no longer.
    NotShown,
}

/// The tray on the screen.
pub struct Tray {
    view: View,
    system: Option<system::Tray>,
}

impl Tray {
    /// Puts the tray on the screen. `events` hears of clicks, and of the desktop showing no tray or showing it again.
    pub async fn show(view: View, events: mpsc::Sender<Event>) -> Self {
        let system = system::Tray::show(view.clone(), events.clone()).await;
        if system.is_none() {
            // The channel is new and empty here.
            let _ = events.try_send(Event::NotShown);
        }
        Self { view, system }
    }

    /// Shows something else; does nothing while it is the same.
    pub async fn update(&mut self, view: View) {
        if self.view == view {
            return;
        }
        self.view.clone_from(&view);
        if let Some(system) = &self.system {
            system.update(view).await;
        }
    }

    /// Takes the tray off the screen.
    pub async fn hide(self) {
        if let Some(system) = self.system {
            system.hide().await;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use wakati_protocol::desk::{LinkState, Machine, Primary};
    use wakati_protocol::ids::NodeId;

    use super::*;

    /// A node that serves two jobs.
    pub(crate) fn snapshot() -> Snapshot {
        Snapshot {
            language: "en".into(),
            shape: Shape::Serving,
            sentence: "Serving SmolLM2 135M - 2 jobs".into(),
            reason: String::new(),
            primary: Primary::Pause,
            may_serve_anyway: false,
            node: NodeId([7; 32]),
            link: LinkState::Joined,
            model: None,
            active_jobs: 2,
            game: None,
            tokens_per_second: vec![],
            figures: None,
            machine: Machine::default(),
            last_hand_over: None,
            faults: vec![],
        }
    }

    #[test]
    fn a_view_is_the_same_while_only_numbers_of_the_window_change() {
        let mut later = snapshot();
        later.tokens_per_second = vec![1.0, 2.0];
        assert_eq!(View::of(&snapshot()), View::of(&later));
    }

    #[test]
    fn the_tooltip_is_the_sentence() {
        assert_eq!(View::of(&snapshot()).tooltip, "Serving SmolLM2 135M - 2 jobs");
    }
}
