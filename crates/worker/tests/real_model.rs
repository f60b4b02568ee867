//! The built worker on a real model, over its pipe.
//!
//! They need `WAKATI_WORKER` (the program) and `WAKATI_TEST_MODEL` (a GGUF file).

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these helpers are parts of tests")]

#[path = "../src/bin/engine-bench/client.rs"]
mod client;

use std::io::Write;
use std::path::PathBuf;

use client::{Worker, job};
use wakati_protocol::PIPE_VERSION;
use wakati_protocol::job::{Bias, Cancel, Credit, Finish, Job, Sampling};
use wakati_protocol::pipe::{RefusedReason, from_worker, to_worker};

const CONTEXT: u32 = 512;
/// `<|im_end|>` of SmolLM2, the model's end token.
const END: u32 = 2;

fn path(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set")).into()
}

fn start(slots: u32) -> Worker {
    let mut worker =
        Worker::start(&path("WAKATI_WORKER"), &path("WAKATI_TEST_MODEL"), CONTEXT, slots).unwrap();
    worker.ready().unwrap().unwrap();
    worker
}

/// A prompt without meaning and without special tokens, another one for each salt.
fn prompt(length: u32, salt: u32) -> Vec<u32> {
    (0..length).map(|n| 1000 + (n * 7919 + salt * 104_729) % 20_000).collect()
}

fn warm(seed: u64) -> Sampling {
    // Kept from ending early, so that lengths are known.
    let bias = vec![Bias { token: END, add: -100.0 }];
    Sampling { temperature: 0.9, seed, bias, ..Sampling::default() }
}

/// Closes stdin and waits for the process: its exit code.
fn close(mut worker: Worker) -> Option<i32> {
    worker.stdin = None;
    // Its stdout ends when it ends; frames that were on their way are read and dropped.
    while worker.next().is_ok() {}
    worker.child.wait().unwrap().code()
}

