//! macOS: the process table through sysinfo.
//!
//! What is not here: a launcher's own mark on its games (there is no reaper on macOS), and any GPU that NVML does not
//! know. Games are found by the owner's list alone.

use std::io;

use sysinfo::{Pid, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

use crate::processes::{Facts, ProcessTable};

/// The machine's own process table.
#[derive(Debug, Default)]
pub struct SystemTable(System);

impl SystemTable {
    /// Opens it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl ProcessTable for SystemTable {
    fn pids(&mut self) -> io::Result<Vec<u32>> {
        self.0.refresh_processes_specifics(ProcessesToUpdate::All, true, what());
        Ok(self.0.processes().keys().map(|pid| pid.as_u32()).collect())
    }

    fn reads_all_at_once(&self) -> bool {
        true
    }

    fn facts(&mut self, pid: u32) -> Option<Facts> {
        let process = self.0.process(Pid::from_u32(pid))?;
        let argv = process.cmd().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Some(Facts {
            pid,
            parent: process.parent().map_or(0, Pid::as_u32),
            started: process.start_time(),
            zombie: matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead),
            program: process.exe().map(Into::into),
            argv,
        })
    }
}

fn what() -> ProcessRefreshKind {
    let once = UpdateKind::OnlyIfNotSet;
    ProcessRefreshKind::nothing().with_cmd(once).with_exe(once).without_tasks()
}
