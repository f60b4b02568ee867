//! X11: the window in front, whether it covers its monitor, and how long nobody has touched the machine.
//!
//! Read by the standards that every desktop keeps: Extended Window Manager Hints 1.5 (`_NET_ACTIVE_WINDOW`,
//! `_NET_WM_STATE_FULLSCREEN`), RandR 1.5 monitors, the X-Resource extension for the window's process and the screen
//! saver extension for the last input. On Wayland it sees what runs under XWayland, which most games do.

use std::time::Duration;

use x11rb::connection::Connection as _;
use x11rb::protocol::randr::ConnectionExt as _;
use x11rb::protocol::res::{ClientIdMask, ClientIdSpec, ConnectionExt as _};
use x11rb::protocol::screensaver::ConnectionExt as _;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, Window};
use x11rb::rust_connection::RustConnection;

use crate::recognise::{Kind, Sign};
use crate::screen::{self, ScreenSeen};

x11rb::atom_manager! {
    /// The names that are asked for.
    Atoms: AtomsCookie {
        _NET_ACTIVE_WINDOW,
        _NET_WM_STATE,
        _NET_WM_STATE_FULLSCREEN,
        _NET_WM_PID,
        _NET_WM_WINDOW_TYPE,
        _NET_WM_WINDOW_TYPE_DESKTOP,
    }
}

type Answer<T> = Result<T, Box<dyn std::error::Error>>;

/// The screen of the X server that `DISPLAY` names.
#[derive(Default)]
pub struct Screen(Option<Display>);

struct Display {
    server: RustConnection,
    root: Window,
    atoms: Atoms,
}

/// Where something lies on the root window, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

impl Screen {
    /// Looks once. Connects when it is not connected; a server that is gone is connected to anew at the next look.
    pub fn look(&mut self) -> ScreenSeen {
        if self.0.is_none() {
            match Display::open() {
                Ok(display) => self.0 = Some(display),
                Err(error) => {
                    tracing::debug!(%error, "there is no X server to look at");
                    return ScreenSeen::Absent;
                }
            }
        }
        let Some(display) = &self.0 else { return ScreenSeen::Absent };
        match display.look() {
            Ok(seen) => seen,
            Err(error) => {
                tracing::debug!(%error, "the screen cannot be read");
                self.0 = None;
                ScreenSeen::Unreadable
            }
        }
    }
}

impl Display {
    fn open() -> Answer<Self> {
        let (server, screen) = x11rb::connect(None)?;
        let root = server.setup().roots.get(screen).ok_or("no screen")?.root;
        let atoms = Atoms::new(&server)?.reply()?;
        Ok(Self { server, root, atoms })
    }

    fn look(&self) -> Answer<ScreenSeen> {
        let untouched = self.server.screensaver_query_info(self.root)?.reply();
        let untouched = untouched.ok().map(|info| Duration::from_millis(info.ms_since_user_input.into()));
        // A window may close between two questions: then nothing is in front.
        let signs = self.in_front().unwrap_or_default().into_iter().collect();
        // The server itself still answers, or this look has failed.
        self.server.get_input_focus()?.reply()?;
        Ok(ScreenSeen::Seen { signs, untouched })
    }

    /// What the window in front says, if it covers a whole monitor.
    fn in_front(&self) -> Answer<Option<Sign>> {
        let active = self.property(self.root, self.atoms._NET_ACTIVE_WINDOW, AtomEnum::WINDOW.into())?;
        let Some(window) = active.first().copied().filter(|window| *window != x11rb::NONE) else {
            return Ok(None);
        };
        let kinds = self.property(window, self.atoms._NET_WM_WINDOW_TYPE, AtomEnum::ATOM.into())?;
        if kinds.contains(&self.atoms._NET_WM_WINDOW_TYPE_DESKTOP) || !self.covers_a_monitor(window)? {
            return Ok(None);
        }
        let Some(pid) = self.process(window)? else { return Ok(None) };
        let name = self.class(window)?;
        let kind = if screen::shows_films(&name) { Kind::Film } else { Kind::FullScreen };
        Ok(Some(Sign { kind, name, pid, lives: true }))
    }

    fn covers_a_monitor(&self, window: Window) -> Answer<bool> {
        let states = self.property(window, self.atoms._NET_WM_STATE, AtomEnum::ATOM.into())?;
        if states.contains(&self.atoms._NET_WM_STATE_FULLSCREEN) {
            return Ok(true);
        }
        let size = self.server.get_geometry(window)?.reply()?;
        let corner = self.server.translate_coordinates(window, self.root, 0, 0)?.reply()?;
        let area = Area::new(corner.dst_x, corner.dst_y, size.width, size.height);
        let monitors = self.server.randr_get_monitors(self.root, true)?.reply()?.monitors;
        Ok(monitors.iter().any(|one| area.covers(Area::new(one.x, one.y, one.width, one.height))))
    }

    /// The process behind the window, as the server knows it; else as the window says itself.
    fn process(&self, window: Window) -> Answer<Option<u32>> {
        let asked = ClientIdSpec { client: window, mask: ClientIdMask::LOCAL_CLIENT_PID };
        let known = self.server.res_query_client_ids(&[asked])?.reply();
        let known = known.ok().and_then(|ids| ids.ids.first()?.value.first().copied());
        if let Some(pid) = known.filter(|pid| *pid != 0) {
            return Ok(Some(pid));
        }
        let told = self.property(window, self.atoms._NET_WM_PID, AtomEnum::CARDINAL.into())?;
        Ok(told.first().copied().filter(|pid| *pid != 0))
    }

    /// The second of the two words in `WM_CLASS`, which names the program (ICCCM 4.1.2.5).
    fn class(&self, window: Window) -> Answer<String> {
        let reply =
            self.server.get_property(false, window, AtomEnum::WM_CLASS, AtomEnum::STRING, 0, 256)?.reply()?;
        let words = String::from_utf8_lossy(&reply.value).into_owned();
        Ok(words.split('\0').rfind(|word| !word.is_empty()).unwrap_or_default().to_owned())
    }

    fn property(&self, window: Window, name: u32, kind: u32) -> Answer<Vec<u32>> {
        let reply = self.server.get_property(false, window, name, kind, 0, 64)?.reply()?;
        Ok(reply.value32().map(Iterator::collect).unwrap_or_default())
    }
}

impl Area {
    fn new(x: i16, y: i16, width: u16, height: u16) -> Self {
        let (left, top) = (i32::from(x), i32::from(y));
        Self { left, top, right: left + i32::from(width), bottom: top + i32::from(height) }
    }

    fn covers(self, other: Self) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.right >= other.right
            && self.bottom >= other.bottom
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_with_a_panel_beside_it_does_not_cover_its_monitor() {
        let monitor = Area::new(1920, 0, 2560, 1440);
        assert!(Area::new(1920, 0, 2560, 1440).covers(monitor));
        assert!(Area::new(0, 0, 4480, 1440).covers(monitor));
        assert!(!Area::new(1920, 30, 2560, 1410).covers(monitor));
        assert!(!Area::new(0, 0, 1920, 1440).covers(monitor));
    }
}