fn one(worker: &mut Worker, job: Job) -> client::Answer {
    worker.answer(vec![job]).unwrap().remove(0)
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn a_worker_loads_and_says_what_it_is() {
    let model = path("WAKATI_TEST_MODEL");
    let mut worker = Worker::start(&path("WAKATI_WORKER"), &model, CONTEXT, 2).unwrap();
    let (hello, ready) = worker.ready().unwrap().unwrap();
    assert_eq!(hello.version, PIPE_VERSION);
    assert_eq!((ready.context, ready.slots), (CONTEXT, 2));
    assert!(ready.speed_centi_tps > 0 && ready.resident_bytes > 50 << 20);
    if cfg!(target_os = "linux") {
        assert!(hello.enforced.contains(&"network".to_owned()), "{:?}", hello.enforced);
    }
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn the_same_seed_gives_the_same_tokens_and_another_seed_others() {
    let mut worker = start(1);
    let mut run = |number, seed| one(&mut worker, job(number, prompt(24, 1), 24, warm(seed))).ids;
    let first = run(1, 7);
    assert_eq!(first.len(), 24);
    assert_eq!(run(2, 7), first);
    assert_ne!(run(3, 8), first);
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn a_resumed_job_goes_on_at_the_right_position_and_ends_validly() {
    let mut worker = start(1);
    let whole = one(&mut worker, job(1, prompt(24, 2), 32, warm(3)));
    let mut draws = Vec::new();
    for seed in [3, 4, 5, 6] {
        let whole = one(&mut worker, job(1, prompt(24, 2), 32, warm(seed)));
        for cut in [1_usize, 10, 31] {
            let emitted = whole.ids[..cut].to_vec();
            let resumed = Job { emitted, attempt: 2, ..job(2, prompt(24, 2), 32, warm(seed)) };
            let rest = one(&mut worker, resumed);
            assert_eq!(rest.first_position, Some(cut as u32));
            assert_eq!(rest.ids.len(), 32 - cut);
            assert_eq!((rest.end.finish(), rest.end.position), (Finish::Length, 32));
            draws.push(rest.ids[0] == whole.ids[cut]);
        }
    }
    // Prefill and decode round differently, so a near-tie may fall the other way; a wrong position would change
    // nearly every draw.
    assert!(draws.iter().filter(|same| **same).count() >= 9, "{draws:?}");
    let done = Job { emitted: whole.ids, ..job(3, prompt(24, 2), 32, warm(3)) };
    let nothing = one(&mut worker, done);
    assert_eq!((nothing.ids.len(), nothing.end.finish()), (0, Finish::Length));
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn a_cancelled_job_sends_at_most_two_more_tokens() {
    let mut worker = start(1);
    worker.send(to_worker::Body::Job(job(1, prompt(8, 3), 400, warm(1)))).unwrap();
    let (mut before, mut after, mut cancelled) = (0, 0, false);
    loop {
        match worker.next().unwrap().1 {
            from_worker::Body::Tokens(tokens) if cancelled => after += tokens.ids.len(),
            from_worker::Body::Tokens(tokens) => {
                before += tokens.ids.len();
                if before >= 5 {
                    worker.send(to_worker::Body::Cancel(Cancel { job: vec![1; 16], attempt: 1 })).unwrap();
                    cancelled = true;
                }
            }
            from_worker::Body::End(end) => {
                assert_eq!(end.finish(), Finish::Cancelled);
                assert_eq!(end.position as usize, before + after);
                break;
            }
            _ => {}
        }
    }
    assert!(after <= 2, "{after} tokens came after the cancel");
    // The slot is free again.
    assert_eq!(one(&mut worker, job(2, prompt(8, 3), 2, warm(1))).end.finish(), Finish::Length);
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn four_jobs_at_once_all_end_and_a_fifth_is_told_that_all_slots_are_taken() {
    let mut worker = start(4);
    let jobs = (0..5_u8).map(|n| job(n, prompt(8 + 6 * u32::from(n), n.into()), 12, warm(n.into())));
    let answers = worker.answer(jobs.collect()).unwrap();
    for answer in &answers[..4] {
        assert_eq!((answer.ids.len(), answer.end.finish()), (12, Finish::Length));
    }
    assert_eq!(answers[4].end.finish(), Finish::Busy);
    // Alone, a job gives what it gave among others.
    let alone = one(&mut worker, job(9, prompt(8, 0), 12, warm(0)));
    assert_eq!(alone.ids[0], answers[0].ids[0]);
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn tokens_wait_for_credit_and_the_end_waits_for_the_tokens() {
    let mut worker = start(1);
    let careful = Job { credit: 3, ..job(1, prompt(8, 4), 10, warm(1)) };
    worker.send(to_worker::Body::Job(careful)).unwrap();
    let (mut came, mut beats) = (0, 0);
    loop {
        match worker.next().unwrap().1 {
            from_worker::Body::Tokens(tokens) => came += tokens.ids.len(),
            // All ten are chosen long before: without credit they stay where they are.
            from_worker::Body::Beat(_) if came == 3 => {
                beats += 1;
                if beats == 3 {
                    let credit = Credit { job: vec![1; 16], attempt: 1, tokens: 7 };
                    worker.send(to_worker::Body::Credit(credit)).unwrap();
                }
            }
            from_worker::Body::End(end) => {
                assert_eq!((end.position, end.finish()), (10, Finish::Length));
                break;
            }
            _ => {}
        }
    }
    assert_eq!((came, beats >= 3), (10, true));
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn a_job_that_cannot_be_served_is_refused_with_its_reason_and_harms_no_other() {
    let mut worker = start(1);
    let nan = Sampling { temperature: f32::NAN, ..Sampling::default() };
    for (bad, detail) in [
        (job(1, prompt(CONTEXT, 1), 5, warm(1)), "no room"),
        (job(2, Vec::new(), 5, warm(1)), "empty"),
        (job(3, vec![u32::MAX], 5, warm(1)), "token id"),
        (job(4, prompt(4, 1), 5, nan), "temperature"),
    ] {
        let answer = one(&mut worker, bad);
        assert_eq!(answer.end.finish(), Finish::Refused);
        assert!(answer.end.detail.contains(detail), "{}", answer.end.detail);
    }
    // The context bounds an answer whose limit does not.
    let long = one(&mut worker, job(5, prompt(CONTEXT - 4, 1), 100, warm(1)));
    assert_eq!((long.ids.len(), long.end.finish()), (4, Finish::Length));
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn log_probabilities_come_with_each_token() {
    let mut worker = start(1);
    let sampling = Sampling { top_logprobs: Some(3), ..Sampling::default() };
    let answer = one(&mut worker, job(1, prompt(16, 5), 4, sampling));
    assert_eq!(answer.logprobs.len(), answer.ids.len());
    for (id, logprobs) in answer.ids.iter().zip(&answer.logprobs) {
        // Greedy: the chosen token is the most probable one.
        assert_eq!((logprobs.top.len(), logprobs.top[0].token), (3, *id));
        assert!(logprobs.chosen <= 0.0 && logprobs.chosen == logprobs.top[0].logprob);
    }
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn each_unusable_model_is_refused_for_its_own_reason() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("unusable-models");
    std::fs::create_dir_all(&folder).unwrap();
    let real = std::fs::read(path("WAKATI_TEST_MODEL")).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let file = folder.join(name);
        std::fs::File::create(&file).unwrap().write_all(bytes).unwrap();
        file
    };
    let strange = {
        let mut bytes = real.clone();
        let key = b"general.architecture";
        let at = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len() + 12;
        assert_eq!(&bytes[at..at + 5], b"llama");
        bytes[at..at + 5].copy_from_slice(b"blimp");
        bytes
    };
    for (file, slots, reason) in [
        (folder.join("nowhere.gguf"), 1, RefusedReason::NoFile),
        (write("text.gguf", b"this is not a model"), 1, RefusedReason::CorruptFile),
        (write("half.gguf", &real[..real.len() / 2]), 1, RefusedReason::CorruptFile),
        (write("strange.gguf", &strange), 1, RefusedReason::UnknownArchitecture),
        (path("WAKATI_TEST_MODEL"), 2_000_000, RefusedReason::DoesNotFit),
    ] {
        let mut worker = Worker::start(&path("WAKATI_WORKER"), &file, CONTEXT, slots).unwrap();
        let refused = worker.ready().unwrap().unwrap_err();
        assert_eq!(refused.reason(), reason, "{}", refused.detail);
        if reason == RefusedReason::DoesNotFit {
            assert!(refused.needed_bytes > refused.free_bytes && refused.free_bytes > 0);
        }
        assert_eq!(close(worker), Some(2));
    }
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn a_model_that_would_leave_others_too_little_is_refused() {
    let (worker, model) = (path("WAKATI_WORKER"), path("WAKATI_TEST_MODEL"));
    // A pebibyte.
    let mut worker = Worker::start_beside(&worker, &model, CONTEXT, 1, 1 << 30).unwrap();
    let refused = worker.ready().unwrap().unwrap_err();
    assert_eq!(refused.reason(), RefusedReason::DoesNotFit);
    assert!(refused.needed_bytes > 1 << 50 && refused.free_bytes < 1 << 50);
    assert_eq!(close(worker), Some(2));
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn a_worker_ends_when_its_stdin_ends_even_in_the_middle_of_a_job() {
    let mut worker = start(1);
    worker.send(to_worker::Body::Job(job(1, prompt(8, 6), 400, warm(1)))).unwrap();
    while !matches!(worker.next().unwrap().1, from_worker::Body::Tokens(_)) {}
    assert_eq!(close(worker), Some(0));
}
