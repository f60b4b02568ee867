//! The desktop application as its owner meets it: the real programs on a desktop of their own.
//!
//! `WAKATI_SCREENS=FOLDER` keeps the pictures that are taken on the way.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use wakati_tests::desktop::{
    Desktop, Item, Joined, Look, Notices, PATIENCE, Page, Panel, until, with_environment,
};
use wakati_tests::node::Choices;
use wakati_tests::program::{self, Program};

/// A desktop with a panel, and Wakati running on it.
struct Owner {
    desktop: Desktop,
    item: Item,
    notices: Notices,
    wakati: Program,
    home: PathBuf,
    _folder: TempDir,
}

impl Owner {
    /// Starts Wakati, hidden, in this home.
    async fn start(folder: TempDir, home: PathBuf) -> anyhow::Result<Self> {
        let desktop = Desktop::start(folder.path()).await?;
        let panel = Panel::show(desktop.bus.connect().await?).await?;
        let notices = Notices::listen(desktop.bus.connect().await?).await?;
        let mut command = desktop.command(&program::path("wakati")?, &home);
        command.args(["--hidden".as_ref(), "--home".as_ref(), home.as_os_str()]);
        let wakati = Program::start(&mut command, &folder.path().join("log"))?;
        let item = panel.item().await.with_context(|| wakati.log_tail())?;
        Ok(Self { desktop, item, notices, wakati, home, _folder: folder })
    }

    /// Starts Wakati joined to a broker of its own.
    async fn joined() -> anyhow::Result<(Self, Joined)> {
        let folder = tempfile::tempdir()?;
        let choices = Choices { games: vec!["pretend-game".to_owned()], ..Choices::default() };
        let joined = Joined::prepare(folder.path(), &choices).await?;
        let home = joined.home().to_owned();
        Ok((Self::start(folder, home).await?, joined))
    }

    /// Waits until Wakati has ended by itself.
    async fn ended(&mut self) -> anyhow::Result<()> {
        until("the end of Wakati", PATIENCE, async || self.wakati.has_ended().ok()?.then_some(())).await
    }

    /// Processes on this desktop with this name, which the system cuts to 15 letters.
    fn processes(&self, name: &str) -> usize {
        let cut = &name[..name.len().min(15)];
        with_environment("DBUS_SESSION_BUS_ADDRESS", self.desktop.bus.address())
            .iter()
            .filter(|process| process.name == cut)
            .count()
    }

    /// The one window that is open.
    async fn window(&self) -> anyhow::Result<String> {
        until("one window", PATIENCE, async || match self.desktop.screen.windows("Wakati").await.as_slice() {
            [window] => Some(window.clone()),
            _ => None,
        })
        .await
    }

    async fn no_process(&self, name: &str) -> anyhow::Result<()> {
        let what = format!("the end of {name}");
        until(&what, PATIENCE, async || (self.processes(name) == 0).then_some(())).await
    }

    /// Keeps a picture of the screen where pictures are wanted.
    async fn picture(&self, name: &str) -> anyhow::Result<()> {
        let Some(folder) = std::env::var_os("WAKATI_SCREENS") else { return Ok(()) };
        self.desktop.screen.picture(&Path::new(&folder).join(format!("{name}.png"))).await
    }
}

/// Sends requests until one is answered as wanted.
async fn request(joined: &Joined, what: &str, wanted: impl Fn(u16) -> bool) -> anyhow::Result<()> {
    until(what, PATIENCE, async || {
        let status = joined.request("Say a word about the sea.", 24).await.ok()?;
        wanted(status).then_some(())
    })
    .await
}

#[tokio::test]
#[ignore = "needs the model and a display: cargo xtask test"]
async fn the_tray_pauses_and_resumes_what_the_broker_sells() -> anyhow::Result<()> {
    let (mut owner, joined) = Owner::joined().await?;
    request(&joined, "a first answer", |status| status == 200).await?;
    let labels: Vec<_> = owner.item.rows().await?.into_iter().map(|row| row.label).collect();
    assert_eq!(
        labels[labels.len() - 5..],
        ["Pause for 1 hour", "Pause until tomorrow morning", "Pause until I resume", "Open Wakati", "Quit"]
    );
    assert!(!owner.item.rows().await?[0].enabled, "the status row only informs");
    assert_eq!(owner.item.tooltip().await?, labels[0]);
    assert_eq!(owner.item.icon_sizes().await?, [16, 22, 32, 48]);

    owner.item.click("Pause until I resume").await?;
    owner.item.row("Resume", |label| label == "Resume").await?;
    let status = joined.request("Say a word about the sea.", 24).await?;
    assert_ne!(status, 200, "a paused node serves nothing");

    owner.item.click("Resume").await?;
    request(&joined, "an answer after the pause", |status| status == 200).await?;
    owner.item.row("today's earnings", |label| label.starts_with("Today: $0.0")).await?;

    owner.item.click("Quit").await?;
    owner.ended().await?;
    owner.no_process("wakati-worker").await
}

#[tokio::test]
#[ignore = "needs the model and a display: cargo xtask test"]
async fn the_window_opens_once_and_leaves_nothing_behind() -> anyhow::Result<()> {
    let (mut owner, _joined) = Owner::joined().await?;
    assert_eq!(owner.processes("wakati-window"), 0, "no window was wanted");
    owner.item.click("Open Wakati").await?;
    let window = owner.window().await?;
    // A click on the icon and a second start both mean the same window.
    owner.item.activate().await?;
    let mut second = owner.desktop.command(&program::path("wakati")?, &owner.home);
    let ended = second.args(["--home".as_ref(), owner.home.as_os_str()]).status().await?;
    assert_eq!(ended.code(), Some(0), "a second start ends at once");
    assert_eq!(owner.window().await?, window);
    assert_eq!(owner.processes("wakati-window"), 1);

    owner.desktop.screen.close(&window).await?;
    owner.no_process("wakati-window").await?;
    owner.no_process("WebKitWebProcess").await?;
    owner.no_process("WebKitNetworkProcess").await?;
    assert!(!owner.wakati.has_ended()?, "closing the window ends nothing else");

    owner.item.activate().await?;
    owner.window().await?;
    owner.item.click("Quit").await?;
    owner.ended().await?;
    owner.no_process("wakati-window").await
}

