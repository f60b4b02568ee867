//! The program itself: its command line, and being killed at any moment.

use std::process::{Child, Command, Output};

use crate::common::{Broker, House};
use wakati_protocol::link::{to_broker, to_node};
use wakati_protocol::money::NanoUsd;

fn wakati_node(house: &House, arguments: &[&str]) -> Output {
    command(house, arguments).output().unwrap()
}

fn command(house: &House, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakati-node"));
    command.arg("--home").arg(house.path()).args(arguments);
    command
}

/// A node in a process of its own, which does not outlive the test.
struct Serving(Child);

impl Serving {
    fn start(house: &House) -> Self {
        Self(command(house, &["serve"]).spawn().unwrap())
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn terminate(mut self) -> bool {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.0.wait().unwrap().success()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_node_killed_in_mid_job_earns_what_it_served_when_it_comes_back() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 5, "");
    let node = Serving::start(&house);
    let mut session = broker.welcome().await;
    session.offer().await;
    let job = house.job(1, 500);
    session.say(to_node::Body::Job(job.clone())).await;
    for _ in 0..10 {
        session.tokens().await;
    }
    node.kill();

    // Nothing needs mending: the next start joins again and takes the receipt for the ten positions.
    let node = Serving::start(&house);
    let mut session = broker.welcome().await;
    let receipt = broker.receipt(&session.hello, &job, 1, 10);
    let pay = NanoUsd(receipt.pay);
    session.say(to_node::Body::Receipt(receipt)).await;
    loop {
        match session.next().await {
            to_broker::Body::ReceiptAck(ack) => break assert_eq!(ack.sequence, 1),
            to_broker::Body::Offer(_) => {}
            other => panic!("{other:?}"),
        }
    }
    // The acknowledged receipt is there whatever happens now.
    node.kill();
    let earned = text(&wakati_node(&house, &["earnings", "--csv"]).stdout);
    assert_eq!(earned.lines().count(), 2, "{earned}");
    assert!(earned.lines().nth(1).unwrap().ends_with(&pay.to_string()), "{earned}");
}

#[tokio::test]
async fn a_terminated_node_says_goodbye_and_ends_well() {
    let broker = Broker::listen().await;
    let house = House::build(&broker.url(), 5, "");
    let node = Serving::start(&house);
    let mut session = broker.welcome().await;
    session.offer().await;
    session.say(to_node::Body::Job(house.job(1, 500))).await;
    session.tokens().await;

    let status = wakati_node(&house, &["status", "--json"]);
    let snapshot: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!((&snapshot["shape"], &snapshot["link"]), (&"serving".into(), &"joined".into()));
    let second = wakati_node(&house, &["serve"]);
    assert!(!second.status.success());
    assert!(text(&second.stderr).contains("already running"), "{}", text(&second.stderr));

    let ended = tokio::task::spawn_blocking(move || node.terminate());
    let mut yielded = false;
    loop {
        match session.next().await {
            to_broker::Body::Yielding(yielding) => yielded = yielding.handed_back.len() == 1,
            to_broker::Body::Bye(_) => break,
            to_broker::Body::Tokens(_) | to_broker::Body::Offer(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(yielded);
    drop(session);
    assert!(ended.await.unwrap());
}

#[test]
fn without_a_node_the_command_line_says_how_to_start_one() {
    let house = House::build("http://127.0.0.1:9", 5, "");
    for arguments in [&["status"][..], &["pause"], &["resume"]] {
        let output = wakati_node(&house, arguments);
        assert!(!output.status.success());
        let said = text(&output.stderr);
        assert!(said.contains("No node is running in") && said.contains("serve"), "{said}");
    }
    assert!(wakati_node(&house, &["earnings"]).status.success());
    assert!(wakati_node(&house, &["why", "--day", "2026-01-31"]).status.success());
    assert!(!wakati_node(&house, &["why", "--day", "yesterday"]).status.success());
}

#[test]
fn joining_writes_the_broker_and_refuses_one_that_is_elsewhere() {
    let house = House::build("http://127.0.0.1:9", 5, "");
    assert!(wakati_node(&house, &["join", "http://127.0.0.1:10", "new-invite"]).status.success());
    let settings = std::fs::read_to_string(house.path().join("settings.toml")).unwrap();
    assert!(settings.contains("http://127.0.0.1:10") && settings.contains("new-invite"), "{settings}");
    let refused = wakati_node(&house, &["join", "http://example.com", "x"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("example.com"));
}

#[test]
fn commands_that_only_read_leave_damaged_files_as_they_are_and_say_what_to_do() {
    let house = House::build("http://127.0.0.1:9", 5, "");
    let (settings, log) = (house.path().join("settings.toml"), house.path().join("node.sqlite"));
    let refused = |arguments: &[&str], words: &str| {
        let output = wakati_node(&house, arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(words), "{arguments:?}: {said}");
        let kept = std::fs::read_dir(house.path()).unwrap().flatten();
        let names: Vec<_> = kept.map(|entry| entry.file_name().into_string().unwrap()).collect();
        assert!(!names.iter().any(|name| name.contains("damaged")), "{arguments:?}: {names:?}");
    };
    std::fs::write(&log, vec![b'?'; 9000]).unwrap();
    refused(&["earnings"], "node.sqlite is damaged; start the node");
    refused(&["why"], "node.sqlite is damaged; start the node");
    assert_eq!(std::fs::read(&log).unwrap(), vec![b'?'; 9000]);

    std::fs::write(&settings, "[broker\nurl = 1").unwrap();
    refused(&["import", "/nowhere/model.gguf"], "settings.toml is damaged; mend it first");
    refused(&["why"], "settings.toml is damaged; mend it first");
    refused(&["earnings"], "settings.toml is damaged; mend it first");
    assert_eq!(std::fs::read(&settings).unwrap(), b"[broker\nurl = 1");
}
