//! A started program: in a process group of its own, ended with everything that it started.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdout, Command};

/// Where the built programs are: `WAKATI_BIN_DIR`, else the folder above that of the running test.
///
/// # Errors
/// When neither leads anywhere.
pub fn programs() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os("WAKATI_BIN_DIR") {
        return Ok(folder.into());
    }
    let this = std::env::current_exe()?;
    let folder = this.parent().context("no folder")?;
    Ok(if folder.ends_with("deps") { folder.parent().context("no folder")? } else { folder }.to_path_buf())
}

/// The path of one built program.
///
/// # Errors
/// When it has not been built.
pub fn path(name: &str) -> anyhow::Result<PathBuf> {
    let path = programs()?.join(name);
    if !path.exists() {
        bail!("{} is not built; cargo xtask test builds it", path.display());
    }
    Ok(path)
}

/// The real model that xtask fetched.
///
/// # Errors
/// When `WAKATI_TEST_MODEL` is not set.
pub fn model() -> anyhow::Result<PathBuf> {
    std::env::var_os("WAKATI_TEST_MODEL")
        .map(PathBuf::from)
        .context("WAKATI_TEST_MODEL names no GGUF file; cargo xtask test sets it")
}

/// Runs a program to its end and gives its trimmed output.
///
/// # Errors
/// When it does not succeed; the message holds what it said.
pub async fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("{:?} ended with {}: {}", command.as_std(), output.status, said.trim());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// A running program. Dropping it kills its process group.
pub struct Program {
    child: Child,
    group: Pid,
    log: PathBuf,
}

impl Program {
    /// Starts a program whose standard error goes to the end of `log`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command, log: &Path) -> anyhow::Result<Self> {
        let file: File = OpenOptions::new().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {:?}", command.as_std().get_program()))?;
        let group =
            child.id().and_then(|id| Pid::from_raw(id.cast_signed())).context("it has ended already")?;
        Ok(Self { child, group, log: log.to_path_buf() })
    }

    /// Its standard output, once.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.group.as_raw_nonzero().get().cast_unsigned()
    }

    /// The end of what it logged, for a failing test's message.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }

    /// Kills it and what it started, without a chance to say goodbye, and waits until it is gone.
    ///
    /// # Errors
    /// When the system refuses.
    pub async fn kill(&mut self) -> anyhow::Result<ExitStatus> {
        // Fails only when the group is gone, which is what is wanted.
        let _ = kill_process_group(self.group, Signal::KILL);
        Ok(self.child.wait().await?)
    }

    /// Asks it to end, as a service manager does, and kills it when it does not within `patience`.
    ///
    /// # Errors
    /// When it had to be killed.
    pub async fn stop(&mut self, patience: Duration) -> anyhow::Result<ExitStatus> {
        let asked = rustix::process::kill_process(self.group, Signal::TERM);
        if let (Ok(()), Ok(ended)) = (asked, tokio::time::timeout(patience, self.child.wait()).await) {
            return Ok(ended?);
        }
        self.kill().await?;
        bail!("it did not end within {patience:?} of being asked; its log ends with\n{}", self.log_tail())
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// When the system cannot say.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }
}
