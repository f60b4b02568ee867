//! A program that behaves like a game, for tests: it starts, says when, may take memory, and stays.
//!
//! It ends when its stdin does if that is a pipe, after `--seconds`, or when it is killed. With `--steam` it starts itself again below a
//! process that looks like Steam's reaper: `.../reaper SteamLaunch AppId=N -- .../steamapps/common/Pretend Game/game`.

mod window;

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Parser;

/// The folder below which Steam installs, here in a home that does not exist.
const STEAM: &str = "/pretend/.local/share/Steam";

#[derive(Parser)]
struct Arguments {
    /// Look like a game that Steam started as this application (Linux).
    #[arg(long, value_name = "APPID")]
    steam: Option<u32>,
    /// End by itself after this long.
    #[arg(long)]
    seconds: Option<u64>,
    /// Show a window that covers the screen (Linux, on the X server of `DISPLAY`).
    #[arg(long)]
    full_screen: bool,
    /// Take this much memory and write to all of it.
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    allocate: usize,
}

fn main() -> anyhow::Result<ExitCode> {
    if std::env::args_os().next().is_some_and(|name| Path::new(&name).ends_with("reaper")) {
        return reap();
    }
    let arguments = Arguments::parse();
    match arguments.steam {
        Some(app) => become_reaper(app, &arguments),
        None => play(&arguments),
    }
}

/// The first line on stdout is when the game started, in nanoseconds since 1970.
fn play(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).context("a clock before 1970")?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", started.as_nanos())?;
    out.flush()?;
    let _window = arguments.full_screen.then(window::open).transpose()?;
    let memory = vec![1_u8; arguments.allocate << 20];
    std::hint::black_box(&memory);
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while !stdin_is_a_pipe() {
            std::thread::park();
        }
        let mut unread = [0; 256];
        while matches!(io::stdin().read(&mut unread), Ok(1..)) {}
        // The game may be over already.
        let _ = ended.send(());
    });
    // Either way out is an end of the game.
    let _ = end.recv_timeout(arguments.seconds.map_or(Duration::MAX, Duration::from_secs));
    Ok(ExitCode::SUCCESS)
}

#[cfg(unix)]
fn stdin_is_a_pipe() -> bool {
    use std::os::unix::fs::FileTypeExt;

    std::fs::metadata("/dev/stdin").is_ok_and(|stdin| stdin.file_type().is_fifo())
}

#[cfg(not(unix))]
fn stdin_is_a_pipe() -> bool {
    true
}

/// Runs the words after `--`, as a reaper does, and lives as long as they do.
fn reap() -> anyhow::Result<ExitCode> {
    let mut words = std::env::args().skip_while(|word| word != "--").skip(1);
    let mut game = Command::new(std::env::current_exe()?);
    // The first word is the path that the game pretends to have.
    pretend_name(&mut game, &words.next().context("a reaper without a game")?);
    let status = game.args(words).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(unix)]
fn become_reaper(app: u32, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    use std::os::unix::process::CommandExt;

    let mut reaper = Command::new(std::env::current_exe()?);
    pretend_name(&mut reaper, &format!("{STEAM}/ubuntu12_32/reaper"));
    reaper.args(["SteamLaunch", &format!("AppId={app}"), "--"]);
    reaper.arg(format!("{STEAM}/steamapps/common/Pretend Game/game"));
    reaper.args(["--allocate", &arguments.allocate.to_string()]);
    if let Some(seconds) = arguments.seconds {
        reaper.args(["--seconds", &seconds.to_string()]);
    }
    Err(reaper.exec()).context("the reaper does not start")
}

#[cfg(not(unix))]
fn become_reaper(_app: u32, _arguments: &Arguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("Steam has a reaper on Linux only")
}

#[cfg(unix)]
fn pretend_name(command: &mut Command, name: &str) {
    use std::os::unix::process::CommandExt;

    command.arg0(name);
}

#[cfg(not(unix))]
fn pretend_name(_command: &mut Command, _name: &str) {}
