//! Covers the screen with an empty window for a minute, for `look` to see. Windows only.
#![allow(unsafe_code)]

#[cfg(windows)]
fn main() {
    use std::ptr::null_mut;
    use windows_sys::Win32::UI::WindowsAndMessaging::{
        CreateWindowExW, DispatchMessageW, GetMessageW, GetSystemMetrics, MSG, SM_CXSCREEN, SM_CYSCREEN,
        SetForegroundWindow, SetTimer, WM_TIMER, WS_POPUP, WS_VISIBLE,
    };

    let class: Vec<u16> = "STATIC\0".encode_utf16().collect();
    // SAFETY: the class is the system's own and ends with a zero; the rest are numbers and nulls, which are allowed.
    let window = unsafe {
        let (width, height) = (GetSystemMetrics(SM_CXSCREEN), GetSystemMetrics(SM_CYSCREEN));
        let style = WS_POPUP | WS_VISIBLE;
        let none = null_mut();
        CreateWindowExW(
            0,
            class.as_ptr(),
            class.as_ptr(),
            style,
            0,
            0,
            width,
            height,
            none,
            none,
            none,
            none.cast(),
        )
    };
    assert!(!window.is_null(), "no window");
    let mut message = MSG::default();
    // SAFETY: the window is ours, and the message is a structure to write to.
    unsafe {
        SetForegroundWindow(window);
        SetTimer(window, 1, 60_000, None);
        while GetMessageW(&raw mut message, null_mut(), 0, 0) > 0 && message.message != WM_TIMER {
            DispatchMessageW(&raw const message);
        }
    }
}

#[cfg(not(windows))]
fn main() {}
