//! The tray on Windows: not filled. The window opens at start instead, as on a desktop without a tray.

use tokio::sync::mpsc;

use super::{Event, View};

/// No tray can be made here yet.
pub enum Tray {}

impl Tray {
    pub async fn show(_view: View, _events: mpsc::Sender<Event>) -> Option<Self> {
        tracing::warn!("this build has no tray on Windows");
        None
    }

    pub async fn update(&self, _view: View) {
        match *self {}
    }

    pub async fn hide(self) {
        match self {}
    }
}
