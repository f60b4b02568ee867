//! Windows: the game that Steam says it runs, in the registry of the owner's account.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::os::windows::ffi::OsStrExt as _;

use windows_sys::Win32::System::Registry::{
    HKEY_CURRENT_USER, REG_ROUTINE_FLAGS, RRF_RT_REG_DWORD, RRF_RT_REG_SZ, RegGetValueW,
};

use super::windows;
use crate::recognise::{Kind, Sign};

const STEAM: &str = r"Software\Valve\Steam";
/// The longest name of a game that is read, in UTF-16 units.
const LONGEST_NAME: usize = 256;

/// The game that Steam runs. When Steam was killed, its word may be stale: `lives` tells whether Steam still runs.
pub(super) fn running_game() -> Option<Sign> {
    let app = number(STEAM, "RunningAppID").filter(|app| *app != 0)?;
    let pid = number(&format!(r"{STEAM}\ActiveProcess"), "pid").unwrap_or(0);
    let name = text(&format!(r"{STEAM}\Apps\{app}"), "Name").unwrap_or_else(|| format!("Steam {app}"));
    Some(Sign { kind: Kind::Launcher, name, pid, lives: pid != 0 && windows::open(pid).is_some() })
}

fn number(key: &str, value: &str) -> Option<u32> {
    let mut bytes = [0; 4];
    (read(key, value, RRF_RT_REG_DWORD, &mut bytes)? == bytes.len()).then(|| u32::from_ne_bytes(bytes))
}

fn text(key: &str, value: &str) -> Option<String> {
    let mut bytes = [0; LONGEST_NAME * 2];
    let length = read(key, value, RRF_RT_REG_SZ, &mut bytes)?;
    let units = bytes[..length].chunks_exact(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]]));
    let units: Vec<_> = units.take_while(|unit| *unit != 0).collect();
    let name = String::from_utf16_lossy(&units);
    (!name.trim().is_empty()).then_some(name)
}

/// Reads a value of this type into `bytes`; how many there are. `None` when there is none or it is longer.
fn read(key: &str, value: &str, kind: REG_ROUTINE_FLAGS, bytes: &mut [u8]) -> Option<usize> {
    let (key, value) = (wide(key), wide(value));
    let mut length = u32::try_from(bytes.len()).ok()?;
    // SAFETY: both names end with a zero, and `bytes` has room for `length` bytes.
    let error = unsafe {
        RegGetValueW(
            HKEY_CURRENT_USER,
            key.as_ptr(),
            value.as_ptr(),
            kind,
            std::ptr::null_mut(),
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (error == 0).then_some(length as usize)
}

fn wide(text: &str) -> Vec<u16> {
    OsStr::new(text).encode_wide().chain([0]).collect()
}
