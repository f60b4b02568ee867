//! A game starts on the node that serves: its owner gets the machine, the consumer gets the rest of the answer.

use wakati_protocol::desk::Shape;
use wakati_tests::ask::{Next, Question};
use wakati_tests::books;
use wakati_tests::desktop::until;
use wakati_tests::game::{self, Game};
use wakati_tests::house::House;
use wakati_tests::node::{Choices, WARM};

const TOKENS: u32 = 160;

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn a_game_in_mid_stream_hands_the_answer_to_the_other_node() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    // The cheaper node serves first; the game counts as one only there.
    house.add_node(&Choices { games: vec![game::NAME.into()], ..Choices::default() }).await?;
    house.add_node(&Choices { prices: ("0.06", "0.12"), ..Choices::default() }).await?;
    let question = Question::drawn(TOKENS);
    let mut answer = house.ask(&question).await?;
    answer.until_tokens(40).await?;
    let before_the_game = answer.text.clone();
    let game = Game::start(house.folder())?;
    assert_eq!(answer.to_the_end().await?, Next::Done);

    assert_eq!((answer.tokens, answer.completion_tokens()?), (TOKENS, u64::from(TOKENS)));
    assert_eq!(answer.finish.as_deref(), Some("length"));
    assert_eq!(answer.ids.len(), 1, "the consumer sees one answer");
    assert!(answer.text.starts_with(&before_the_game));

    let resting = house.nodes[0].until_shape(Shape::Resting).await?;
    assert!(resting.sentence.contains(game::NAME), "{}", resting.sentence);
    let hand_over = until("the hand-over to be recorded", WARM, async || {
        house.nodes[0].status().await.ok()?.last_hand_over
    })
    .await?;
    assert_eq!(hand_over.jobs_handed_back, 1);
    assert_eq!(house.nodes[0].worker(), None, "the worker is gone");
    drop(game);
    house.nodes[0].until_shape(Shape::Serving).await?;

    let sums = books::agree(&house.broker.books(), &house.logs()).await?;
    let jobs = books::read_broker(&house.broker.books()).await?.jobs;
    assert_eq!(jobs.len(), 1);
    let positions: Vec<i64> = jobs[0].attempts.iter().map(|attempt| attempt.positions).collect();
    assert_eq!(positions.len(), 2, "{positions:?}");
    assert!(positions.iter().all(|positions| *positions > 0), "both nodes delivered: {positions:?}");
    assert_ne!(jobs[0].attempts[0].node, jobs[0].attempts[1].node);
    assert!(sums.absorbed > 0, "the dearer node and its prefill are the platform's: {sums:?}");

    // The same question to the first node alone: up to the game, both answers are the same.
    let mut alone = house.ask(&question).await?;
    assert_eq!(alone.to_the_end().await?, Next::Done);
    assert!(alone.text.starts_with(&before_the_game), "{:?}\n{:?}", alone.text, before_the_game);
    Ok(())
}
