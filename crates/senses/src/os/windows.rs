//! Windows: the process table from a Tool Help snapshot, which opens no process at all.
//!
//! The program's path and start time need a handle: each new process is opened once, with the limited query right
//! that anti-cheat software lets everybody have, and closed at once. A process that may not be opened keeps the name
//! of its file, so that the owner's list still finds it by name.
//!
//! What is not here: command lines, so no launcher's own mark on its games but Steam's, which is in the registry.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::PathBuf;

use windows_sys::Win32::Foundation::{FILETIME, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, QueryFullProcessImageNameW,
};

use super::windows_steam;
use crate::processes::{Facts, ProcessTable};
use crate::recognise::Sign;

/// The longest path that Windows has, in UTF-16 units.
const LONGEST_PATH: usize = 32_768;

/// The machine's own process table.
#[derive(Debug, Default)]
pub struct SystemTable {
    processes: HashMap<u32, Facts>,
}

impl SystemTable {
    /// Opens it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl ProcessTable for SystemTable {
    fn pids(&mut self) -> io::Result<Vec<u32>> {
        let mut processes = HashMap::new();
        for (pid, parent, file) in snapshot()? {
            let known = self.processes.remove(&pid).filter(|known| {
                known.parent == parent && known.program.as_deref().is_some_and(|path| path.ends_with(&file))
            });
            processes.insert(pid, known.unwrap_or_else(|| ask(pid, parent, file)));
        }
        self.processes = processes;
        Ok(self.processes.keys().copied().collect())
    }

    fn announced(&mut self) -> Option<Sign> {
        windows_steam::running_game()
    }

    fn reads_all_at_once(&self) -> bool {
        true
    }

    fn facts(&mut self, pid: u32) -> Option<Facts> {
        self.processes.get(&pid).cloned()
    }
}

/// Number, parent and file name of every process.
fn snapshot() -> io::Result<Vec<(u32, u32, PathBuf)>> {
    // SAFETY: takes no pointers; the result is checked below.
    let raw = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if raw == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a valid handle that nobody else owns.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(raw) };
    // SAFETY: a structure of numbers, for which all zeros are a value.
    let mut entry: PROCESSENTRY32W = unsafe { std::mem::zeroed() };
    entry.dwSize = size_of::<PROCESSENTRY32W>() as u32;
    let mut all = Vec::with_capacity(256);
    // SAFETY: the handle is a snapshot's, and `entry` a structure whose size it carries.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        let length = entry.szExeFile.iter().position(|unit| *unit == 0).unwrap_or(entry.szExeFile.len());
        let file = OsString::from_wide(&entry.szExeFile[..length]);
        all.push((entry.th32ProcessID, entry.th32ParentProcessID, file.into()));
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Ok(all)
}

/// Asks a new process for its path and start time.
fn ask(pid: u32, parent: u32, file: PathBuf) -> Facts {
    let process = open(pid);
    let path = process.as_ref().and_then(path);
    let started = process.as_ref().and_then(started).unwrap_or(0);
    Facts { pid, parent, started, zombie: false, program: Some(path.unwrap_or(file)), argv: Vec::new() }
}

pub(super) fn open(pid: u32) -> Option<OwnedHandle> {
    // SAFETY: takes no pointers; null is a refusal.
    let raw = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    // SAFETY: not null, so a valid handle that nobody else owns.
    (!raw.is_null()).then(|| unsafe { OwnedHandle::from_raw_handle(raw) })
}

pub(super) fn path(process: &OwnedHandle) -> Option<PathBuf> {
    let mut units = vec![0_u16; LONGEST_PATH];
    let mut length = LONGEST_PATH as u32;
    // SAFETY: `units` has room for `length` units, and the handle has the limited query right that this needs.
    let done = unsafe {
        QueryFullProcessImageNameW(process.as_raw_handle(), 0, units.as_mut_ptr(), &raw mut length)
    };
    let path = units.get(..length as usize)?;
    (done != 0).then(|| OsString::from_wide(path).into())
}

/// In steps of 100 ns since 1601.
fn started(process: &OwnedHandle) -> Option<u64> {
    let zero = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    let (mut created, mut exited, mut kernel, mut user) = (zero, zero, zero, zero);
    // SAFETY: four structures to write to, and the handle has the limited query right that this needs.
    let done = unsafe {
        GetProcessTimes(
            process.as_raw_handle(),
            &raw mut created,
            &raw mut exited,
            &raw mut kernel,
            &raw mut user,
        )
    };
    (done != 0).then(|| u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime))
}
