//! The senses on D-Bus: registered games, and the system going to sleep. Both are told the moment they happen.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use tokio::sync::{mpsc, watch};
use wakati_agent::{Seen, Sense, Sleep};
use wakati_senses::{Delay, GameMode, SleepWatch};

use super::{MaySleep, Sensed, Wanted, sign};

/// How long a bus that is gone is left alone before it is tried again.
const AGAIN: Duration = Duration::from_secs(30);
/// A daemon that does not answer for this long knows nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// Registered games are listed again after this long, because one may have been killed.
const RELIST: Duration = Duration::from_secs(5);

/// Listens until nobody wants to know.
pub(super) async fn sense(tell: mpsc::Sender<Sensed>, wanted: watch::Receiver<Wanted>) {
    let games = async {
        loop {
            let Err(error) = listen_for_games(&tell).await;
            tracing::debug!(%error, "GameMode cannot be listened to");
            tokio::time::sleep(AGAIN).await;
        }
    };
    let sleep = async {
        loop {
            let Err(error) = listen_for_sleep(&tell, wanted.clone()).await;
            tracing::debug!(%error, "sleep cannot be listened for");
            tokio::time::sleep(AGAIN).await;
        }
    };
    tokio::select! {
        never = games => never,
        never = sleep => never,
        () = tell.closed() => {}
    }
}

async fn listen_for_games(tell: &mpsc::Sender<Sensed>) -> anyhow::Result<Infallible> {
    let (games, mut changes) = GameMode::listen().await?;
    loop {
        let at = Instant::now();
        let seen = match tokio::time::timeout(PATIENCE, games.games()).await {
            Ok(Ok(signs)) => Seen::Signs(signs.into_iter().map(sign).collect()),
            Ok(Err(error)) => {
                tracing::debug!(%error, "GameMode does not answer");
                Seen::Unreadable
            }
            Err(_) => Seen::Unreadable,
        };
        let none = seen == Seen::Signs(Vec::new());
        tell.send(Sensed::Signs { from: Sense::GameMode, seen, at }).await?;
        let changed = tokio::select! {
            changed = changes.next() => changed.is_some(),
            () = tokio::time::sleep(RELIST), if !none => true,
        };
        anyhow::ensure!(changed, "the session bus is gone");
    }
}

/// The delay is held all the time and let go once a machine that is about to sleep has nothing more to hand back.
async fn listen_for_sleep(
    tell: &mpsc::Sender<Sensed>,
    mut wanted: watch::Receiver<Wanted>,
) -> anyhow::Result<Infallible> {
    let (sleep, mut signals) = SleepWatch::listen().await?;
    let mut delay = delay(&sleep).await;
    loop {
        let about = signals.next().await;
        let about = about.ok_or_else(|| anyhow::anyhow!("the system bus is gone"))?;
        tell.send(Sensed::Sleep(if about { Sleep::About } else { Sleep::Awake })).await?;
        if about {
            // The system itself does not wait for longer than a few seconds (`InhibitDelayMaxSec`).
            wanted.wait_for(|wanted| wanted.sleep == MaySleep::Yes).await?;
            drop(delay.take());
        } else {
            delay = self::delay(&sleep).await;
        }
    }
}

async fn delay(sleep: &SleepWatch) -> Option<Delay> {
    let asked = sleep.delay().await;
    asked
        .inspect_err(|error| tracing::debug!(%error, "the system does not wait for us before it sleeps"))
        .ok()
}
