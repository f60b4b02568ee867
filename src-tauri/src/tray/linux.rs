//! The tray on Linux: a StatusNotifierItem with a `com.canonical.dbusmenu` on the session bus.

use ksni::menu::StandardItem;
use ksni::{Handle, Icon, MenuItem, OfflineReason, ToolTip, TrayMethods as _};
use tokio::sync::mpsc;

use super::menu::{Action, Row};
use super::{Event, View, icon};

/// The item on the bus.
pub struct Tray(Handle<Item>);

struct Item {
    view: View,
    events: mpsc::Sender<Event>,
}

impl Tray {
    /// `None` when there is no session bus. A desktop without a watcher is waited for: panels start late and restart.
    pub async fn show(view: View, events: mpsc::Sender<Event>) -> Option<Self> {
        match (Item { view, events }).assume_sni_available(true).spawn().await {
            Ok(handle) => Some(Self(handle)),
            Err(error) => {
                tracing::warn!(%error, "no tray");
                None
            }
        }
    }

    pub async fn update(&self, view: View) {
        self.0.update(|item| item.view = view).await;
    }

    pub async fn hide(self) {
        self.0.shutdown().await;
    }
}

impl Item {
    /// When the shell has 16 events waiting it hangs, and one more click would not help it.
    fn tell(&self, event: Event) {
        if self.events.try_send(event).is_err() {
            tracing::warn!(?event, "dropped at the tray");
        }
    }
}

impl ksni::Tray for Item {
    fn id(&self) -> String {
        "wakati".into()
    }

    fn title(&self) -> String {
        "Wakati".into()
    }

    fn icon_pixmap(&self) -> Vec<Icon> {
        icon::rasters(self.view.shape).into_iter().map(argb).collect()
    }

    fn tool_tip(&self) -> ToolTip {
        ToolTip { title: self.view.tooltip.clone(), ..ToolTip::default() }
    }

    fn menu(&self) -> Vec<MenuItem<Self>> {
        self.view.rows.iter().map(menu_item).collect()
    }

    fn activate(&mut self, _x: i32, _y: i32) {
        self.tell(Event::Clicked(Action::Open));
    }

    fn watcher_online(&self) {
        self.tell(Event::Shown);
    }

    fn watcher_offline(&self, _reason: OfflineReason) -> bool {
        self.tell(Event::NotShown);
        true
    }
}

fn menu_item(row: &Row) -> MenuItem<Item> {
    match row {
        Row::Separator => MenuItem::Separator,
        Row::Item { action, label, visible } => {
            let action = *action;
            StandardItem {
                // One underscore would mark an access key.
                label: label.replace('_', "__"),
                enabled: action != Action::Inform,
                visible: *visible,
                activate: Box::new(move |item: &mut Item| item.tell(Event::Clicked(action))),
                ..StandardItem::default()
            }
            .into()
        }
    }
}

/// The protocol wants alpha first.
fn argb(raster: icon::Raster) -> Icon {
    let mut data = raster.rgba;
    for pixel in data.chunks_exact_mut(4) {
        pixel.rotate_right(1);
    }
    Icon { width: raster.width.cast_signed(), height: raster.height.cast_signed(), data }
}
