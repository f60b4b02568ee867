//! The owner's commands on a running node.

use std::os::unix::fs::PermissionsExt as _;

use wakati_protocol::desk::Shape;
use wakati_tests::ask::{Next, Question};
use wakati_tests::books;
use wakati_tests::house::House;
use wakati_tests::node::Choices;

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn a_paused_node_serves_nobody_until_its_owner_resumes() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    house.add_node(&Choices::default()).await?;
    let node = &house.nodes[0];
    let mode =
        |name: &str| Ok::<_, std::io::Error>(std::fs::metadata(node.home().join(name))?.permissions().mode());
    assert_eq!(mode("desk.sock")? & 0o777, 0o600);
    assert_eq!(mode("node.key")? & 0o777, 0o600);

    let status = node.owner(&["status"]).await?;
    // Files are kept from it where the kernel has Landlock.
    assert!(status.contains("is kept from ") && status.contains("the network, other programs"), "{status}");

    node.owner(&["pause"]).await?;
    node.until_shape(Shape::Resting).await?;
    let Err(refused) = house.ask(&Question::drawn(8)).await else { anyhow::bail!("a paused node served") };
    let refused = refused.to_string();
    assert!(refused.starts_with("503") || refused.starts_with("429"), "{refused}");

    // Another pause takes the place of the first.
    node.owner(&["pause", "--until-tomorrow"]).await?;
    assert_eq!(node.status().await?.sentence, "Paused until 06:00");
    node.owner(&["resume"]).await?;
    node.until_shape(Shape::Serving).await?;
    let mut answer = house.ask(&Question::drawn(8)).await?;
    assert_eq!(answer.to_the_end().await?, Next::Done);
    books::agree(&house.broker.books(), &house.logs()).await?;

    let csv = node.owner(&["earnings", "--csv"]).await?;
    assert_eq!(csv.lines().count(), 2, "a heading and one job: {csv}");
    assert_eq!(node.earnings().await?.len(), 1);
    let why = node.owner(&["why"]).await?;
    assert!(why.lines().count() >= 3, "serving, paused, serving: {why}");
    Ok(())
}
