//! `cargo xtask run`: the main job on a real model, for a newcomer to watch.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

use crate::builds::{self, Desktop, Variant};
use crate::model;
use crate::packages::{self, Wanted};
use crate::places::Places;

/// What to show.
#[derive(clap::Args)]
pub struct Options {
    /// No desktop application, even where there is a display.
    #[arg(long)]
    headless: bool,
    /// What to ask the model.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// End after the answer instead of waiting for Ctrl-C.
    #[arg(long)]
    once: bool,
    /// Two nodes, and a pretend game on the serving one half way through a long answer.
    #[arg(long)]
    game: bool,
    /// Where to keep the broker's and the nodes' files; a new temporary folder when not given.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Build the worker for an NVIDIA GPU (needs the CUDA toolkit).
    #[arg(long)]
    cuda: bool,
}

/// Prepares this machine and becomes the program that shows the job: Ctrl-C then reaches exactly one process, which
/// ends all others.
///
/// # Errors
/// When the preparation fails.
pub fn run(places: &Places, options: Options) -> anyhow::Result<()> {
    let has_display = ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let desktop = if options.headless || !has_display { Desktop::Without } else { Desktop::With };
    packages::install(if desktop == Desktop::With { Wanted::Desktop } else { Wanted::Headless })?;
    let model = model::fetch(places)?;
    let worker = builds::worker(places, if options.cuda { Variant::Cuda } else { Variant::Processor })?;
    builds::programs(places, Desktop::if_possible())?;

    let mut walk = Command::new(places.programs().join("walk"));
    walk.env("WAKATI_TEST_MODEL", model)
        .env("WAKATI_WORKER", worker)
        .env("WAKATI_BIN_DIR", places.programs());
    if desktop == Desktop::With {
        walk.arg("--desktop");
    }
    if let Some(prompt) = options.prompt {
        walk.args(["--prompt", &prompt]);
    }
    if options.once {
        walk.arg("--once");
    }
    if options.game {
        walk.arg("--game");
    }
    if let Some(folder) = options.folder {
        walk.arg("--folder").arg(folder);
    }
    Err(walk.exec()).context("cannot start the built program")
}
