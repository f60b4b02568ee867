//! The window in place of a tray that does not appear. It never opens over a game.

use std::time::Duration;

use tokio::time::Instant;

/// A panel that starts with the session, or again, may take so long to show trays. After that the window is opened.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits for a tray, and for the end of a game.
#[derive(Debug, Default)]
pub struct WithoutTray {
    /// When the window is due, as far as no game runs.
    due: Option<Instant>,
    game: bool,
}

impl WithoutTray {
    /// The desktop shows no tray.
    pub fn missing(&mut self, now: Instant) {
        self.due = Some(now + PATIENCE);
    }

    /// There is a tray, or the window is open.
    pub fn over(&mut self) {
        self.due = None;
    }

    /// Whether a game runs. Its end may be a pause between two, so the wait begins again there.
    pub fn game(&mut self, runs: bool, now: Instant) {
        if self.game && !runs && self.due.is_some() {
            self.missing(now);
        }
        self.game = runs;
    }

    /// When to open the window, if nothing else happens.
    pub fn wake_at(&self) -> Option<Instant> {
        self.due.filter(|_| !self.game)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_window_opens_over_a_game() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut wait = WithoutTray::default();
        wait.game(true, at(0));
        wait.missing(at(5));
        assert_eq!(wait.wake_at(), None);
        wait.game(true, at(600));
        assert_eq!(wait.wake_at(), None);
        wait.game(false, at(700));
        assert_eq!(wait.wake_at(), Some(at(710)));
        wait.game(true, at(705));
        assert_eq!(wait.wake_at(), None);
    }

    #[test]
    fn the_window_comes_ten_seconds_after_the_tray_has_gone_unless_it_returns() {
        let began = Instant::now();
        let mut wait = WithoutTray::default();
        wait.game(false, began);
        assert_eq!(wait.wake_at(), None);
        wait.missing(began);
        wait.game(false, began + Duration::from_secs(4));
        assert_eq!(wait.wake_at(), Some(began + PATIENCE));
        wait.over();
        assert_eq!(wait.wake_at(), None);
    }
}
