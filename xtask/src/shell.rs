//! Running other programs, visibly.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Says what happens next.
pub fn say(what: &str) {
    eprintln!("==> {what}");
}

/// Runs a program to its end with the terminal as its own.
///
/// # Errors
/// When it cannot be started or does not succeed.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a program to its end and gives what it printed.
///
/// # Errors
/// When it cannot be started or does not succeed.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", name(command)))?;
    if !output.status.success() {
        bail!("{} ended with {}", shown(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program to its end, shows each line that it prints and gives it to `each` too. Says whether it succeeded.
///
/// # Errors
/// When it cannot be started or its output cannot be read.
pub fn lines(command: &mut Command, mut each: impl FnMut(&str)) -> anyhow::Result<bool> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {}", name(command)))?;
    let stdout = child.stdout.take().context("no output to read")?;
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("cannot read what the program printed")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        each(&line);
    }
    Ok(child.wait()?.success())
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn shown(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(name(command)).chain(arguments).collect::<Vec<_>>().join(" ")
}
