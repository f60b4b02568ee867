//! The test's end of the bus that stands in for a panel: it shows trays, reads their menus and clicks in them.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use tokio::sync::watch;
use zbus::message::Header;
use zbus::zvariant::{OwnedValue, Value};

use super::{PATIENCE, until};

/// A panel that shows trays.
pub struct Panel {
    connection: zbus::Connection,
    registered: watch::Receiver<Vec<String>>,
}

impl Panel {
    /// Takes the watcher's place on this connection.
    ///
    /// # Errors
    /// When the place is taken.
    pub async fn show(connection: zbus::Connection) -> anyhow::Result<Self> {
        let (items, registered) = watch::channel(Vec::new());
        connection.object_server().at("/StatusNotifierWatcher", Watcher { items }).await?;
        connection.request_name("org.kde.StatusNotifierWatcher").await?;
        Ok(Self { connection, registered })
    }

    /// The first item that a program has put here.
    ///
    /// # Errors
    /// When none appears in time.
    pub async fn item(&self) -> anyhow::Result<Item> {
        let service =
            until("a tray item", PATIENCE, async || self.registered.borrow().last().cloned()).await?;
        Ok(Item { connection: self.connection.clone(), service })
    }
}

struct Watcher {
    items: watch::Sender<Vec<String>>,
}

#[zbus::interface(name = "org.kde.StatusNotifierWatcher")]
impl Watcher {
    fn register_status_notifier_item(&self, service: String, #[zbus(header)] header: Header<'_>) {
        let by_path = service.starts_with('/');
        let sender = header.sender().map(ToString::to_string).unwrap_or_default();
        self.items.send_modify(|items| items.push(if by_path { sender } else { service }));
    }

    fn register_status_notifier_host(&self, _service: String) {}

    #[zbus(property)]
    fn registered_status_notifier_items(&self) -> Vec<String> {
        self.items.borrow().clone()
    }

    #[zbus(property)]
    fn is_status_notifier_host_registered(&self) -> bool {
        true
    }

    #[zbus(property)]
    fn protocol_version(&self) -> i32 {
        0
    }
}

/// A program's tray.
pub struct Item {
    connection: zbus::Connection,
    service: String,
}

/// A row of its menu that can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub id: i32,
    pub label: String,
    pub enabled: bool,
}

/// `(ia{sv}av)` of `com.canonical.dbusmenu`.
type Layout = (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>);

impl Item {
    /// The rows that can be seen, without the separators, from the top.
    ///
    /// # Errors
    /// When the program has gone.
    pub async fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let names: Vec<&str> = vec![];
        let (_, (_, _, children)): (u32, Layout) =
            self.menu().await?.call("GetLayout", &(0_i32, -1_i32, names)).await?;
        Ok(children.iter().filter_map(|child| row(child)).collect())
    }

    /// Waits until a row has a label that fits.
    ///
    /// # Errors
    /// When none has in time; the message lists the labels.
    pub async fn row(&self, what: &str, fits: impl Fn(&str) -> bool) -> anyhow::Result<Row> {
        let mut seen = vec![];
        let found = until(what, PATIENCE, async || {
            seen = self.rows().await.ok()?;
            seen.iter().find(|row| fits(&row.label)).cloned()
        })
        .await;
        found.with_context(|| format!("the menu has {seen:?}"))
    }

    /// Clicks the row with this label.
    ///
    /// # Errors
    /// When there is none, or the program has gone.
    pub async fn click(&self, label: &str) -> anyhow::Result<()> {
        let row = self.row(label, |seen| seen == label).await?;
        let arguments = (row.id, "clicked", Value::from(0_i32), 0_u32);
        Ok(self.menu().await?.call("Event", &arguments).await?)
    }

    /// Clicks the icon itself.
    ///
    /// # Errors
    /// When the program has gone.
    pub async fn activate(&self) -> anyhow::Result<()> {
        Ok(self.icon().await?.call("Activate", &(0_i32, 0_i32)).await?)
    }

    /// The first line of the tooltip.
    ///
    /// # Errors
    /// When the program has gone.
    pub async fn tooltip(&self) -> anyhow::Result<String> {
        let value: OwnedValue = self.icon().await?.get_property("ToolTip").await?;
        match fields(&value) {
            [_, _, Value::Str(title), _] => Ok(title.to_string()),
            other => bail!("a tooltip has four parts: {other:?}"),
        }
    }

    /// The sizes of the icon, in pixels.
    ///
    /// # Errors
    /// When the program has gone.
    pub async fn icon_sizes(&self) -> anyhow::Result<Vec<i32>> {
        let value: OwnedValue = self.icon().await?.get_property("IconPixmap").await?;
        let Value::Array(rasters) = &*value else { bail!("an icon is a list") };
        rasters
            .iter()
            .map(|raster| match fields(raster) {
                [Value::I32(width), Value::I32(_), Value::Array(_)] => Ok(*width),
                other => bail!("a raster has three parts: {other:?}"),
            })
            .collect()
    }

    async fn icon(&self) -> zbus::Result<zbus::Proxy<'_>> {
        uncached(&self.connection, &self.service, "/StatusNotifierItem", "org.kde.StatusNotifierItem").await
    }

    async fn menu(&self) -> zbus::Result<zbus::Proxy<'_>> {
        uncached(&self.connection, &self.service, "/MenuBar", "com.canonical.dbusmenu").await
    }
}

async fn uncached<'a>(
    connection: &zbus::Connection,
    service: &'a str,
    path: &'a str,
    interface: &'a str,
) -> zbus::Result<zbus::Proxy<'a>> {
    zbus::proxy::Builder::new(connection)
        .destination(service)?
        .path(path)?
        .interface(interface)?
        .cache_properties(zbus::proxy::CacheProperties::No)
        .build()
        .await
}

/// A row that can be seen; separators and hidden rows are none. Absent properties have the protocol's defaults.
fn row(child: &Value<'_>) -> Option<Row> {
    let [Value::I32(id), Value::Dict(properties), Value::Array(_)] = fields(child) else { return None };
    let property = |name: &str| {
        properties.iter().find_map(|(key, value)| match (key, value) {
            (Value::Str(key), Value::Value(value)) if key.as_str() == name => Some(&**value),
            _ => None,
        })
    };
    let flag = |name: &str| !matches!(property(name), Some(Value::Bool(false)));
    let text = |name: &str| match property(name) {
        Some(Value::Str(text)) => text.to_string(),
        _ => String::new(),
    };
    if text("type") == "separator" || !flag("visible") {
        return None;
    }
    Some(Row { id: *id, label: text("label").replace("__", "_"), enabled: flag("enabled") })
}

/// The parts of a structure; none when it is something else.
fn fields<'v, 'a>(value: &'v Value<'a>) -> &'v [Value<'a>] {
    if let Value::Structure(structure) = value { structure.fields() } else { &[] }
}
