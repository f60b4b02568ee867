//! What the page hears: the snapshots of the node, and whether there is one at all.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tauri::{AppHandle, Emitter as _, Manager as _};
use wakati_node::desk::{NoAnswer, Visit};
use wakati_protocol::desk::{Answer, Ask, Snapshot};
use wakati_protocol::units::UnixMillis;

/// How often a node that is gone is looked for.
const RETRY: Duration = Duration::from_millis(500);

/// News for the page. `ui/src/lib/backend/backend.ts` has the same type.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum News {
    #[default]
    Connecting,
    Snapshot {
        snapshot: Box<Snapshot>,
    },
    Gone {
        since: UnixMillis,
    },
}

/// The newest news, for a page that has just loaded.
#[derive(Debug, Default)]
pub struct Latest(Mutex<News>);

impl Latest {
    pub fn get(&self) -> News {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, news: News) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = news;
    }
}

/// Tells the page everything that the node says, for as long as the window lives.
pub async fn watch(app: AppHandle, home: PathBuf) {
    loop {
        let Err(error) = listen(&app, &home).await;
        tracing::debug!(%error, "the node does not answer");
        if !matches!(app.state::<Latest>().get(), News::Gone { .. }) {
            tell(&app, News::Gone { since: UnixMillis(jiff::Timestamp::now().as_millisecond()) });
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Listens until the node ends the conversation.
async fn listen(app: &AppHandle, home: &Path) -> Result<Infallible, NoAnswer> {
    let mut visit = Visit::begin(home).await?;
    let mut answer = visit.ask(&Ask::Watch).await?;
    loop {
        if let Answer::Snapshot(snapshot) = answer {
            tell(app, News::Snapshot { snapshot });
        }
        answer = visit.next().await?;
    }
}

fn tell(app: &AppHandle, news: News) {
    app.state::<Latest>().set(news.clone());
    if let Err(error) = app.emit("news", news) {
        tracing::warn!(%error, "the page cannot be told");
    }
}
