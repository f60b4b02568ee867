//! What must hold in every evening, however it goes.

mod stage;

use proptest::prelude::*;
use stage::Stage;

const HAPPENINGS: [&str; 26] = [
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
];

/// What a machine with one worker at most would do.
#[derive(Default)]
struct Machine {
    worker: bool,
    /// Killed, and not yet known to be gone.
    leaving: bool,
    game: bool,
}

impl Machine {
    fn happens(&mut self, what: &str) {
        match what {
            "game" | "other game" => self.game = true,
            "quiet" => self.game = false,
            "back" => self.leaving = false,
            _ => {}
        }
    }

    fn does(&mut self, effects: &[String]) {
        for effect in effects {
            match effect.as_str() {
                "warm: Gpu" | "warm: Processor" => {
                    assert!(!self.game, "a model is loaded during a game");
                    assert!(!self.worker && !self.leaving, "there would be two workers");
                    self.worker = true;
                }
                "offer" => {
                    assert!(!self.game, "work is taken during a game");
                    assert!(self.worker, "work is taken without a worker");
                }
                "kill worker" => {
                    self.worker = false;
                    self.leaving = true;
                }
                _ => {}
            }
        }
        assert!(!(self.game && self.worker), "a game and a worker");
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
