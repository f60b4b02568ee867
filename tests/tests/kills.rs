//! Any program killed at any moment: no recorded earning is lost, nobody is charged twice, the next start needs no help.

use std::time::Duration;

use rand::Rng as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use wakati_protocol::desk::Shape;
use wakati_tests::ask::{Next, Question};
use wakati_tests::books;
use wakati_tests::client::Client;
use wakati_tests::desktop::until;
use wakati_tests::house::House;
use wakati_tests::node::Choices;
use wakati_tests::prompts;

fn kill_worker(house: &House, node: usize) -> anyhow::Result<()> {
    let worker = house.nodes[node].worker().and_then(|id| Pid::from_raw(id.cast_signed()));
    Ok(kill_process(worker.ok_or_else(|| anyhow::anyhow!("the node has no worker"))?, Signal::KILL)?)
}

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn a_killed_worker_costs_the_consumer_nothing_when_another_node_is_there() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    house.add_node(&Choices::default()).await?;
    house.add_node(&Choices { prices: ("0.06", "0.12"), ..Choices::default() }).await?;
    let mut answer = house.ask(&Question::drawn(120)).await?;
    answer.until_tokens(30).await?;
    kill_worker(&house, 0)?;
    assert_eq!(answer.to_the_end().await?, Next::Done);
    assert_eq!(answer.tokens, 120);

    house.nodes[0].until_shape(Shape::Serving).await?;
    let mut again = house.ask(&Question::drawn(8)).await?;
    assert_eq!(again.to_the_end().await?, Next::Done);
    books::agree(&house.broker.books(), &house.logs()).await?;
    let jobs = books::read_broker(&house.broker.books()).await?.jobs;
    assert!(jobs[0].attempts.len() == 2 && jobs[0].attempts.iter().all(|attempt| attempt.positions > 0));
    Ok(())
}

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn a_killed_worker_and_no_other_node_make_the_openai_client_raise() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    house.add_node(&Choices::default()).await?;
    let (prompt, seed) = prompts::draw();
    let mut client =
        Client::start(&["stream", house.broker.url(), &house.key, &house.model, prompt, &seed.to_string()])?;
    for _ in 0..10 {
        let said = client.next().await?;
        assert!(said.as_ref().is_some_and(|said| said.get("text").is_some()), "{said:?}");
    }
    kill_worker(&house, 0)?;
    let mut last = None;
    while let Some(said) = client.next().await? {
        last = Some(said);
    }
    assert_eq!(last, Some(json!({"raised": "APIError"})));
    house.nodes[0].until_shape(Shape::Serving).await?;
    books::agree(&house.broker.books(), &house.logs()).await?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn a_killed_broker_settles_at_what_was_delivered_when_it_starts_again() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    house.add_node(&Choices::default()).await?;
    let mut answer = house.ask(&Question::drawn(400)).await?;
    answer.until_tokens(60).await?;
    house.broker.program.kill().await?;
    assert_eq!(answer.to_the_end().await?, Next::Cut, "no finish reason that was not sent");

    house.broker.start_again().await?;
    house.nodes[0].until_shape(Shape::Serving).await?;
    let sums = books::agree(&house.broker.books(), &house.logs()).await?;
    let jobs = books::read_broker(&house.broker.books()).await?.jobs;
    assert_eq!(jobs[0].finish.as_deref(), Some("interrupted"));
    assert!(
        jobs[0].delivered > 0 && jobs[0].delivered <= i64::from(answer.tokens),
        "{sums:?} {}",
        answer.tokens
    );

    let mut again = house.ask(&Question::drawn(8)).await?;
    assert_eq!(again.to_the_end().await?, Next::Done);
    books::agree(&house.broker.books(), &house.logs()).await?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn a_node_killed_twenty_times_in_mid_job_loses_no_earning() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    house.add_node(&Choices::default()).await?;
    house.add_node(&Choices::default()).await?;
    for kill in 1..=20 {
        let mut answer = house.ask(&Question::drawn(80)).await?;
        answer.until_tokens(rand::rng().random_range(1..60)).await?;
        let victim = serving(&house).await?;
        house.nodes[victim].program.kill().await?;
        // The other node goes on; when it is not back yet from the kill before, the consumer gets an error.
        let end = answer.to_the_end().await?;
        let jobs = books::read_broker(&house.broker.books()).await?.jobs;
        let hit =
            jobs.last().is_some_and(|job| job.attempts.len() > 1 || job.finish.as_deref() == Some("failed"));
        assert!(hit, "kill {kill} hit no open job: {end:?}");
        house.nodes[victim].start_again()?;
        until("a node to serve", wakati_tests::node::WARM, async || {
            for node in &house.nodes {
                if node.status().await.is_ok_and(|snapshot| snapshot.shape == Shape::Serving) {
                    return Some(());
                }
            }
            None
        })
        .await?;
    }
    for node in &house.nodes {
        node.until_shape(Shape::Serving).await?;
    }
    let sums = books::agree(&house.broker.books(), &house.logs()).await?;
    assert!(sums.earned > 0, "{sums:?}");
    assert_eq!(house.broker.operate(&["audit"]).await?, "every rule holds");
    Ok(())
}

/// The node that has the job.
async fn serving(house: &House) -> anyhow::Result<usize> {
    until("a node to have the job", Duration::from_secs(5), async || {
        for (index, node) in house.nodes.iter().enumerate() {
            if node.status().await.is_ok_and(|snapshot| snapshot.active_jobs > 0) {
                return Some(index);
            }
        }
        None
    })
    .await
}
