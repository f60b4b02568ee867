//! One node serves a consumer who pays: the unmodified openai client, what it raises, and a consumer who leaves.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use wakati_tests::ask::Question;
use wakati_tests::books;
use wakati_tests::client::Client;
use wakati_tests::desktop::until;
use wakati_tests::house::House;
use wakati_tests::node::Choices;
use wakati_tests::prompts;

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn the_openai_client_streams_and_does_not_stream_and_both_books_agree() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    house.add_node(&Choices::default()).await?;
    let (prompt, seed) = prompts::draw();
    let mut client =
        Client::start(&["both", house.broker.url(), &house.key, &house.model, prompt, &seed.to_string()])?;
    let said = client.next().await?.context("the client said nothing")?;
    assert!(said["plain"].as_str().is_some_and(|text| !text.is_empty()), "{said}");
    assert_eq!(said["plain"], said["streamed"], "the same seed gives the same text");
    assert_ne!(said["plain"], said["other_seed"], "another seed gives another text");
    assert_eq!(said["plain_finish"], said["streamed_finish"]);
    assert_eq!(said["plain_tokens"], said["streamed_tokens"]);

    let sums = books::agree(&house.broker.books(), &house.logs()).await?;
    let jobs = books::read_broker(&house.broker.books()).await?.jobs;
    assert_eq!(jobs.len(), 3);
    assert_eq!(json!(jobs[0].delivered), said["plain_tokens"]);
    assert!(sums.charged > 0 && sums.earned > 0 && sums.fee > 0 && sums.absorbed == 0, "{sums:?}");
    assert_eq!(house.broker.operate(&["audit"]).await?, "every rule holds");
    Ok(())
}

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn the_openai_client_raises_what_it_raises_elsewhere_and_nothing_is_charged() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    house.add_node(&Choices::default()).await?;
    let poor = house.broker.operate(&["key", "create", "--account", "poor"]).await?;
    let mut client = Client::start(&["errors", house.broker.url(), &house.key, &house.model, &poor])?;
    let said = client.next().await?.context("the client said nothing")?;
    let expected = json!({
        "wrong key": ["AuthenticationError", 401],
        // The package has no class of its own for this status.
        "no money": ["APIStatusError", 402],
        "no such model": ["NotFoundError", 404],
        "bad value": ["BadRequestError", 400],
        "too long": ["BadRequestError", 400],
    });
    assert_eq!(said, expected);
    let sums = books::agree(&house.broker.books(), &house.logs()).await?;
    assert_eq!((sums.charged, sums.earned), (0, 0));
    Ok(())
}

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn a_consumer_who_leaves_pays_what_was_delivered_and_generation_stops() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    house.add_node(&Choices::default()).await?;
    let mut answer = house.ask(&Question::drawn(600)).await?;
    answer.until_tokens(20).await?;
    let received = i64::from(answer.tokens);
    drop(answer);
    let file = house.broker.books();
    let job = until("the job to be settled", Duration::from_secs(5), async || {
        books::read_broker(&file).await.ok()?.jobs.pop().filter(|job| job.settled)
    })
    .await?;
    assert_eq!(job.finish.as_deref(), Some("cancelled"));
    // What had left the broker and was still on its way when the consumer closed the connection.
    assert!((received..received + 60).contains(&job.delivered), "{} of {received}", job.delivered);
    until("the node to be idle", Duration::from_secs(5), async || {
        house.nodes[0].status().await.ok().filter(|snapshot| snapshot.active_jobs == 0)
    })
    .await?;
    books::agree(&house.broker.books(), &house.logs()).await?;
    Ok(())
}
