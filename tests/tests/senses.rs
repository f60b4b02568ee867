//! Games that nobody listed, seen by the senses of a real desktop: GameMode's daemon and an X server.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};
use wakati_protocol::desk::Shape;
use wakati_tests::desktop::bus::Bus;
use wakati_tests::desktop::game_mode::GameMode;
use wakati_tests::desktop::screen::Screen;
use wakati_tests::house::House;
use wakati_tests::node::{Choices, Node};
use wakati_tests::program;

/// Longer than two soft signs would take to be seen.
const UNSEEN: Duration = Duration::from_secs(3);

/// Watches a node for a while and fails when it stops serving.
async fn goes_on_serving(node: &Node) -> anyhow::Result<()> {
    let began = Instant::now();
    while began.elapsed() < UNSEEN {
        let shown = node.status().await?;
        anyhow::ensure!(shown.shape == Shape::Serving, "{}", shown.sentence);
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn a_game_that_registers_with_gamemode_has_the_machine_until_it_ends() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    let bus = Bus::start(house.folder()).await?;
    let surroundings = vec![("DBUS_SESSION_BUS_ADDRESS", bus.address().to_owned())];
    house.add_node(&Choices { surroundings, ..Choices::default() }).await?;
    let node = &house.nodes[0];
    // The daemon starts after the node, as it does when a game asks for it.
    let daemon = GameMode::start(&bus).await?;
    let mut game = daemon.game()?;
    let resting = node.until_shape(Shape::Resting).await?;
    assert_eq!(resting.sentence, "Resting - sleep is running");
    assert!(resting.reason.contains("it told the system that it is a game"), "{}", resting.reason);

    game.process.kill().await?;
    node.until_shape(Shape::Serving).await?;
    let why = node.owner(&["why"]).await?;
    assert!(why.contains("sleep is running (it told the system that it is a game)"), "{why}");
    Ok(())
}

#[tokio::test]
#[ignore = "needs the model: cargo xtask test"]
async fn a_program_from_a_library_is_a_game_once_it_covers_the_screen() -> anyhow::Result<()> {
    let mut house = House::build().await?;
    let screen = Screen::start(house.folder()).await?;
    let surroundings = vec![("DISPLAY", screen.display().to_owned())];
    house.add_node(&Choices { surroundings, ..Choices::default() }).await?;
    let node = &house.nodes[0];
    let program = installed(&house.folder().join("steamapps/common/Pretend Game"))?;

    let settings_tool = start(&program, &screen, &[])?;
    goes_on_serving(node).await?;
    drop(settings_tool);

    let mut game = start(&program, &screen, &["--full-screen"])?;
    let resting = node.until_shape(Shape::Resting).await?;
    assert_eq!(resting.sentence, "Resting - Pretend Game is running");
    game.kill().await?;
    node.until_shape(Shape::Serving).await?;

    // The same window of a program that no library holds is not a game.
    let elsewhere = installed(&house.folder().join("presentation"))?;
    let _slides = start(&elsewhere, &screen, &["--full-screen"])?;
    goes_on_serving(node).await
}

/// A copy of the pretend game in this folder.
fn installed(folder: &Path) -> anyhow::Result<std::path::PathBuf> {
    std::fs::create_dir_all(folder)?;
    let program = folder.join("pretend");
    std::fs::copy(program::path("pretend-game")?, &program)?;
    Ok(program)
}

fn start(program: &Path, screen: &Screen, arguments: &[&str]) -> anyhow::Result<Child> {
    let mut command = Command::new(program);
    command.args(arguments).env("DISPLAY", screen.display()).stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command.kill_on_drop(true).spawn()?)
}
