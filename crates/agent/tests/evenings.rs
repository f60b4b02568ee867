//! Evenings as rows: what happens, and what the agent wants done.

mod stage;

use stage::{Stage, row};
use wakati_agent::{Activity, Agent, Fault, Moment, Rest, Rules, SettingProblem};
use wakati_protocol::desk::{Primary, Shape};

/// Giving the machine back, to a game.
const GAME: [&str; 4] = ["stop taking", "hand back: Game", "kill worker", "check memory"];
const OWNER: [&str; 4] = ["stop taking", "hand back: Owner", "kill worker", "check memory"];
const FAULT: [&str; 4] = ["stop taking", "hand back: Fault", "kill worker", "check memory"];

fn then<'a>(first: [&'a str; 4], rest: &[&'a str]) -> Vec<&'a str> {
    first.iter().chain(rest).copied().collect()
}

#[test]
fn a_game_takes_the_machine_in_one_go() {
    row(Stage::serving(), "5s game", &GAME);
    row(Stage::serving(), "5s game / 1s game / 1s back / 40m game", &then(GAME, &["rest: Game"]));
}

#[test]
fn returning_waits_for_thirty_quiet_seconds() {
    row(Stage::in_a_game(), "40m quiet / 29s quiet", &["rest: QuietAfterGame"]);
    let served = ["rest: QuietAfterGame", "warm: Processor", "offer"];
    row(Stage::in_a_game(), "40m quiet / 30s / 4s ready", &served);
}

#[test]
fn another_round_within_the_quiet_time_begins_it_anew() {
    let again = ["rest: QuietAfterGame", "rest: Game", "rest: QuietAfterGame"];
    row(Stage::in_a_game(), "40m quiet / 20s other game / 1m quiet / 29s", &again);
    row(Stage::in_a_game(), "40m other game / 1s quiet", &["rest: Game", "rest: QuietAfterGame"]);
}

#[test]
fn a_game_that_ends_before_the_memory_is_back_still_leaves_a_quiet_time() {
    let all = then(GAME, &["rest: QuietAfterGame", "warm: Processor"]);
    row(Stage::serving(), "0s game / 1s quiet / 1s back / 29s", &all);
}

#[test]
fn after_a_restart_during_a_game_nothing_is_loaded() {
    let mut stage = Stage::starting();
    assert_eq!(stage.agent.status().activity, Activity::Resting(Rest::Starting));
    assert_eq!(stage.play("0s game / 3s game / 10m game"), ["rest: Game"]);
}

#[test]
fn nothing_is_loaded_before_processes_and_gpu_were_looked_at() {
    let mut stage =
        Stage { agent: Agent::new(Rules { on_processor: true, ..Rules::default() }), now: Moment(0) };
    assert_eq!(stage.play("0s model / 0s broker / 0s quiet / 1m"), [""; 0]);
    assert_eq!(stage.play("0s no gpu"), ["warm: Processor"]);
    row(Stage::starting(), "1m / 0s quiet", &["warm: Processor"]);
}

#[test]
fn a_game_during_loading_stops_it() {
    row(Stage::starting(), "0s quiet / 1s loading / 1s game", &then_after("warm: Processor", GAME));
}

fn then_after<'a>(first: &'a str, rest: [&'a str; 4]) -> Vec<&'a str> {
    std::iter::once(first).chain(rest).collect()
}

#[test]
fn a_pause_ends_by_itself_and_warms_again() {
    let all = then(OWNER, &["rest: Paused", "warm: Processor"]);
    row(Stage::serving(), "0s pause 10m / 1s back / 9m / 59s", &all);
    row(Stage::serving(), "0s pause / 1s back / 600m", &then(OWNER, &["rest: Paused"]));
    row(
        Stage::serving(),
        "0s pause / 1s back / 1s resume",
        &then(OWNER, &["rest: Paused", "warm: Processor"]),
    );
}

#[test]
fn a_pause_that_ends_during_a_game_leaves_the_machine_at_rest() {
    let all = then(OWNER, &["rest: Paused", "rest: Game"]);
    row(Stage::serving(), "0s pause 10m / 1s back / 5m game / 60m game", &all);
}

#[test]
fn resuming_during_a_game_is_refused() {
    row(Stage::in_a_game(), "1s resume", &["refused: GameRunning"]);
    row(
        Stage::in_a_game(),
        "1s pause / 1s resume / 1s quiet / 60m",
        &["refused: GameRunning", "rest: Paused"],
    );
}

#[test]
fn resuming_ends_the_quiet_time_and_nothing_else_to_resume_is_refused() {
    row(Stage::in_a_game(), "40m quiet / 1s resume", &["rest: QuietAfterGame", "warm: Processor"]);
    row(Stage::serving(), "1s resume", &["refused: NotPaused"]);
}

#[test]
fn quitting_hands_back_first() {
    row(Stage::serving(), "1s two jobs / 1s quit / 1s back", &then(OWNER, &["rest: Quitting", "finish"]));
    row(Stage::in_a_game(), "1s quit", &["rest: Quitting", "finish"]);
    row(
        Stage::in_a_game(),
        "1s quit / 1s pause / 1s resume",
        &["rest: Quitting", "finish", "refused: Quitting", "refused: Quitting"],
    );
}

#[test]
fn a_worker_that_ends_by_itself_is_started_again_after_a_wait() {
    let once = then(FAULT, &["rest: WorkerEnded", "warm: Processor"]);
    row(Stage::serving(), "0s gone / 0s back / 1s", &once);
    row(Stage::serving(), "0s gone / 0s back", &then(FAULT, &["rest: WorkerEnded"]));
}

#[test]
fn five_ends_in_fifteen_minutes_wait_for_the_owner() {
    let mut stage = Stage::serving();
    for _ in 0..4 {
        stage.play("0s gone / 0s back / 1m ready");
    }
    assert!(matches!(stage.agent.status().activity, Activity::Serving { .. }));
    assert_eq!(stage.play("0s gone / 0s back / 60m"), then(FAULT, &["rest: Fault"]));
    let status = stage.agent.status();
    assert_eq!(status.faults, [Fault::WorkerKeepsEnding { times: 5, within_minutes: 15 }]);
    assert_eq!((status.activity.shape(), status.primary()), (Shape::NeedsYou, Primary::Resume));
    assert_eq!(stage.play("0s resume / 1s ready"), ["warm: Processor", "offer"]);
}

#[test]
fn ends_that_are_far_apart_are_forgotten() {
    let mut stage = Stage::serving();
    for _ in 0..20 {
        stage.play("8m gone / 0s back / 1m ready");
        assert!(matches!(stage.agent.status().activity, Activity::Serving { .. }));
    }
}

#[test]
fn a_worker_that_cannot_be_started_waits_for_the_owner() {
    let mut stage = Stage::starting();
    assert_eq!(stage.play("0s quiet / 0s no worker"), then_after("warm: Processor", FAULT));
    assert_eq!(stage.play("0s back / 60m"), ["rest: Fault"]);
    assert_eq!(stage.play("0s resume"), ["warm: Processor"]);
}

#[test]
fn a_model_that_does_not_fit_now_is_tried_again_by_itself() {
    let mut stage = Stage::starting();
    assert_eq!(stage.play("0s quiet / 1s too large / 0s gone"), then_after("warm: Processor", FAULT));
    let rest = Rest::NoRoom { needed_mebibytes: 9000, free_mebibytes: 4000 };
    assert_eq!(stage.play("0s back"), ["rest: NoRoom"]);
    assert_eq!(stage.agent.status().activity, Activity::Resting(rest));
    for wait in [59, 119, 299, 899, 899] {
        assert_eq!(stage.play(&format!("{wait}s")), [""; 0]);
        assert_eq!(stage.play("1s"), ["warm: Processor"]);
        stage.play("0s too large / 0s gone / 0s back");
    }
    assert_eq!(stage.play("0s resume / 1s ready"), ["warm: Processor", "offer"]);
}

#[test]
fn a_pause_is_over_by_the_owners_clock_when_the_machine_has_slept() {
    let all = then(OWNER, &["rest: Paused", "warm: Processor"]);
    row(Stage::serving(), "0s pause 10m / 1s back / 1m half past nine", &all);
}

#[test]
fn nothing_is_sold_at_a_price_that_cannot_be_read() {
    let problem = SettingProblem::BadValue { option: "prices.output".into() };
    let rules = Rules { on_processor: true, unusable: Some(problem), ..Rules::default() };
    let mut stage = Stage { agent: Agent::new(rules), now: Moment(0) };
    assert_eq!(stage.play("0s model / 0s broker / 0s no gpu / 0s quiet / 60m"), ["rest: Fault"]);
    assert_eq!(stage.play("0s resume"), ["refused: NotPaused"]);
}

#[test]
fn memory_that_is_still_held_is_checked_again_and_told() {
    let mut stage = Stage::serving();
    assert_eq!(stage.play("0s game / 1s held"), GAME);
    assert_eq!(stage.agent.status().faults, [Fault::MemoryHeld { mebibytes: Some(300) }]);
    assert_eq!(stage.play("1s / 1s back"), ["kill worker", "check memory", "rest: Game"]);
    assert_eq!(stage.agent.status().faults, []);
    // No answer at all is asked for again as well.
    let again = then(GAME, &["kill worker", "check memory"]);
    row(Stage::serving(), "0s game / 5s", &again);
}

#[test]
fn a_worker_that_never_gets_ready_is_taken_for_hung() {
    row(Stage::starting(), "0s quiet / 9m loading / 9m more loaded / 9m", &["warm: Processor"]);
    // Saying the same again is no progress.
    row(
        Stage::starting(),
        "0s quiet / 1m loading / 5m loading / 5m loading",
        &then_after("warm: Processor", FAULT),
    );
    row(Stage::starting(), "0s quiet / 10m", &then_after("warm: Processor", FAULT));
}

#[test]
fn a_lost_broker_keeps_the_model_warm_and_says_so() {
    let mut stage = Stage::serving();
    assert_eq!(stage.play("0s no broker / 60m"), [""; 0]);
    assert!(matches!(stage.agent.status().activity, Activity::Unreachable { .. }));
    assert_eq!(stage.agent.status().activity.shape(), Shape::Resting);
    assert_eq!(stage.play("0s broker"), ["offer"]);
}

#[test]
fn nothing_is_loaded_for_a_broker_that_is_not_there() {
    for (link, rest) in
        [("never joined", "NotJoined"), ("no broker", "Connecting"), ("not invited", "BrokerRefused")]
    {
        let script = format!("0s {link} / 1s quiet / 60m");
        row(Stage::starting(), &script, &[&format!("rest: {rest}")]);
    }
    // Each new try of a refused node says nothing about the next answer.
    row(
        Stage::starting(),
        "0s not invited / 0s quiet / 1s no broker / 1s broker",
        &["rest: BrokerRefused", "warm: Processor"],
    );
}

#[test]
fn without_a_gpu_the_processor_serves_only_if_the_owner_said_so() {
    let mut stage = Stage { agent: Agent::new(Rules::default()), now: Moment(0) };
    assert_eq!(stage.play("0s model / 0s broker / 0s no gpu / 0s quiet"), ["rest: NoGpu"]);
    assert_eq!(stage.play("90s gpu / 5s ready"), ["warm: Gpu", "offer"]);
    assert_eq!(stage.play("0s gpu silent"), [""; 0]);
    assert_eq!(stage.agent.status().faults, [Fault::GpuUnreadable]);
}

#[test]
fn a_blind_process_sense_is_a_fault_and_not_a_game() {
    let mut stage = Stage::serving();
    assert_eq!(stage.play("0s blind / 1m"), [""; 0]);
    assert_eq!(stage.agent.status().faults, [Fault::ProcessesUnreadable]);
    // What was seen before the sense failed still holds.
    row(Stage::in_a_game(), "0s blind / 60m blind", &[]);
}

#[test]
fn a_model_that_is_taken_away_is_not_served() {
    row(Stage::serving(), "0s no model / 0s back", &then(FAULT, &["rest: NoModel"]));
}

#[test]
fn a_stretch_of_the_day_can_be_stored_and_read_again() {
    let stage = Stage::in_a_game();
    let activity = stage.agent.status().activity;
    let json = serde_json::to_string(&activity).unwrap();
    assert_eq!(json, r#"{"resting":{"game":{"name":"Elden Ring","because":["owners_list"]}}}"#);
    assert_eq!(serde_json::from_str::<Activity>(&json).unwrap(), activity);
}
