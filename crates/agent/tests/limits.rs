//! The owner's limits as rows: heat, power, sleep, the calendar, presence, and others who need the GPU.

mod stage;

use std::time::Duration;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use stage::{Stage, row};
use wakati_agent::{Activity, Calendar, Observation, Rest, Rules, Window};

/// Giving the machine back, to a limit.
const LIMIT: [&str; 4] = ["stop taking", "hand back: Limit", "kill worker", "check memory"];

fn then<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    LIMIT.iter().chain(rest).copied().collect()
}

#[test]
fn others_that_keep_the_gpu_busy_for_ten_seconds_get_it() {
    row(Stage::serving(), "0s others busy / 9s others busy / 1s others busy", &LIMIT);
    row(Stage::serving(), "0s others busy / 9s others between / 1s others busy / 9s others busy", &[]);
    let mut stage = Stage::serving();
    stage.play("0s others busy / 10s others busy / 1s back");
    assert_eq!(stage.play("1s others calm / 89s others calm"), [""; 0]);
    assert_eq!(stage.play("1s others calm"), ["warm: Processor"]);
}

#[test]
fn a_gpu_that_falls_silent_changes_nothing() {
    row(Stage::serving(), "0s others busy / 60m", &[]);
    row(Stage::serving(), "0s hot / 60m", &[]);
}

#[test]
fn memory_under_the_reserve_is_given_at_once() {
    row(Stage::serving(), "0s vram short / 1s back", &then(&["rest: GpuMemory"]));
    row(Stage::serving(), "0s vram free / 60m vram free", &[]);
}

#[test]
fn heat_rests_until_the_gpu_has_cooled_well_below_its_limit() {
    row(Stage::serving(), "0s hot / 9s hot / 1s warm / 9s hot", &[]);
    let mut stage = Stage::serving();
    assert_eq!(stage.play("0s hot / 10s hot / 1s back"), then(&["rest: TooHot"]));
    assert_eq!(stage.play("1m warm / 10m warm / 0s cool / 59s cool"), [""; 0]);
    assert_eq!(stage.play("1s cool"), ["warm: Processor"]);
}

#[test]
fn a_battery_rests_unless_the_owner_allows_it() {
    row(Stage::serving(), "0s battery / 1s back / 60m mains", &then(&["rest: OnBattery", "warm: Processor"]));
    row(Stage::serving_by(Rules { on_battery: true, ..Rules::default() }), "0s battery / 60m", &[]);
    let waved = then(&["rest: OnBattery", "warm: Processor", "offer"]);
    row(Stage::serving(), "0s battery / 1s back / 1s serve anyway / 3s ready / 60m", &waved);
    // What was waved aside holds until it ends by itself.
    let again = [waved, LIMIT.to_vec()].concat();
    row(
        Stage::serving(),
        "0s battery / 1s back / 1s serve anyway / 3s ready / 1m mains / 1m battery",
        &again,
    );
}

#[test]
fn sleep_is_gone_to_without_a_model_and_woken_from_with_one() {
    row(
        Stage::serving(),
        "0s going to sleep / 1s back / 600m awake",
        &then(&["rest: Sleeping", "warm: Processor"]),
    );
    row(
        Stage::serving(),
        "0s going to sleep / 1s back / 1s serve anyway",
        &then(&["rest: Sleeping", "refused: NothingToOverride"]),
    );
}

#[test]
fn a_film_is_the_owners_choice_and_never_a_game() {
    row(Stage::serving(), "0s film / 60m", &[]);
    let mut stage = Stage::serving_by(Rules { beside_films: false, ..Rules::default() });
    assert_eq!(stage.play("0s film / 1s back"), then(&["rest: Film"]));
    assert_eq!(stage.play("90m desktop"), ["warm: Processor"]);
}

#[test]
fn serving_only_when_away_begins_when_nobody_has_touched_the_machine_for_so_long() {
    let rules = Rules { away: Some(Duration::from_secs(300)), ..Rules::default() };
    let mut stage = Stage::serving_by(rules);
    assert_eq!(stage.play("0s touched / 1s back"), then(&["rest: Present"]));
    assert_eq!(stage.play("0s untouched 4m / 59s"), [""; 0]);
    assert_eq!(stage.play("1s / 3s ready"), ["warm: Processor", "offer"]);
    assert_eq!(stage.play("60m touched"), LIMIT);
}

#[test]
fn the_calendar_opens_and_closes_by_itself() {
    let night = |time: &str| time.parse().unwrap();
    let window = Window { days: vec![Weekday::Monday], from: night("22:00"), to: night("06:00") };
    let calendar = Calendar { windows: vec![window], exceptions: Vec::new() };
    let mut stage = Stage::serving_by(Rules { calendar, ..Rules::default() });
    // 2026-06-01 is a Monday.
    let local: jiff::civil::DateTime = "2026-06-01T21:00".parse().unwrap();
    stage.agent.see(stage.now, Observation::Clock(local.to_zoned(TimeZone::UTC).unwrap()));
    assert_eq!(stage.play("0s / 1s back"), then(&["rest: Closed"]));
    let Activity::Resting(Rest::Closed { opens: Some(opens) }) = stage.agent.status().activity else {
        panic!()
    };
    assert_eq!(opens, "2026-06-01T22:00".parse().unwrap());
    assert_eq!(stage.play("59m"), [""; 0]);
    assert_eq!(stage.play("1m / 3s ready"), ["warm: Processor", "offer"]);
    assert_eq!(stage.play("479m"), [""; 0]);
    assert_eq!(stage.play("1m / 1s back"), then(&["rest: Closed"]));
    assert_eq!(stage.play("1s serve anyway / 3s ready"), ["warm: Processor", "offer"]);
}

#[test]
fn a_game_outranks_a_pause_and_a_pause_every_limit() {
    let mut stage = Stage::serving();
    stage.play("0s battery / 1s back / 0s pause / 0s game");
    let rest = |stage: &Stage| {
        let Activity::Resting(rest) = stage.agent.status().activity else { panic!("it does not rest") };
        rest
    };
    assert!(matches!(rest(&stage), Rest::Game { .. }));
    stage.play("1m quiet");
    assert!(matches!(rest(&stage), Rest::Paused { .. }));
    stage.play("0s resume");
    assert!(matches!(rest(&stage), Rest::QuietAfterGame { .. } | Rest::OnBattery));
}
