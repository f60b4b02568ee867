//! The worker's cage: no network, no programs, no writing, no files but the model and system libraries.
//!
//! It closes before a byte of the model file is parsed and before any thread is started. What the system cannot
//! enforce is left out of the report, and the worker goes on: the report is what the node shows its owner.

use std::path::Path;

/// Closes the cage and names what is really enforced: `files`, `writes`, `network`, `exec`.
#[cfg(target_os = "linux")]
pub fn enter(model: &Path) -> Vec<String> {
    let mut enforced = Vec::new();
    match linux::restrict_files(model) {
        Ok(true) => enforced.extend(["files", "writes"]),
        Ok(false) => tracing::warn!("this kernel has no Landlock: files are not restricted"),
        Err(error) => tracing::warn!(%error, "files are not restricted"),
    }
    match linux::restrict_calls() {
        Ok(()) => enforced.extend(["network", "exec"]),
        Err(error) => tracing::warn!(%error, "network and programs are not restricted"),
    }
    enforced.into_iter().map(str::to_owned).collect()
}

/// Nothing is enforced on this system.
#[cfg(not(target_os = "linux"))]
pub fn enter(_model: &Path) -> Vec<String> {
    Vec::new()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::path::Path;

    use landlock::{
        ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, path_beneath_rules,
    };
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter_all_threads};

    /// Libraries, the loader's cache and what the system says about itself.
    /// Of `/proc` only what concerns this process, the machine and the GPU's driver: never another process.
    const READABLE: &[&str] = &[
        "/usr",
        "/lib",
        "/lib64",
        "/etc/ld.so.cache",
        "/sys",
        "/dev/urandom",
        "/proc/self",
        "/proc/meminfo",
        "/proc/cpuinfo",
        "/proc/stat",
        "/proc/devices",
        "/proc/modules",
        "/proc/driver",
    ];
    /// A GPU is driven through its device files.
    const DEVICES: &[&str] = if cfg!(feature = "cuda") { &["/dev"] } else { &["/dev/null"] };

    /// `false` when the kernel knows no Landlock.
    pub fn restrict_files(model: &Path) -> anyhow::Result<bool> {
        let abi = ABI::V4;
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .create()?
            .add_rules(path_beneath_rules(READABLE, read))?
            .add_rules(path_beneath_rules([model], AccessFs::ReadFile))?
            .add_rules(path_beneath_rules(DEVICES, read | AccessFs::WriteFile))?
            .restrict_self()?;
        Ok(status.ruleset != RulesetStatus::NotEnforced)
    }

    /// System calls that reach other machines, other programs or the kernel's inside fail with `EPERM`.
    pub fn restrict_calls() -> anyhow::Result<()> {
        let denied = [
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_accept,
            libc::SYS_accept4,
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_getfd,
            libc::SYS_kill,
            libc::SYS_io_uring_setup,
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_setns,
            libc::SYS_unshare,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_userfaultfd,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_open_by_handle_at,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_kexec_load,
        ];
        let rules: BTreeMap<i64, _> = denied.into_iter().map(|call| (call, Vec::new())).collect();
        let deny = SeccompAction::Errno(libc::EPERM as u32);
        let filter =
            SeccompFilter::new(rules, SeccompAction::Allow, deny, std::env::consts::ARCH.try_into()?)?;
        let program: BpfProgram = filter.try_into()?;
        apply_filter_all_threads(&program)?;
        Ok(())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Command;

    use super::*;

    const INSIDE: &str = "WAKATI_TEST_INSIDE_THE_CAGE";

    #[test]
    fn whatever_is_reported_as_enforced_really_is() {
        if std::env::var_os(INSIDE).is_some() {
            return look_around();
        }
        // The cage cannot be left again, so the look around it happens in a process of its own.
        let mut inside = Command::new(std::env::current_exe().unwrap());
        inside
            .args(["--exact", "sandbox::tests::whatever_is_reported_as_enforced_really_is"])
            .env(INSIDE, "1");
        let out = inside.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    }

    fn look_around() {
        let model = std::env::current_exe().unwrap();
        let elsewhere = model.with_extension("written");
        let enforced = enter(&model);
        let enforces = |what: &str| enforced.iter().any(|word| word == what);
        assert!(std::fs::File::open(&model).is_ok(), "the model can be read");
        if enforces("files") {
            assert!(std::fs::read_dir(model.parent().unwrap()).is_err());
            assert!(std::fs::read("/etc/hostname").is_err() && std::fs::read("/proc/1/status").is_err());
        }
        if enforces("writes") {
            assert!(std::fs::write(elsewhere, b"x").is_err());
            assert!(std::fs::OpenOptions::new().append(true).open(&model).is_err());
        }
        if enforces("network") {
            assert!(std::net::TcpListener::bind("127.0.0.1:0").is_err());
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err());
        }
        if enforces("exec") {
            assert!(Command::new("/bin/true").status().is_err());
        }
    }
}
