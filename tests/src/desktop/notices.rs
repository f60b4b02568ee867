//! The test's end of the bus that is told every notice.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::watch;
use zbus::zvariant::OwnedValue;

/// A notice that was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub title: String,
    pub body: String,
}

/// All notices so far.
pub struct Notices {
    shown: watch::Receiver<Vec<Shown>>,
    _connection: zbus::Connection,
}

impl Notices {
    /// Takes the notification server's place on this connection.
    ///
    /// # Errors
    /// When the place is taken.
    pub async fn listen(connection: zbus::Connection) -> anyhow::Result<Self> {
        let (told, shown) = watch::channel(Vec::new());
        connection.object_server().at("/org/freedesktop/Notifications", Server { told }).await?;
        connection.request_name("org.freedesktop.Notifications").await?;
        Ok(Self { shown, _connection: connection })
    }

    /// What has been shown.
    #[must_use]
    pub fn so_far(&self) -> Vec<Shown> {
        self.shown.borrow().clone()
    }

    /// Listens for so long, and returns what came meanwhile.
    ///
    /// # Errors
    /// When the connection has gone.
    pub async fn during(&self, time: Duration) -> anyhow::Result<Vec<Shown>> {
        let before = self.shown.borrow().len();
        let mut shown = self.shown.clone();
        let more = shown.wait_for(|shown| shown.len() > before);
        match tokio::time::timeout(time, more).await {
            Ok(shown) => Ok(shown?[before..].to_vec()),
            Err(_) => Ok(vec![]),
        }
    }
}

struct Server {
    told: watch::Sender<Vec<Shown>>,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Server {
    #[expect(clippy::too_many_arguments, reason = "the Desktop Notifications Specification 1.3 has eight")]
    fn notify(
        &self,
        _application: String,
        _replaces: u32,
        _icon: String,
        summary: String,
        body: String,
        _actions: Vec<String>,
        _hints: HashMap<String, OwnedValue>,
        _milliseconds: i32,
    ) -> u32 {
        self.told.send_modify(|shown| shown.push(Shown { title: summary, body }));
        u32::try_from(self.told.borrow().len()).unwrap_or(u32::MAX)
    }

    fn close_notification(&self, _id: u32) {}

    fn get_capabilities(&self) -> Vec<String> {
        vec!["body".to_owned()]
    }

    fn get_server_information(&self) -> (String, String, String, String) {
        ("test".to_owned(), "wakati".to_owned(), "1".to_owned(), "1.3".to_owned())
    }
}
