//! Recorded machines: each file in `machines` is a row of process lists, replayed look by look.
//!
//! A line is a look: what happened, the processes that are there, and the game that must be seen (`null` for none).

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use serde::Deserialize;
use wakati_senses::{Facts, Health, Kind, OwnersList, ProcessTable, Processes};

/// The process whose children are our own.
const OURSELVES: u32 = 900;

#[derive(Deserialize)]
struct Look {
    what: String,
    game: Option<String>,
    processes: Vec<Row>,
}

#[derive(Deserialize, Clone)]
struct Row {
    pid: u32,
    parent: u32,
    started: u64,
    #[serde(default)]
    zombie: bool,
    program: Option<String>,
    argv: Vec<String>,
}

/// A table that the test changes between looks.
#[derive(Clone, Default)]
struct Recorded(Rc<RefCell<Vec<Row>>>);

impl ProcessTable for Recorded {
    fn pids(&mut self) -> io::Result<Vec<u32>> {
        Ok(self.0.borrow().iter().map(|row| row.pid).collect())
    }

    fn facts(&mut self, pid: u32) -> Option<Facts> {
        let row = self.0.borrow().iter().find(|row| row.pid == pid)?.clone();
        let Row { pid, parent, started, zombie, program, argv } = row;
        Some(Facts { pid, parent, started, zombie, program: program.map(Into::into), argv })
    }
}

/// Whether this kind alone makes a game.
fn is_hard(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Launcher
            | Kind::OwnersList
            | Kind::GameMode
            | Kind::GameCompositor
            | Kind::RemotePlay
            | Kind::VirtualReality
    )
}

fn replay(machine: &str, list: &[&str]) {
    let table = Recorded::default();
    let mut processes = Processes::new(table.clone(), OwnersList::new(list, [""; 0]), OURSELVES);
    for line in machine.lines() {
        let look: Look = serde_json::from_str(line).expect("a line is a look");
        *table.0.borrow_mut() = look.processes;
        let seen = processes.look();
        assert_eq!(seen.health, Health::Works, "{}", look.what);
        let names: Vec<_> =
            seen.signs.iter().filter(|sign| is_hard(sign.kind)).map(|sign| &sign.name).collect();
        assert_eq!(names.first().copied(), look.game.as_ref(), "{}", look.what);
    }
}

#[test]
fn a_steam_game_starts_and_ends() {
    replay(include_str!("machines/steam_game.jsonl"), &[]);
}

#[test]
fn an_installer_that_steam_runs_is_not_a_game() {
    replay(include_str!("machines/steam_install.jsonl"), &[]);
}

#[test]
fn a_loader_that_is_gone_at_once_leaves_the_game_that_it_started() {
    replay(include_str!("machines/short_loader.jsonl"), &["hades", "hades-loader"]);
}

#[test]
fn a_process_that_becomes_a_game_after_it_was_forked_is_seen() {
    replay(include_str!("machines/fork_then_exec.jsonl"), &["factorio"]);
}

#[test]
fn our_own_programs_and_tools_with_a_games_name_are_not_games() {
    replay(include_str!("machines/look_alikes.jsonl"), &["wakati-worker", "doom"]);
}
