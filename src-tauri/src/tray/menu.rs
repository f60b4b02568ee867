//! The tray's menu as plain data.

use wakati_protocol::desk::{Primary, Snapshot};

use crate::labels::Labels;
use crate::money;

/// What a row does. Its place in the menu never changes, so its id on the bus does not either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing: it informs.
    Inform,
    PauseHour,
    PauseTomorrow,
    PauseUntil,
    Resume,
    /// Opens the window, which asks whether it is meant: never one click.
    ServeAnyway,
    Open,
    Quit,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    Item { action: Action, label: String, visible: bool },
    Separator,
}

/// The menu for this snapshot.
///
/// The list is always of the same rows in the same order, and some are hidden: a menu that is open while the state
/// changes does not move under the pointer.
pub fn rows(snapshot: &Snapshot, labels: &Labels) -> Vec<Row> {
    let paused = snapshot.primary == Primary::Resume;
    let today = snapshot.figures.map_or_else(String::new, |figures| {
        labels.today(&money::written(figures.today), figures.served_today_minutes)
    });
    vec![
        item(Action::Inform, &snapshot.sentence, true),
        item(Action::Inform, &today, !today.is_empty()),
        Row::Separator,
        item(Action::PauseHour, labels.pause_hour, !paused),
        item(Action::PauseTomorrow, labels.pause_tomorrow, !paused),
        item(Action::PauseUntil, labels.pause_until, !paused),
        item(Action::Resume, labels.resume, paused),
        item(Action::ServeAnyway, labels.serve_anyway, snapshot.may_serve_anyway),
        Row::Separator,
        item(Action::Open, labels.open, true),
        Row::Separator,
        item(Action::Quit, labels.quit, true),
    ]
}

fn item(action: Action, label: &str, visible: bool) -> Row {
    Row::Item { action, label: label.to_owned(), visible }
}

#[cfg(test)]
mod tests {
    use wakati_protocol::desk::Figures;
    use wakati_protocol::money::NanoUsd;
    use wakati_protocol::units::Percent;

    use super::*;
    use crate::tray::tests::snapshot;

    /// The labels that are on screen, separators as dashes.
    fn shown(rows: &[Row]) -> Vec<&str> {
        rows.iter()
            .filter_map(|row| match row {
                Row::Item { label, visible: true, .. } => Some(label.as_str()),
                Row::Item { .. } => None,
                Row::Separator => Some("---"),
            })
            .collect()
    }

    #[test]
    fn while_serving_it_offers_three_pauses() {
        let mut now = snapshot();
        now.figures = Some(Figures {
            today: NanoUsd(1_840_000_000),
            month: NanoUsd(0),
            jobs_today: 3,
            served_today: Percent(40),
            served_today_minutes: 192,
        });
        assert_eq!(
            shown(&rows(&now, Labels::of("en"))),
            [
                "Serving SmolLM2 135M - 2 jobs",
                "Today: $1.84 - 3 h 12 min",
                "---",
                "Pause for 1 hour",
                "Pause until tomorrow morning",
                "Pause until I resume",
                "---",
                "Open Wakati",
                "---",
                "Quit"
            ]
        );
    }

    #[test]
    fn while_paused_it_offers_to_resume() {
        let mut now = snapshot();
        now.primary = Primary::Resume;
        let rows = rows(&now, Labels::of("en"));
        assert!(shown(&rows).contains(&"Resume"));
        assert!(!shown(&rows).contains(&"Pause for 1 hour"));
    }

    #[test]
    fn while_something_is_in_the_way_that_may_be_waved_aside_it_offers_to_ask() {
        let mut now = snapshot();
        now.may_serve_anyway = true;
        assert!(shown(&rows(&now, Labels::of("en"))).contains(&"Serve anyway..."));
        assert!(!shown(&rows(&snapshot(), Labels::of("en"))).contains(&"Serve anyway..."));
    }

    #[test]
    fn earnings_that_are_not_known_have_no_row() {
        assert!(!shown(&rows(&snapshot(), Labels::of("en"))).iter().any(|label| label.contains("Today")));
    }

    #[test]
    fn every_state_has_the_same_rows_in_the_same_places() {
        let actions = |rows: Vec<Row>| -> Vec<Option<Action>> {
            rows.into_iter()
                .map(|row| match row {
                    Row::Item { action, .. } => Some(action),
                    Row::Separator => None,
                })
                .collect()
        };
        let mut paused = snapshot();
        paused.primary = Primary::Resume;
        let serving = actions(rows(&snapshot(), Labels::of("en")));
        assert_eq!(serving, actions(rows(&paused, Labels::of("sw"))));
    }
}
