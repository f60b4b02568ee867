//! What must hold in every evening, however it goes.

mod stage;

use proptest::prelude::*;
use stage::Stage;

const HAPPENINGS: [&str; 43] = [
    "game",
    "other game",
    "quiet",
    "quiet",
    "blind",
    "gpu",
    "no gpu",
    "gpu silent",
    "loading",
    "ready",
    "ready",
    "too large",
    "no worker",
    "gone",
    "back",
    "back",
    "held",
    "broker",
    "no broker",
    "never joined",
    "not invited",
    "model",
    "no model",
    "pause",
    "pause 10m",
    "resume",
    "game folder",
    "wine game folder",
    "full screen",
    "film",
    "desktop",
    "game mode",
    "no game mode",
    "others busy",
    "others calm",
    "vram short",
    "vram free",
    "hot",
    "cool",
    "battery",
    "mains",
    "going to sleep",
    "awake",
];

/// What a machine with one worker at most would do.
#[derive(Default)]
struct Machine {
    worker: bool,
    /// Killed, and not yet known to be gone.
    leaving: bool,
    /// A game is in the process list.
    game: bool,
    /// A game has told the system that it is one.
    flag: bool,
}

impl Machine {
    fn happens(&mut self, what: &str) {
        match what {
            "game" | "other game" | "wine game folder" => self.game = true,
            // One soft sign may be a game or not, by what else is seen.
            "quiet" | "game folder" => self.game = false,
            "game mode" => self.flag = true,
            "no game mode" => self.flag = false,
            "back" => self.leaving = false,
            _ => {}
        }
    }

    fn plays(&self) -> bool {
        self.game || self.flag
    }

    fn does(&mut self, effects: &[String]) {
        for effect in effects {
            match effect.as_str() {
                "warm: Gpu" | "warm: Processor" => {
                    assert!(!self.plays(), "a model is loaded during a game");
                    assert!(!self.worker && !self.leaving, "there would be two workers");
                    self.worker = true;
                }
                "offer" => {
                    assert!(!self.plays(), "work is taken during a game");
                    assert!(self.worker, "work is taken without a worker");
                }
                "kill worker" => {
                    self.worker = false;
                    self.leaving = true;
                }
                _ => {}
            }
        }
        assert!(!(self.plays() && self.worker), "a game and a worker");
    }
}

proptest! {
    #[test]
    fn a_game_never_shares_the_machine_and_there_are_never_two_workers(
        steps in prop::collection::vec((0_u64..900, prop::sample::select(&HAPPENINGS[..])), 1..200),
    ) {
        let mut stage = Stage::serving();
        let mut machine = Machine { worker: true, ..Machine::default() };
        for (seconds, what) in steps {
            // Time first: what happens while it passes belongs to the world before.
            machine.does(&stage.play(&format!("{seconds}s")));
            machine.happens(what);
            machine.does(&stage.play(&format!("0s {what}")));
        }
    }

    #[test]
    fn the_owners_pause_outranks_every_return(
        steps in prop::collection::vec((0_u64..900, prop::sample::select(&HAPPENINGS[..])), 1..100),
    ) {
        let mut stage = Stage::serving();
        stage.play("0s pause / 0s back");
        for (seconds, what) in steps {
            if what.starts_with("pause") || what == "resume" {
                continue;
            }
            let wanted = stage.play(&format!("{seconds}s {what}"));
            prop_assert!(wanted.iter().all(|effect| !effect.starts_with("warm") && effect != "offer"), "{:?}", wanted);
        }
    }

    #[test]
    fn the_same_script_gives_the_same_transcript_and_no_wake_lies_in_the_past(
        steps in prop::collection::vec((0_u64..900, prop::sample::select(&HAPPENINGS[..])), 1..100),
    ) {
        let play = || {
            let mut stage = Stage::serving();
            let mut all = Vec::new();
            for (seconds, what) in &steps {
                all.extend(stage.play(&format!("{seconds}s {what}")));
                assert!(stage.agent.wake_at().is_none_or(|wake| wake > stage.now), "{what}");
            }
            (all, format!("{:?}", stage.agent.status()))
        };
        prop_assert_eq!(play(), play());
    }

    #[test]
    fn nothing_is_wanted_of_a_machine_that_is_off(
        steps in prop::collection::vec((0_u64..900, prop::sample::select(&HAPPENINGS[..])), 1..60),
    ) {
        let mut stage = Stage::serving();
        stage.play("0s quit / 0s back");
        for (seconds, what) in steps {
            let wanted = stage.play(&format!("{seconds}s {what}"));
            prop_assert!(wanted.iter().all(|effect| effect.starts_with("refused")), "{:?}", wanted);
        }
    }

    #[test]
    fn whatever_happened_quitting_ends(
        steps in prop::collection::vec((0_u64..900, prop::sample::select(&HAPPENINGS[..])), 0..60),
    ) {
        let mut stage = Stage::serving();
        for (seconds, what) in steps {
            stage.play(&format!("{seconds}s {what}"));
        }
        let mut wanted = stage.play("1s quit");
        wanted.extend(stage.play("1s back"));
        prop_assert_eq!(wanted.last().map(String::as_str), Some("finish"));
        prop_assert_eq!(stage.agent.wake_at().filter(|wake| *wake <= stage.now), None);
    }
}
