//! Jobs, receipts, credit, games and pauses, seen from the broker and from the desk.

use std::process::Command;

use crate::common::{Broker, House, PATIENCE, PRICES, Session};
use wakati_protocol::desk::{Answer, Ask, LinkState, Shape};
use wakati_protocol::job::{Cancel, Credit, Finish, Job};
use wakati_protocol::link::{YieldReason, to_broker, to_node};
use wakati_protocol::money::{NanoUsd, Price, Prices};

/// Reads an attempt's tokens to its end; the ids in order.
async fn answer(session: &mut Session, job: &Job) -> (Vec<u32>, Finish) {
    let mut ids = job.emitted.clone();
    loop {
        match session.next().await {
            to_broker::Body::Tokens(tokens) => {
                assert_eq!((&tokens.job, tokens.attempt), (&job.job, job.attempt));
                assert_eq!(tokens.first_position as usize, ids.len(), "the position is next");
                ids.extend(tokens.ids);
            }
            to_broker::Body::End(end) => {
                assert_eq!(end.position as usize, ids.len());
                return (ids, end.finish());
            }
            other => panic!("{other:?}"),
        }
    }
}

async fn ack(session: &mut Session) -> u64 {
    match session.next().await {
        to_broker::Body::ReceiptAck(ack) => ack.sequence,
        other => panic!("an acknowledgement was expected, not {other:?}"),
    }
}

#[tokio::test]
async fn a_job_is_served_and_its_receipt_is_earned_once_however_often_it_comes() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 1, "");
    let node = house.start().await;
    let mut session = broker.welcome().await;
    assert_eq!((session.hello.invite.as_str(), session.hello.receipts_to), ("an-invite", 0));
    let offer = session.offer().await.models.remove(0);
    assert_eq!((offer.model.as_slice(), offer.context, offer.slots), (&house.digest.0[..], 512, 2));
    assert_eq!(Prices { input: Price(offer.input_price), output: Price(offer.output_price) }, PRICES);

    let job = house.job(1, 20);
    session.say(to_node::Body::Job(job.clone())).await;
    let (ids, finish) = answer(&mut session, &job).await;
    assert_eq!((ids, finish), ((0..20).collect(), Finish::Length));

    let receipt = broker.receipt(&session.hello, &job, 1, 20);
    for _ in 0..2 {
        session.say(to_node::Body::Receipt(receipt.clone())).await;
        assert_eq!(ack(&mut session).await, 1);
    }
    // 3 prompt tokens and 20 generated ones are 150 + 2000 nano-USD; 70% of it is 1505.
    let snapshot = node.until("it is earned", |s| s.figures.is_some_and(|f| f.today == NanoUsd(1_505))).await;
    assert_eq!(snapshot.figures.unwrap().jobs_today, 1);
    let Answer::Earnings { rows } = node.handle.ask(Ask::Earnings).await else { panic!() };
    assert_eq!(rows.iter().map(|row| (row.sequence, row.pay)).collect::<Vec<_>>(), [(1, NanoUsd(1_505))]);
    node.end().await;

    // The next session says what is stored.
    let node = house.start().await;
    assert_eq!(broker.welcome().await.hello.receipts_to, 1);
    node.end().await;
}

#[tokio::test]
async fn a_job_that_was_begun_elsewhere_goes_on_at_its_position() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 1, "");
    let node = house.start().await;
    let mut session = broker.welcome().await;
    session.offer().await;
    let job = Job { attempt: 2, emitted: (0..7).collect(), ..house.job(1, 12) };
    session.say(to_node::Body::Job(job.clone())).await;
    assert_eq!(answer(&mut session, &job).await, ((0..12).collect(), Finish::Length));
    node.end().await;
}

