//! What the owner's programs hold of a running node: snapshots, questions and wishes.

use jiff::civil::{Date, Time, time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use tokio::sync::{mpsc, oneshot, watch};
use wakati_protocol::desk::{Answer, Ask, Snapshot, Span};
use wakati_protocol::units::UnixMillis;
use wakati_store::{SpanRow, Store, StoreError};

use crate::clock;
use crate::sentences::Sentences;

/// Wishes wait here for the loop; an asker waits while it is full.
pub const WISHES: usize = 32;
/// The most rows of earnings in one answer: about ten years of a busy node's days.
const MOST_EARNINGS: u32 = 1_000_000;

/// When "tomorrow" begins for a pause: after the night in which it was asked for.
const MORNING: Time = time(6, 0, 0, 0);

/// What only the loop can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Pause { minutes: Option<u32> },
    PauseUntilTomorrow,
    Resume,
    ServeAnyway,
    Quit,
}

/// A wish and where its answer goes.
#[derive(Debug)]
pub struct Request {
    pub wish: Wish,
    pub answer: oneshot::Sender<Answer>,
}

/// A running node, seen from outside. Clones see the same node.
#[derive(Debug, Clone)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    snapshots: watch::Receiver<Snapshot>,
    log: Log,
    /// Told when somebody asks for the window; only the desktop application has one.
    open_window: Option<mpsc::Sender<()>>,
}

impl Handle {
    pub(crate) fn new(
        requests: mpsc::Sender<Request>,
        snapshots: watch::Receiver<Snapshot>,
        log: Log,
        open_window: Option<mpsc::Sender<()>>,
    ) -> Self {
        Self { requests, snapshots, log, open_window }
    }

    /// The newest snapshot and its changes.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.clone()
    }

    /// Asks one thing. `Watch` is answered like `Status`; use [`Handle::snapshots`] to go on watching.
    pub async fn ask(&self, ask: Ask) -> Answer {
        match ask {
            Ask::Status | Ask::Watch => Answer::Snapshot(Box::new(self.snapshots.borrow().clone())),
            Ask::Pause { minutes } => self.wish(Wish::Pause { minutes }).await,
            Ask::PauseUntilTomorrow => self.wish(Wish::PauseUntilTomorrow).await,
            Ask::Resume => self.wish(Wish::Resume).await,
            Ask::ServeAnyway => self.wish(Wish::ServeAnyway).await,
            Ask::Quit => self.wish(Wish::Quit).await,
            Ask::Why { day } => self.log.why(day.as_deref()).await,
            Ask::Earnings => self.log.earnings().await,
            Ask::OpenWindow => match &self.open_window {
                // A full channel means that the window is about to open anyway.
                Some(open) => {
                    let _ = open.try_send(());
                    Answer::Done
                }
                None => Answer::Refused { sentence: self.log.sentences.no_window() },
            },
        }
    }

    async fn wish(&self, wish: Wish) -> Answer {
        let (answer, answered) = oneshot::channel();
        let ended = || Answer::Refused { sentence: self.log.sentences.ended() };
        if self.requests.send(Request { wish, answer }).await.is_err() {
            return ended();
        }
        answered.await.unwrap_or_else(|_| ended())
    }
}

/// The log, as far as the owner reads it.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) store: Store,
    pub(crate) zone: TimeZone,
    pub(crate) sentences: Sentences,
}

impl Log {
    /// What happened on one local day.
    pub(crate) async fn why(&self, day: Option<&str>) -> Answer {
        let Some((from, to)) = self.bounds(day) else {
            return Answer::Garbled { sentence: self.sentences.bad_day() };
        };
        match self.store.spans_between(from, to).await {
            Ok(rows) => Answer::Why { spans: rows.into_iter().map(|row| self.span(row)).collect() },
            Err(error) => self.unreadable(&error),
        }
    }

    /// The settled earnings, newest first.
    pub(crate) async fn earnings(&self) -> Answer {
        match self.store.earnings(MOST_EARNINGS).await {
            Ok(rows) => Answer::Earnings { rows },
            Err(error) => self.unreadable(&error),
        }
    }

    fn bounds(&self, day: Option<&str>) -> Option<(UnixMillis, UnixMillis)> {
        let Some(day) = day else { return Some(wakati_store::day(clock::now(), &self.zone)) };
        let noon = day.parse::<Date>().ok()?.at(12, 0, 0, 0).to_zoned(self.zone.clone()).ok()?;
        Some(wakati_store::day(UnixMillis(noon.timestamp().as_millisecond()), &self.zone))
    }

    fn span(&self, row: SpanRow) -> Span {
        let (sentence, evidence) = self.sentences.of_span(&row.status);
        Span { from: row.from, to: row.to, shape: row.shape, sentence, evidence }
    }

    fn unreadable(&self, error: &StoreError) -> Answer {
        tracing::error!(%error, "the log cannot be read");
        Answer::Refused { sentence: self.sentences.log_unreadable() }
    }
}

/// The moment that is this many minutes from now, on the owner's clock.
pub(crate) fn local_after(minutes: u32, zone: &TimeZone) -> Zoned {
    let now = Timestamp::now();
    now.checked_add(i64::from(minutes).minutes()).unwrap_or(now).to_zoned(zone.clone())
}

/// The next morning on the owner's clock; that of the same day, while it is still night.
pub(crate) fn next_morning(now: &Zoned) -> Zoned {
    let morning_of = |date: Date| date.to_datetime(MORNING).to_zoned(now.time_zone().clone()).ok();
    let today = morning_of(now.date()).filter(|morning| morning > now);
    today.or_else(|| morning_of(now.date().tomorrow().ok()?)).unwrap_or_else(|| now.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_until_tomorrow_ends_at_the_next_six_in_the_morning() {
        for (now, expected) in [
            ("2026-12-01T23:10[Africa/Nairobi]", "2026-12-02T06:00+03:00[Africa/Nairobi]"),
            ("2026-12-01T02:30[Africa/Nairobi]", "2026-12-01T06:00+03:00[Africa/Nairobi]"),
            ("2026-12-01T06:00[Africa/Nairobi]", "2026-12-02T06:00+03:00[Africa/Nairobi]"),
            // Clocks go forward and back in the night between.
            ("2026-03-28T22:00[Europe/Berlin]", "2026-03-29T06:00+02:00[Europe/Berlin]"),
            ("2026-10-24T22:00[Europe/Berlin]", "2026-10-25T06:00+01:00[Europe/Berlin]"),
        ] {
            let now: Zoned = now.parse().expect("a time with its zone");
            assert_eq!(next_morning(&now).to_string(), expected.replace("T06:00", "T06:00:00"));
        }
    }
}
