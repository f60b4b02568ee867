//! How much memory a process holds.

/// Resident memory of a process in bytes, or `None` when it is gone or this system does not tell.
#[must_use]
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    resident_line(&status)
}

/// Reads `VmRSS:   1234 kB`, which proc(5) gives in units of 1024 bytes. A zombie has no such line.
fn resident_line(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_line_is_read_in_bytes() {
        assert_eq!(resident_line("Name:\tx\nVmRSS:\t    1500 kB\nThreads:\t1\n"), Some(1_536_000));
        assert_eq!(resident_line("Name:\tzombie\n"), None);
    }
}
