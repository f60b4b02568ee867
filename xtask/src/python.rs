//! A Python environment of our own in the cache: it fetches packages and runs the unmodified client.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::places::Places;
use crate::shell::{self, say};

/// Fixed, so that a download can be resumed and its report read the same way everywhere.
const PIP: &str = "25.3";

/// The environment's interpreter; makes the environment when it is not there.
///
/// # Errors
/// When Python has no `venv`, or pip cannot be fetched.
pub fn interpreter(places: &Places) -> anyhow::Result<PathBuf> {
    let home = places.cache.join("python");
    let python = home.join("bin/python");
    let pip = Command::new(&python).args(["-m", "pip", "--version"]).stderr(Stdio::null()).output();
    let is_ready = pip.is_ok_and(|output| {
        output.status.success() && String::from_utf8_lossy(&output.stdout).starts_with(&format!("pip {PIP} "))
    });
    if !is_ready {
        say(&format!("making a Python environment in {}", home.display()));
        shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
        install(&python, &format!("pip=={PIP}"))?;
    }
    Ok(python)
}

/// The interpreter, with this package of exactly this version in its environment.
///
/// # Errors
/// When the package cannot be fetched.
pub fn with(places: &Places, package: &str, version: &str) -> anyhow::Result<PathBuf> {
    let python = interpreter(places)?;
    let there = Command::new(&python)
        .args([
            "-c",
            "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))",
            package,
        ])
        .stderr(Stdio::null())
        .output();
    if !there.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == version) {
        say(&format!("installing {package} {version} for Python"));
        install(&python, &format!("{package}=={version}"))?;
    }
    Ok(python)
}

fn install(python: &PathBuf, requirement: &str) -> anyhow::Result<()> {
    shell::run(Command::new(python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        requirement,
    ]))
}
