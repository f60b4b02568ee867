//! Watching the process list, cheaply enough to do it several times a second.
//!
//! A look lists the numbers of all processes. The facts of a process are read when it is new, again at every look
//! while it is young (a process is forked first and becomes another program after), at every look while it is a game,
//! and otherwise in turns, so that each one is read again every [`TURNS`] looks. Where the system gives everything
//! with the list anyway, everything is read at every look.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Health;
use crate::owners_list::OwnersList;
use crate::recognise::{Sign, recognise};

/// A process is young for this many looks: 10 s at four a second.
const YOUNG_LOOKS: u64 = 40;
/// Each old process is read again every so many looks: every 32 s at four a second.
const TURNS: u32 = 128;
/// The longest chain of parents that is followed.
const MOST_PARENTS: usize = 64;

/// What one process is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub pid: u32,
    /// 0 is none.
    pub parent: u32,
    /// When it started, in a unit of the system's own; together with the number it is unique.
    pub started: u64,
    /// It has ended, and its parent has not noticed yet.
    pub zombie: bool,
    /// The program's file, where it may be known.
    pub program: Option<PathBuf>,
    /// The words of its command line, where they may be known.
    pub argv: Vec<String>,
}

/// A machine's process table: the real one, or a recorded one.
pub trait ProcessTable {
    /// The numbers of all processes.
    ///
    /// # Errors
    /// When the table cannot be read.
    fn pids(&mut self) -> io::Result<Vec<u32>>;

    /// Whether `pids` has read everything already, so that the facts cost nothing more.
    fn reads_all_at_once(&self) -> bool {
        false
    }

    /// The game that a launcher says it runs, where it says so apart from the processes.
    fn announced(&mut self) -> Option<Sign> {
        None
    }

    /// What a process is; `None` when it is gone.
    fn facts(&mut self, pid: u32) -> Option<Facts>;
}

/// What a look has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Every sign of a game, those of the process that was seen first before the others'. Unknown, so empty, when
    /// `health` is not `Works`.
    pub signs: Vec<Sign>,
    pub health: Health,
}

/// Watches one process table.
#[derive(Debug)]
pub struct Processes<T> {
    table: T,
    list: OwnersList,
    /// Neither we nor our children are games.
    ourselves: u32,
    looks: u64,
    known: HashMap<u32, Known>,
}

#[derive(Debug)]
struct Known {
    started: u64,
    parent: u32,
    /// The look at which it was new.
    first_look: u64,
    last_look: u64,
    signs: Vec<Sign>,
}

impl<T: ProcessTable> Processes<T> {
    /// `ourselves` is the process whose children are not games either.
    pub fn new(table: T, list: OwnersList, ourselves: u32) -> Self {
        Self { table, list, ourselves, looks: 0, known: HashMap::new() }
    }

    /// Looks once.
    pub fn look(&mut self) -> Seen {
        self.looks += 1;
        let pids = match self.table.pids() {
            Ok(pids) => pids,
            Err(error) => {
                tracing::debug!(%error, "the process list cannot be read");
                return Seen { signs: Vec::new(), health: Health::Failed };
            }
        };
        for pid in pids {
            self.look_at(pid);
        }
        let looks = self.looks;
        self.known.retain(|_, known| known.last_look == looks);
        let mut games: Vec<_> =
            self.known.values().filter(|known| !known.signs.is_empty() && !self.is_ours(known)).collect();
        games.sort_by_key(|known| (known.first_look, known.started));
        let signs = games.into_iter().flat_map(|known| known.signs.iter().cloned());
        let announced = self.table.announced().filter(|sign| !self.list.is_no_game(None, &sign.name));
        let signs = signs.chain(announced).collect();
        Seen { signs, health: Health::Works }
    }

    fn look_at(&mut self, pid: u32) {
        if let Some(known) = self.known.get_mut(&pid) {
            let young = self.looks - known.first_look < YOUNG_LOOKS;
            let its_turn = u64::from(pid % TURNS) == self.looks % u64::from(TURNS);
            if !young && !its_turn && known.signs.is_empty() && !self.table.reads_all_at_once() {
                known.last_look = self.looks;
                return;
            }
        }
        let Some(facts) = self.table.facts(pid) else { return };
        let signs = recognise(&facts, &self.list);
        let same = self.known.get(&pid).filter(|known| known.started == facts.started);
        let first_look = same.map_or(self.looks, |known| known.first_look);
        let Facts { parent, started, .. } = facts;
        self.known.insert(pid, Known { started, parent, first_look, last_look: self.looks, signs });
    }

    fn is_ours(&self, known: &Known) -> bool {
        if known.signs.iter().any(|sign| sign.pid == self.ourselves) {
            return true;
        }
        let mut parent = known.parent;
        for _ in 0..MOST_PARENTS {
            if parent == self.ourselves {
                return true;
            }
            match self.known.get(&parent) {
                Some(known) if parent != 0 => parent = known.parent,
                Some(_) | None => return false,
            }
        }
        false
    }
}
