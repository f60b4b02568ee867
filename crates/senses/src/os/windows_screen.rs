//! Windows: the window in front, whether it covers its monitor, how long nobody has touched the machine, and where its
//! power comes from.
//!
//! Of another process's window only its place, its style and its owner are read, never its title.
#![allow(unsafe_code)]

use std::time::Duration;

use windows_sys::Win32::Foundation::{HWND, RECT};
use windows_sys::Win32::Graphics::Gdi::{
    GetMonitorInfoW, MONITOR_DEFAULTTONULL, MONITORINFO, MonitorFromWindow,
};
use windows_sys::Win32::System::Power::{GetSystemPowerStatus, SYSTEM_POWER_STATUS};
use windows_sys::Win32::System::SystemInformation::GetTickCount;
use windows_sys::Win32::UI::Input::KeyboardAndMouse::{GetLastInputInfo, LASTINPUTINFO};
use windows_sys::Win32::UI::WindowsAndMessaging::{
    GWL_STYLE, GetForegroundWindow, GetWindowLongW, GetWindowRect, GetWindowThreadProcessId, WS_CAPTION,
};

use super::windows;
use crate::Supply;
use crate::recognise::{Kind, Sign};
use crate::screen::{self, ScreenSeen};

/// The desktop itself and what it lays over the screen for a moment.
const SHELL: [&str; 5] =
    ["explorer", "LockApp", "SearchHost", "ShellExperienceHost", "StartMenuExperienceHost"];

/// The screen of the owner's session.
#[derive(Debug, Default)]
pub struct Screen;

impl Screen {
    /// Looks once.
    pub fn look(&mut self) -> ScreenSeen {
        ScreenSeen::Seen { signs: in_front().into_iter().collect(), untouched: untouched() }
    }
}

/// Where the power comes from; `None` where it is not told.
#[must_use]
pub fn supply() -> Option<Supply> {
    let mut status = SYSTEM_POWER_STATUS::default();
    // SAFETY: one structure to write to.
    let told = unsafe { GetSystemPowerStatus(&raw mut status) } != 0;
    match status.ACLineStatus {
        0 if told => Some(Supply::Battery),
        1 if told => Some(Supply::Mains),
        _ => None,
    }
}

/// What the window in front says, if it covers a whole monitor.
fn in_front() -> Option<Sign> {
    // SAFETY: takes nothing; null, when no window is in front, is refused below.
    let window = unsafe { GetForegroundWindow() };
    if window.is_null() || !covers_its_monitor(window) {
        return None;
    }
    let mut pid = 0;
    // SAFETY: a window that has gone meanwhile is an error and leaves `pid` as it is.
    unsafe { GetWindowThreadProcessId(window, &raw mut pid) };
    if pid == 0 || pid == std::process::id() {
        return None;
    }
    let program = windows::open(pid).as_ref().and_then(windows::path)?;
    let name = program.file_stem()?.to_string_lossy().into_owned();
    if SHELL.iter().any(|shell| shell.eq_ignore_ascii_case(&name)) {
        return None;
    }
    let kind = if screen::shows_films(&name) { Kind::Film } else { Kind::FullScreen };
    Some(Sign { kind, name, pid, lives: true })
}

/// A maximised window beside a hidden task bar covers its monitor too, but keeps its caption.
fn covers_its_monitor(window: HWND) -> bool {
    // SAFETY: a window that has gone meanwhile gives 0.
    let style = unsafe { GetWindowLongW(window, GWL_STYLE) } as u32;
    let mut place = RECT::default();
    // SAFETY: a window that has gone meanwhile is an error, and `place` is a rectangle to write to.
    let placed = unsafe { GetWindowRect(window, &raw mut place) } != 0;
    // SAFETY: takes no pointers; null is refused by the next call.
    let monitor = unsafe { MonitorFromWindow(window, MONITOR_DEFAULTTONULL) };
    let mut about = MONITORINFO { cbSize: size_of::<MONITORINFO>() as u32, ..MONITORINFO::default() };
    // SAFETY: a structure that carries its size.
    let known = unsafe { GetMonitorInfoW(monitor, &raw mut about) } != 0;
    placed && known && style & WS_CAPTION != WS_CAPTION && covers(&place, &about.rcMonitor)
}

fn covers(window: &RECT, monitor: &RECT) -> bool {
    window.left <= monitor.left
        && window.top <= monitor.top
        && window.right >= monitor.right
        && window.bottom >= monitor.bottom
}

/// How long nobody has touched keyboard and mouse. Both times are 32 bits wide and begin anew every 49.7 days.
fn untouched() -> Option<Duration> {
    let mut last = LASTINPUTINFO { cbSize: size_of::<LASTINPUTINFO>() as u32, dwTime: 0 };
    // SAFETY: a structure that carries its size.
    let told = unsafe { GetLastInputInfo(&raw mut last) } != 0;
    // SAFETY: takes nothing.
    let now = unsafe { GetTickCount() };
    told.then(|| Duration::from_millis(now.wrapping_sub(last.dwTime).into()))
}