#[tokio::test]
#[ignore = "needs the model and a display: cargo xtask test"]
async fn the_page_shows_the_node_and_pauses_it() -> anyhow::Result<()> {
    let (owner, joined) = Owner::joined().await?;
    request(&joined, "a first answer", |status| status == 200).await?;
    let page = Page::open(&owner.desktop, Look::Dark, &program::path("wakati-window")?, &owner.home).await?;
    let title = page.title("the sentence", |title| title.contains("SmolLM2")).await?;
    owner.item.row("the same sentence", |label| label == title).await?;
    let text = page.text().await?;
    for part in ["Tokens per second", "Today", "This month", "Jobs today", "Last hand-over", "Connected"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    page.click("Pause").await?;
    page.button("Resume").await?;
    let paused = page.title("the pause", |now| now != title).await?;
    owner.item.row("the pause in the tray", |label| label == paused).await?;
    let status = joined.request("Say a word about the sea.", 24).await?;
    assert_ne!(status, 200);
    page.click("Resume").await?;
    request(&joined, "an answer after the pause", |status| status == 200).await?;
    page.close().await?;
    owner.no_process("WebKitWebProcess").await
}

#[tokio::test]
#[ignore = "needs the model and a display: cargo xtask test"]
async fn the_owner_who_is_sure_serves_beside_a_game() -> anyhow::Result<()> {
    let (owner, joined) = Owner::joined().await?;
    request(&joined, "a first answer", |status| status == 200).await?;
    let mut game = owner.desktop.command(&program::path("pretend-game")?, &owner.home).spawn()?;
    owner.item.row("the rest for the game", |label| label.contains("pretend-game")).await?;
    owner.item.row("the wish that opens the window", |label| label == "Serve anyway...").await?;
    let page = Page::open(&owner.desktop, Look::Dark, &program::path("wakati-window")?, &owner.home).await?;
    page.click("Serve anyway...").await?;
    page.button("Cancel").await?;
    assert_ne!(joined.request("Say a word about the sea.", 24).await?, 200, "one click is no wish");
    owner.picture("serve-anyway").await?;
    page.click("Serve anyway").await?;
    request(&joined, "an answer beside the game", |status| status == 200).await?;
    page.close().await?;
    game.kill().await?;
    Ok(())
}

#[tokio::test]
#[ignore = "needs a display: cargo xtask test"]
async fn a_node_that_nobody_invited_says_so_once() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let home = folder.path().join("home");
    let owner = Owner::start(folder, home).await?;
    let sentence = owner.item.row("a sentence", |label| !label.is_empty()).await?.label;
    let shown = until("a notice", PATIENCE, async || owner.notices.so_far().first().cloned()).await?;
    assert_eq!(shown.title, sentence);
    assert_eq!(owner.notices.during(Duration::from_secs(5)).await?, [], "it was said again");
    assert_eq!(owner.notices.so_far().len(), 1);
    Ok(())
}

#[tokio::test]
#[ignore = "needs the model and a display, and takes a minute: cargo xtask test"]
async fn no_notice_comes_while_a_game_runs_and_one_half_a_minute_after() -> anyhow::Result<()> {
    let (owner, joined) = Owner::joined().await?;
    request(&joined, "a first answer", |status| status == 200).await?;
    let mut game = owner.desktop.command(&program::path("pretend-game")?, &owner.home).spawn()?;
    owner.item.row("the rest for the game", |label| label.contains("pretend-game")).await?;
    owner.no_process("wakati-worker").await?;
    // The first hand-over ever is worth a notice, and waits.
    assert_eq!(owner.notices.during(Duration::from_secs(5)).await?, [], "a notice came over the game");

    game.kill().await?;
    let shown = until("the notice", PATIENCE, async || owner.notices.so_far().first().cloned()).await?;
    assert!(shown.title.contains("pretend-game"), "{}", shown.title);
    request(&joined, "an answer after the game", |status| status == 200).await?;
    assert_eq!(owner.notices.so_far().len(), 1);
    Ok(())
}

/// Takes the pictures of the README: `WAKATI_SCREENS=docs/screens` keeps them.
#[tokio::test]
#[ignore = "takes a minute and needs the model and a display: cargo xtask test --all"]
async fn long_the_page_has_pictures_in_both_looks() -> anyhow::Result<()> {
    let (owner, joined) = Owner::joined().await?;
    request(&joined, "a first answer", |status| status == 200).await?;
    let mut game = owner.desktop.command(&program::path("pretend-game")?, &owner.home).spawn()?;
    owner.item.row("the rest for the game", |label| label.contains("pretend-game")).await?;
    owner.no_process("wakati-worker").await?;
    game.kill().await?;
    request(&joined, "an answer after the game", |status| status == 200).await?;
    for (look, name) in [(Look::Dark, "home-dark"), (Look::Light, "home-light")] {
        let page = Page::open(&owner.desktop, look, &program::path("wakati-window")?, &owner.home).await?;
        for _ in 0..24 {
            joined.request("Write a long story about the sea.", 48).await?;
        }
        assert!(page.text().await?.contains("To pretend-game"));
        owner.picture(name).await?;
        page.close().await?;
    }
    Ok(())
}
