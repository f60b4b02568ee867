use std::os::unix::fs::PermissionsExt;

use super::*;

/// A program that does this instead of a worker's work.
fn spec(folder: &Path, script: &str) -> Spec {
    let program = folder.join("worker");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    Spec { program, weights: "none".into(), context: 1, slots: 1, hardware: Hardware::Processor }
}

/// One start at a time: a process that is forked while a script is written holds it open, and the system does not
/// run a file that is open for writing.
static STARTING: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn start(folder: &Path, script: &str) -> (Worker, mpsc::Receiver<WorkerEvent>) {
    let _one = STARTING.lock().unwrap();
    Worker::spawn(&spec(folder, script)).unwrap()
}

async fn last(events: &mut mpsc::Receiver<WorkerEvent>) -> WorkerEvent {
    let mut last = None;
    while let Some(event) = events.recv().await {
        last = Some(event);
    }
    last.unwrap()
}

#[tokio::test]
async fn a_killed_worker_is_gone_when_it_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let (worker, mut events) = start(folder.path(), "exec sleep 600");
    let pid = worker.pid();
    assert!(crate::resident_bytes(pid).is_some());
    worker.kill();
    assert_eq!(last(&mut events).await, WorkerEvent::Exited(Exit::Killed));
    assert_eq!(crate::resident_bytes(pid), None);
    worker.end().await;
}

#[tokio::test]
async fn a_worker_that_ends_by_itself_or_talks_nonsense_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (worker, mut events) = start(folder.path(), "echo oops >&2; exit 3");
    assert_eq!(last(&mut events).await, WorkerEvent::Exited(Exit::Ended("exit status: 3".into())));
    worker.end().await;
    let nonsense = "printf '\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377'; exec sleep 600";
    let (worker, mut events) = start(folder.path(), nonsense);
    assert!(matches!(last(&mut events).await, WorkerEvent::Exited(Exit::Garbled(_))));
    worker.end().await;
}

#[tokio::test]
async fn a_worker_inherits_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("env > {}", folder.path().join("env").display());
    let (worker, mut events) = start(folder.path(), &script);
    last(&mut events).await;
    worker.end().await;
    let inherited = std::fs::read_to_string(folder.path().join("env")).unwrap();
    // The shell itself adds PWD, SHLVL and _.
    let known = |name: &str| INHERITED.contains(&name) || ["PWD", "SHLVL", "OLDPWD", "_"].contains(&name);
    let foreign: Vec<_> =
        inherited.lines().filter_map(|line| line.split('=').next()).filter(|name| !known(name)).collect();
    assert_eq!(foreign, Vec::<&str>::new());
}

/// Printed, it is the frame `Hello { version: 1, variant: "cpu" }`.
const HELLO: &str = r"printf '\011\012\007\010\001\022\003cpu'";

/// Kills a worker after it has said hello, and waits for everything of it.
async fn ends_within(seconds: u64, script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (worker, mut events) = start(folder.path(), script);
    assert!(matches!(events.recv().await, Some(WorkerEvent::Hello(_))));
    worker.kill();
    assert_eq!(last(&mut events).await, WorkerEvent::Exited(Exit::Killed));
    let ended = tokio::time::timeout(Duration::from_secs(seconds), worker.end()).await;
    assert!(ended.is_ok(), "{script}");
}

#[tokio::test]
async fn what_a_worker_has_started_ends_with_it() {
    ends_within(2, &format!("sleep 600 & {HELLO}; exec sleep 600")).await;
}

#[tokio::test]
async fn a_child_that_left_the_group_and_keeps_the_log_open_is_not_waited_for() {
    ends_within(5, &format!("setsid sh -c \"{HELLO}; exec sleep 20\" & exec sleep 600")).await;
}

#[test]
fn a_missing_program_is_named() {
    let spec = Spec { program: "/nowhere/worker".into(), ..spec(tempfile::tempdir().unwrap().path(), "") };
    assert!(matches!(Worker::spawn(&spec), Err(NotStarted::NoProgram(_))));
}

#[test]
fn a_worker_on_the_gpu_is_told_what_to_leave_free() {
    let hardware = Hardware::Gpu { reserve: MiB(512) };
    let spec = Spec { hardware, ..spec(tempfile::tempdir().unwrap().path(), "") };
    let command = command(&spec);
    let words: Vec<_> = command.as_std().get_args().map(|word| word.to_string_lossy()).collect();
    assert!(words.windows(2).any(|pair| pair == ["--reserve-mebibytes", "512"]), "{words:?}");
}
