//! A worker without a model: it speaks the real pipe and answers every job with the ids 0, 1, 2, ... by position.
//! Its "weights" file holds the milliseconds between two tokens.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use prost::bytes::BytesMut;
use wakati_protocol::job::{Credit, End, Finish, Tokens};
use wakati_protocol::pipe::{FromWorker, Ready, ToWorker, WorkerBeat, WorkerHello, from_worker, to_worker};
use wakati_protocol::{PIPE_VERSION, frame};

/// Where one job stands.
struct Running {
    position: u32,
    limit: u32,
    credit: u32,
}

type Name = (Vec<u8>, u32);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name).expect("the argument is there");
        arguments[at + 1].clone()
    };
    let pace = std::fs::read_to_string(after("--model")).expect("the weights are readable");
    let pace = Duration::from_millis(pace.trim().parse().expect("the weights are a number"));
    let (slots, context) = (after("--slots").parse().unwrap_or(1), after("--context").parse().unwrap_or(1));

    let (said, heard) = channel();
    std::thread::spawn(move || {
        let mut buffer = BytesMut::new();
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = std::io::stdin().read(&mut chunk) {
            buffer.extend_from_slice(&chunk[..read]);
            while let Some(ToWorker { body: Some(body) }) =
                frame::take(&mut buffer).expect("frames are sound")
            {
                said.send(body).expect("main listens");
            }
        }
        std::process::exit(0);
    });

    say(from_worker::Body::Hello(WorkerHello {
        version: PIPE_VERSION,
        variant: "cpu".into(),
        enforced: vec![],
    }));
    say(from_worker::Body::Ready(Ready { context, vocabulary: 1000, slots, ..Ready::default() }));
    let mut jobs: BTreeMap<Name, Running> = BTreeMap::new();
    let mut next = Instant::now() + pace;
    let mut beat = Instant::now();
    loop {
        match heard.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(body) => hear(body, &mut jobs),
            Err(RecvTimeoutError::Timeout) => {
                next = Instant::now() + pace;
                jobs.retain(step);
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if beat.elapsed() > Duration::from_secs(1) {
            beat = Instant::now();
            let active_jobs = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
            say(from_worker::Body::Beat(WorkerBeat { active_jobs, ..WorkerBeat::default() }));
        }
    }
}

fn hear(body: to_worker::Body, jobs: &mut BTreeMap<Name, Running>) {
    match body {
        to_worker::Body::Job(job) => {
            let position = u32::try_from(job.emitted.len()).unwrap_or(u32::MAX);
            let running = Running { position, limit: job.limit, credit: job.credit };
            jobs.insert((job.job, job.attempt), running);
        }
        to_worker::Body::Credit(Credit { job, attempt, tokens }) => {
            if let Some(running) = jobs.get_mut(&(job, attempt)) {
                running.credit += tokens;
            }
        }
        to_worker::Body::Cancel(cancel) => {
            let name = (cancel.job, cancel.attempt);
            if let Some(running) = jobs.remove(&name) {
                end(&name, &running, Finish::Cancelled);
            }
        }
    }
}

/// One token further; whether the job goes on.
fn step(name: &Name, running: &mut Running) -> bool {
    if running.position >= running.limit {
        end(name, running, Finish::Length);
        return false;
    }
    if running.credit > 0 {
        let (job, attempt) = name.clone();
        let position = running.position;
        say(from_worker::Body::Tokens(Tokens {
            job,
            attempt,
            first_position: position,
            ids: vec![position],
            logprobs: vec![],
        }));
        running.credit -= 1;
        running.position += 1;
    }
    true
}

fn end((job, attempt): &Name, running: &Running, finish: Finish) {
    say(from_worker::Body::End(End {
        job: job.clone(),
        attempt: *attempt,
        finish: finish.into(),
        position: running.position,
        ..End::default()
    }));
}

fn say(body: from_worker::Body) {
    let mut wire = BytesMut::new();
    frame::put(&FromWorker::from(body), &mut wire);
    let mut out = std::io::stdout().lock();
    out.write_all(&wire).and_then(|()| out.flush()).expect("the node reads");
}
