//! Linux: `/proc`, as described in proc(5).
//!
//! Read here and not through sysinfo, whose every look reads the state of every process. Measured with 110 processes,
//! optimised: 1.6 ms of processor time a look, against 0.2 ms for the numbers alone, which is 0.08% of a core at four
//! looks a second.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::processes::{Facts, ProcessTable};

/// The kernel adds this to the path of a program whose file was replaced while it runs.
const DELETED: &[u8] = b" (deleted)";

/// The machine's own process table.
#[derive(Debug, Default)]
pub struct SystemTable(());

impl SystemTable {
    /// Opens it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl ProcessTable for SystemTable {
    fn pids(&mut self) -> io::Result<Vec<u32>> {
        let mut pids = Vec::with_capacity(512);
        for entry in fs::read_dir("/proc")? {
            pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        Ok(pids)
    }

    fn facts(&mut self, pid: u32) -> Option<Facts> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let stat = fs::read(folder.join("stat")).ok()?;
        let (zombie, parent, started) = stat_line(&stat)?;
        Some(Facts { pid, parent, started, zombie, program: program(&folder), argv: argv(&folder) })
    }
}

/// State, parent and start time (clock ticks since boot) of a `stat` line. The name in parentheses may hold anything.
fn stat_line(stat: &[u8]) -> Option<(bool, u32, u64)> {
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let zombie = matches!(*fields.first()?, "Z" | "X" | "x");
    Some((zombie, fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?))
}

/// The name of a process that lives; for the owner to read.
pub(super) fn name(pid: u32) -> Option<String> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let (zombie, ..) = stat_line(&fs::read(folder.join("stat")).ok()?)?;
    if zombie {
        return None;
    }
    let windows = crate::wine::program(program(&folder).as_deref(), &argv(&folder));
    let named = windows.as_deref().and_then(crate::wine::name);
    let comm = || Some(String::from_utf8_lossy(&fs::read(folder.join("comm")).ok()?).trim().to_owned());
    named.or_else(comm)
}

/// The program's path; `None` for the kernel's own threads and for other users' processes.
fn program(folder: &Path) -> Option<PathBuf> {
    let path = fs::read_link(folder.join("exe")).ok()?.into_os_string().into_vec();
    let path = path.strip_suffix(DELETED).unwrap_or(&path);
    Some(OsStr::from_bytes(path).into())
}

/// The words of the command line; what is no UTF-8 in them is replaced.
fn argv(folder: &Path) -> Vec<String> {
    let line = fs::read(folder.join("cmdline")).unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    if line.is_empty() {
        return Vec::new();
    }
    line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = b"42 (a) Z 1 (b)) S 7 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 1\n";
        assert_eq!(stat_line(line), Some((false, 7, 98765)));
        assert_eq!(stat_line(b"42 (x) Z 7 1 1 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 5 1"), Some((true, 7, 5)));
        assert_eq!(stat_line(b"42 (x"), None);
    }

    #[test]
    fn this_very_process_is_read() {
        let mut table = SystemTable::new();
        let pid = std::process::id();
        assert!(table.pids().unwrap().contains(&pid));
        let facts = table.facts(pid).unwrap();
        assert_eq!(facts.program, std::env::current_exe().ok());
        assert_eq!(facts.argv, std::env::args().collect::<Vec<_>>());
        assert!(!facts.zombie);
    }
}