#[tokio::test]
async fn a_receipt_with_wrong_pay_is_not_acknowledged_and_not_counted() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 1, "");
    let node = house.start().await;
    let mut session = broker.welcome().await;
    session.offer().await;
    let job = house.job(1, 5);
    session.say(to_node::Body::Job(job.clone())).await;
    answer(&mut session, &job).await;
    let mut short = broker.receipt(&session.hello, &job, 1, 5);
    short.pay -= 1;
    session.say(to_node::Body::Receipt(broker.signed(short))).await;
    let too_many = broker.receipt(&session.hello, &job, 2, 6);
    session.say(to_node::Body::Receipt(too_many)).await;
    // The right one after them is the only one that is answered.
    session.say(to_node::Body::Receipt(broker.receipt(&session.hello, &job, 3, 4))).await;
    assert_eq!(ack(&mut session).await, 3);
    let snapshot = node.until("the owner is told", |s| !s.faults.is_empty()).await;
    assert_eq!(snapshot.shape, Shape::Serving);
    node.end().await;
}

#[tokio::test]
async fn credit_limits_what_is_sent_and_a_cancel_ends_it() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 1, "");
    let node = house.start().await;
    let mut session = broker.welcome().await;
    session.offer().await;
    let job = Job { credit: 3, ..house.job(1, 400) };
    session.say(to_node::Body::Job(job.clone())).await;
    for position in 0..3 {
        assert_eq!(session.tokens().await.first_position, position);
    }
    // A fourth token may only come after this.
    session.say(to_node::Body::Credit(Credit { job: job.job.clone(), attempt: 1, tokens: 1 })).await;
    assert_eq!(session.tokens().await.first_position, 3);
    session.say(to_node::Body::Cancel(Cancel { job: job.job.clone(), attempt: 1 })).await;
    let to_broker::Body::End(end) = session.next().await else { panic!("the end was expected") };
    assert_eq!((end.finish(), end.position), (Finish::Cancelled, 4));
    node.end().await;
}

#[tokio::test]
async fn more_jobs_than_slots_are_busy_and_bad_ones_are_refused() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 1, "");
    let node = house.start().await;
    let mut session = broker.welcome().await;
    session.offer().await;
    for name in [1, 2] {
        session.say(to_node::Body::Job(Job { credit: 0, ..house.job(name, 9) })).await;
    }
    session.say(to_node::Body::Job(house.job(3, 9))).await;
    let to_broker::Body::End(end) = session.next().await else { panic!("an end was expected") };
    assert_eq!((end.job[0], end.finish()), (3, Finish::Busy));
    session.say(to_node::Body::Cancel(Cancel { job: vec![1; 16], attempt: 1 })).await;
    let to_broker::Body::End(end) = session.next().await else { panic!("an end was expected") };
    assert_eq!((end.job[0], end.finish()), (1, Finish::Cancelled));
    session.say(to_node::Body::Job(Job { prompt: vec![1; 512], ..house.job(4, 9) })).await;
    let to_broker::Body::End(end) = session.next().await else { panic!("an end was expected") };
    assert_eq!((end.job[0], end.finish()), (4, Finish::Refused));
    node.end().await;
}

#[tokio::test]
async fn a_link_cut_in_mid_job_ends_its_attempts_and_is_dialled_again() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 5, "");
    let node = house.start().await;
    let mut session = broker.welcome().await;
    session.offer().await;
    let job = house.job(1, 400);
    session.say(to_node::Body::Job(job.clone())).await;
    session.tokens().await;
    drop(session);
    node.until("its attempts are over", |s| s.link == LinkState::Dialling && s.active_jobs == 0).await;
    let mut session = broker.welcome().await;
    session.offer().await;
    // Nothing of the lost attempt is said in the new session, and the slot is free again.
    let again = Job { attempt: 3, ..house.job(1, 6) };
    let served = async {
        loop {
            session.say(to_node::Body::Job(again.clone())).await;
            let (ids, finish) = answer(&mut session, &again).await;
            if finish != Finish::Busy {
                return ids;
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, served).await.unwrap(), (0..6).collect::<Vec<_>>());
    node.end().await;
}

