//! Which signs make a game, how long it lasts, and when serving returns.

mod stage;

use stage::{Stage, row};
use wakati_agent::{Activity, Kind, Rest};

/// Giving the machine back, to a game.
const GAME: [&str; 4] = ["stop taking", "hand back: Game", "kill worker", "check memory"];
const RESTED: [&str; 5] = ["stop taking", "hand back: Game", "kill worker", "check memory", "rest: Game"];

fn then<'a>(first: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    first.iter().chain(rest).copied().collect()
}

#[test]
fn one_hard_sign_is_enough() {
    for sign in ["game", "game mode", "remote play", "headset"] {
        row(Stage::serving(), &format!("5s {sign}"), &GAME);
    }
}

#[test]
fn one_soft_sign_is_not_whatever_it_is() {
    for sign in ["game folder", "wine", "full screen", "browser full screen", "film"] {
        row(Stage::serving(), &format!("5s {sign} / 60m"), &[]);
    }
}

#[test]
fn two_kinds_of_soft_signs_of_one_process_within_ten_seconds_are() {
    row(Stage::serving(), "5s wine game folder", &GAME);
    row(Stage::serving(), "5s game folder / 60m full screen", &GAME);
    row(Stage::serving(), "5s full screen / 1s desktop / 8s game folder", &GAME);
    row(Stage::serving(), "5s full screen / 1s desktop / 11s game folder", &[]);
    // Two programs, one sign each.
    row(Stage::serving(), "5s wine / 1s browser full screen / 60m", &[]);
}

#[test]
fn what_began_by_soft_signs_lasts_while_its_process_shows_any() {
    let mut stage = Stage::serving();
    assert_eq!(stage.play("0s game folder / 1s full screen / 1s back"), RESTED);
    assert_eq!(stage.play("10m desktop / 30m full screen / 1m desktop / 60m"), [""; 0]);
    assert_eq!(stage.play("0s quiet / 89s"), ["rest: QuietAfterGame"]);
    assert_eq!(stage.play("1s"), ["warm: Processor"]);
}

/// O2
#[test]
fn serving_returns_by_itself_but_not_while_remote_play_goes_on() {
    let mut stage = Stage::serving();
    assert_eq!(
        stage.play("0s game / 1s back / 20m quiet / 30s"),
        [&RESTED[..], &["rest: QuietAfterGame", "warm: Processor"]].concat()
    );
    let mut stage = Stage::serving();
    stage.play("0s game remote play / 1s back");
    assert_eq!(stage.play("20m remote play / 60m"), ["rest: Game"]);
    assert_eq!(stage.play("0s quiet / 30s"), ["rest: QuietAfterGame", "warm: Processor"]);
}

#[test]
fn a_game_is_told_with_the_signs_that_decided_it() {
    let mut stage = Stage::serving();
    stage.play("0s game folder / 1s full screen / 1s back");
    let because = vec![Kind::GameFolder, Kind::FullScreen];
    let rest = Rest::Game { name: "Doom".into(), because };
    assert_eq!(stage.agent.status().activity, Activity::Resting(rest));
}

#[test]
fn a_flag_that_outlives_its_process_counts_for_a_minute() {
    let mut stage = Stage::serving();
    assert_eq!(stage.play("0s game mode / 1s back"), RESTED);
    assert_eq!(stage.play("40m stale game mode / 59s"), [""; 0]);
    assert_eq!(stage.play("1s"), ["rest: QuietAfterGame"]);
    assert_eq!(stage.play("30s"), ["warm: Processor"]);
    // It stays known as stale, however long it stays.
    row(stage, "4s ready / 60m stale game mode", &["offer"]);
}

#[test]
fn a_sense_that_cannot_look_changes_nothing() {
    row(Stage::serving(), "0s game mode blind / 60m", &[]);
    let mut stage = Stage::serving();
    assert_eq!(stage.play("0s game mode / 1s back"), RESTED);
    assert_eq!(stage.play("1s game mode blind / 60m"), [""; 0]);
    assert_eq!(stage.play("0s no game mode"), ["rest: QuietAfterGame"]);
}

#[test]
fn a_game_seen_by_one_sense_is_not_ended_by_another() {
    let mut stage = Stage::serving();
    assert_eq!(stage.play("0s game mode / 1s back"), RESTED);
    assert_eq!(stage.play("1s quiet / 1s desktop / 1s quiet / 60m"), [""; 0]);
}

#[test]
fn serving_that_flaps_waits_twice_as_long_each_time_and_never_over_fifteen_minutes() {
    let mut stage = Stage::serving();
    for wait in [30, 60, 120, 240, 480, 900, 900] {
        stage.play("1m game / 1s back / 1m quiet");
        assert_eq!(stage.play(&format!("{}s", wait - 1)), [""; 0], "{wait} s");
        assert_eq!(stage.play("1s / 3s ready"), ["warm: Processor", "offer"], "{wait} s");
    }
    // Two hours without a game, and it is forgotten.
    stage.play("120m game / 1s back / 1m quiet");
    assert_eq!(stage.play("30s"), ["warm: Processor"]);
}

#[test]
fn rounds_within_the_quiet_time_are_one_evening_and_no_flapping() {
    let mut stage = Stage::serving();
    stage.play("1m game / 1s back");
    for _ in 0..20 {
        assert_eq!(stage.play("5m quiet / 20s game"), ["rest: QuietAfterGame", "rest: Game"]);
    }
    assert_eq!(stage.play("5m quiet / 30s"), ["rest: QuietAfterGame", "warm: Processor"]);
}

#[test]
fn the_owner_may_serve_beside_a_game_until_it_ends() {
    let mut stage = Stage::in_a_game();
    assert_eq!(stage.play("1s serve anyway / 3s ready"), ["warm: Processor", "offer"]);
    assert_eq!(stage.play("30m quiet / 1m"), [""; 0]);
    // The next game has the machine again.
    assert_eq!(stage.play("1m game"), GAME);
}

#[test]
fn another_game_than_the_one_waved_aside_takes_the_machine() {
    let mut stage = Stage::in_a_game();
    stage.play("1s serve anyway / 3s ready");
    assert_eq!(stage.play("1m other game / 1s back"), then(&GAME, &["rest: Game"]));
}

#[test]
fn there_must_be_something_to_wave_aside() {
    row(Stage::serving(), "1s serve anyway", &["refused: NothingToOverride"]);
    row(
        Stage::serving(),
        "1s pause / 1s back / 1s serve anyway",
        &[
            "stop taking",
            "hand back: Owner",
            "kill worker",
            "check memory",
            "rest: Paused",
            "refused: NothingToOverride",
        ],
    );
}

#[test]
fn what_may_be_waved_aside_says_so_and_is_granted() {
    for (script, may) in [
        ("0s game / 1s back", true),
        ("0s battery / 1s back", true),
        ("0s hot / 10s / 1s back", false),
        ("0s going to sleep / 1s back", false),
        ("0s pause / 1s back", false),
    ] {
        let mut stage = Stage::serving();
        stage.play(script);
        assert_eq!(stage.agent.status().may_serve_anyway(), may, "{script}");
        let refused = stage.play("0s serve anyway").iter().any(|did| did.contains("refused"));
        assert_eq!(refused, !may, "{script}");
    }
}
