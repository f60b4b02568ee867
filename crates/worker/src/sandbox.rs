//! The worker's cage: no network, no programs, no signals to others, no writing, no files but the model and system
//! libraries.
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
    use std::path::{Path, PathBuf};

    use landlock::{
        ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, path_beneath_rules,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, apply_filter_all_threads,
    };

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
    /// What a program may read and write that drives no GPU.
    const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/urandom"];

    /// The device files through which a GPU is driven, as far as this machine has them by now.
    fn gpu_devices() -> Vec<PathBuf> {
        let there = std::fs::read_dir("/dev").into_iter().flatten().flatten();
        let drives = |name: &std::ffi::OsStr| name.to_str().is_some_and(drives_gpu);
        there.filter(|entry| drives(&entry.file_name())).map(|entry| entry.path()).collect()
    }

    /// Whether `/dev/NAME` is one of NVIDIA's: `nvidia0`, `nvidiactl`, `nvidia-uvm`, the folder `nvidia-caps`.
    pub fn drives_gpu(name: &str) -> bool {
        name.starts_with("nvidia")
    }

    /// `false` when the kernel knows no Landlock.
    pub fn restrict_files(model: &Path) -> anyhow::Result<bool> {
        let abi = ABI::V4;
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let gpus = if cfg!(feature = "cuda") { gpu_devices() } else { Vec::new() };
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .create()?
            .add_rules(path_beneath_rules(READABLE, read))?
            .add_rules(path_beneath_rules([model], AccessFs::ReadFile))?
            .add_rules(path_beneath_rules(DEVICES, read | AccessFs::WriteFile))?
            .add_rules(path_beneath_rules(gpus, read | AccessFs::WriteFile))?
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
            libc::SYS_tkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_pidfd_send_signal,
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
        let mut rules: BTreeMap<i64, _> = denied.into_iter().map(|call| (call, Vec::new())).collect();
        // A program signals its own threads, as `abort` does; others' are not its business.
        let own = u64::from(std::process::id());
        let foreign = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, own)?;
        rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![foreign])?]);
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
            signals();
        }
    }

    /// Signal 0 asks whether a signal would be delivered, and delivers none.
    #[expect(unsafe_code, reason = "no library sends a signal through each of these calls")]
    fn signals() {
        let parent = i64::from(std::os::unix::process::parent_id());
        let own = i64::from(std::process::id());
        // SAFETY: these calls read the numbers and at most one record, which outlives them.
        let refused = |call, first: i64, second: i64| unsafe {
            libc::syscall(call, first, second, 0_i64, 0_i64) == -1
                && std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
        };
        assert!(refused(libc::SYS_kill, parent, 0), "kill");
        assert!(refused(libc::SYS_tkill, parent, 0), "tkill");
        assert!(refused(libc::SYS_tgkill, parent, parent), "tgkill");
        assert!(refused(libc::SYS_rt_sigqueueinfo, parent, 0), "rt_sigqueueinfo");
        assert!(refused(libc::SYS_rt_tgsigqueueinfo, parent, parent), "rt_tgsigqueueinfo");
        assert!(refused(libc::SYS_pidfd_send_signal, -1, 0), "pidfd_send_signal");
        // SAFETY: it takes no pointer.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        assert!(!refused(libc::SYS_tgkill, own, thread), "a thread of its own");
    }

    #[test]
    fn only_the_gpus_device_files_are_opened() {
        let there = ["nvidia0", "sda", "nvidiactl", "nvidia-uvm-tools", "mem", "input", "nvidia-caps", "shm"];
        let opened: Vec<_> = there.into_iter().filter(|name| linux::drives_gpu(name)).collect();
        assert_eq!(opened, ["nvidia0", "nvidiactl", "nvidia-uvm-tools", "nvidia-caps"]);
    }
}