#[tokio::test]
async fn a_game_gets_the_machine_and_the_jobs_go_on_elsewhere() {
    let broker = Broker::listen().await;
    let games = "[games]\nprograms = [\"pretend-saga\"]\nquiet_seconds = 1\npoll_milliseconds = 50\n";
    let house = House::build(&broker.url(), 5, games);
    let node = house.start().await;
    let mut session = broker.welcome().await;
    session.offer().await;
    let job = house.job(1, 500);
    session.say(to_node::Body::Job(job.clone())).await;
    let first = session.tokens().await;

    let game = house.path().join("pretend-saga");
    std::fs::copy("/bin/sleep", &game).unwrap();
    // Started by a shell that ends at once: what the node's own process starts is no game.
    let mut launcher = Command::new("sh");
    launcher.args(["-c", "\"$0\" 600 >/dev/null 2>&1 & echo $!"]).arg(&game);
    let playing = String::from_utf8(launcher.output().unwrap().stdout).unwrap();
    let mut next = first.first_position + 1;
    let yielding = loop {
        match session.next().await {
            to_broker::Body::Tokens(tokens) => next = tokens.first_position + 1,
            to_broker::Body::Yielding(yielding) => break yielding,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(yielding.reason(), YieldReason::Game);
    assert_eq!(yielding.handed_back.len(), 1);
    assert_eq!((yielding.handed_back[0].attempt, yielding.handed_back[0].position), (1, next));
    let to_broker::Body::Offer(offer) = session.next().await else { panic!("an empty offer goes with it") };
    assert_eq!(offer.models, []);
    let resting = node
        .until("it rests and says for what", |s| s.shape == Shape::Resting && s.last_hand_over.is_some())
        .await;
    let hand_over = resting.last_hand_over.unwrap();
    assert_eq!(hand_over.jobs_handed_back, 1);
    assert!(hand_over.stopped_ms <= hand_over.worker_gone_ms);
    assert!(hand_over.worker_gone_ms <= hand_over.memory_back_ms);

    // What crosses with the yield is sent elsewhere without blame.
    session.say(to_node::Body::Job(house.job(2, 9))).await;
    let to_broker::Body::End(end) = session.next().await else { panic!("an end was expected") };
    assert_eq!(end.finish(), Finish::Busy);

    assert!(Command::new("kill").arg(playing.trim()).status().unwrap().success());
    session.offer().await;
    let job = house.job(3, 4);
    session.say(to_node::Body::Job(job.clone())).await;
    assert_eq!(answer(&mut session, &job).await.0.len(), 4);
    node.end().await;
}

#[tokio::test]
async fn a_pause_hands_back_and_resume_serves_again() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 5, "");
    let node = house.start().await;
    let mut session = broker.welcome().await;
    session.offer().await;
    let paused = wakati_node::desk::ask(house.path(), &Ask::Pause { minutes: None }).await;
    assert_eq!(paused.unwrap(), Answer::Done);
    let to_broker::Body::Yielding(yielding) = session.next().await else { panic!("the node yields") };
    assert_eq!(yielding.reason(), YieldReason::Owner);
    node.until("it rests", |s| s.shape == Shape::Resting).await;
    assert_eq!(node.handle.ask(Ask::Resume).await, Answer::Done);
    session.offer().await;
    // The log is written behind the loop's back, in order.
    let rested = async {
        loop {
            let Answer::Why { spans } = node.handle.ask(Ask::Why { day: None }).await else { panic!() };
            if spans.iter().any(|span| span.shape == Shape::Resting && span.to.is_some()) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, rested).await.expect("the pause is in the log");
    node.end().await;
}

/// The process id of this house's worker, by the weights that only it has.
fn worker_of(house: &House) -> u32 {
    let weights = house.path().canonicalize().unwrap().join("models/tiny/weights.gguf");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let named = |entry: std::fs::DirEntry| {
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        let ours = String::from_utf8_lossy(&command).contains(weights.to_str()?);
        ours.then(|| entry.file_name().to_str()?.parse().ok())?
    };
    processes.filter_map(named).next().expect("a worker runs")
}

#[tokio::test]
async fn a_killed_worker_hands_its_jobs_back_and_another_is_started() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 5, "");
    let node = house.start().await;
    let mut session = broker.welcome().await;
    session.offer().await;
    session.say(to_node::Body::Job(house.job(1, 500))).await;
    session.tokens().await;
    let killed = Command::new("kill").args(["-9", &worker_of(&house).to_string()]).status().unwrap();
    assert!(killed.success());
    let yielding = loop {
        match session.next().await {
            to_broker::Body::Tokens(_) => {}
            to_broker::Body::Yielding(yielding) => break yielding,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((yielding.reason(), yielding.handed_back.len()), (YieldReason::Fault, 1));
    session.offer().await;
    let job = house.job(2, 4);
    session.say(to_node::Body::Job(job.clone())).await;
    assert_eq!(answer(&mut session, &job).await.0.len(), 4);
    node.end().await;
}

#[tokio::test]
#[ignore = "takes twenty seconds: cargo xtask test --all"]
async fn long_a_worker_that_hangs_hands_its_jobs_back_and_another_is_started() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 5, "");
    let node = house.start().await;
    let mut session = broker.welcome().await;
    session.offer().await;
    session.say(to_node::Body::Job(house.job(1, 500))).await;
    session.tokens().await;
    let stopped = Command::new("kill").args(["-STOP", &worker_of(&house).to_string()]).status().unwrap();
    assert!(stopped.success());
    let yielding = loop {
        match session.next().await {
            to_broker::Body::Tokens(_) => {}
            to_broker::Body::Yielding(yielding) => break yielding,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((yielding.reason(), yielding.handed_back.len()), (YieldReason::Fault, 1));
    session.offer().await;
    node.end().await;
}

#[tokio::test]
async fn a_broker_with_another_key_is_refused() {
    let mut broker = Broker::listen().await;
    let house = House::build(&broker.url(), 5, "");
    let node = house.start().await;
    let session = broker.welcome().await;
    node.until("it has joined", |s| s.link == LinkState::Joined).await;
    broker.key = ed25519_dalek::SigningKey::from_bytes(&[4; 32]);
    drop(session);
    let session = broker.challenge().await;
    let snapshot = node.until("it says so", |s| s.link == LinkState::Refused).await;
    assert!(session.says_no_more().await, "an impostor was greeted");
    assert!(!snapshot.reason.is_empty() || !snapshot.faults.is_empty());
    node.end().await;
}

#[tokio::test]
async fn stopping_hands_jobs_back_and_says_goodbye() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 5, "");
    let node = house.start().await;
    let mut session = broker.welcome().await;
    session.offer().await;
    session.say(to_node::Body::Job(house.job(1, 500))).await;
    session.tokens().await;
    let ending = tokio::spawn(node.end());
    let mut said = Vec::new();
    loop {
        match session.next().await {
            to_broker::Body::Tokens(_) => {}
            to_broker::Body::Bye(_) => break,
            other => said.push(other),
        }
    }
    let [to_broker::Body::Yielding(yielding), to_broker::Body::Offer(offer)] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!((yielding.reason(), yielding.handed_back.len()), (YieldReason::Owner, 1));
    assert_eq!(offer.models, []);
    drop(session);
    ending.await.unwrap();
    assert!(!house.path().join("desk.sock").exists());
}

#[tokio::test]
async fn a_damaged_log_is_whole_again_when_the_broker_has_sent_its_receipts() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 1, "");
    std::fs::write(house.path().join("node.sqlite"), vec![b'?'; 9000]).unwrap();
    let node = house.start().await;
    let mut session = broker.welcome().await;
    assert_eq!(session.hello.receipts_to, 0);
    session.offer().await;
    for sequence in 1..=3 {
        let receipt = broker.receipt(&session.hello, &house.job(sequence as u8, 9), sequence, 9);
        session.say(to_node::Body::Receipt(receipt)).await;
        assert_eq!(ack(&mut session).await, sequence);
    }
    let Answer::Earnings { rows } = node.handle.ask(Ask::Earnings).await else { panic!() };
    assert_eq!(rows.len(), 3);
    let told = node.until("the owner is told", |s| !s.faults.is_empty()).await;
    assert!(told.faults[0].contains("node.sqlite.damaged-"), "{:?}", told.faults);
    node.end().await;
}
