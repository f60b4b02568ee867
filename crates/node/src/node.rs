//! Opening a node, running it, and ending it with every task joined.

use std::path::Path;
use std::time::Duration;

use ed25519_dalek::SigningKey;
use jiff::tz::TimeZone;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use wakati_agent::{Agent, Rules};
use wakati_protocol::desk::{Answer, Ask, Snapshot};
use wakati_protocol::link::Beat;
use wakati_store::Store;

use crate::desk::Desk;
use crate::handle::{Handle, Log, Request, WISHES};
use crate::home::{Claim, Home};
use crate::journal::Journal;
use crate::key::{self, node_id};
use crate::link::{self, LinkSpec};
use crate::look::Looking;
use crate::sentences::Sentences;
use crate::settings::{self, Settings};
use crate::snapshot::Scene;
use crate::station::{Serving, Station};
use crate::the_loop::{Inputs, Loop, Outputs};
use crate::{clock, faults};

/// How long the broker may take to hear our goodbye.
const GOODBYE: Duration = Duration::from_secs(3);

/// What a program that embeds the node adds to it.
#[derive(Debug, Default)]
pub struct RunOptions {
    /// Told when somebody at the desk asks for the window.
    pub open_window: Option<mpsc::Sender<()>>,
}

/// A node that is ready to run, alone in its home.
pub struct Node {
    home: Home,
    claim: Claim,
    settings: Settings,
    key: SigningKey,
    store: Store,
    log: Log,
    desk: Option<Desk>,
    handle: Handle,
    requests: mpsc::Receiver<Request>,
    snapshots: watch::Sender<Snapshot>,
    agent: Agent,
    station: Station,
    scene: Scene,
}

/// Opens the node in this home and runs it until `stop` is cancelled or its owner quits.
///
/// # Errors
/// When the home, the key or the log cannot be used.
pub async fn run(home: &Path, options: RunOptions, stop: CancellationToken) -> anyhow::Result<()> {
    Node::open(home, options).await?.run(stop).await
}

/// Answers from the log of a home in which no node runs.
///
/// # Errors
/// When the home is in use after all, or its settings or its log cannot be read; both stay where they are.
pub async fn look_up(path: &Path, ask: Ask) -> anyhow::Result<Answer> {
    if !Home::is_one(path) {
        anyhow::bail!("There is no node in {}.", path.display());
    }
    let home = Home::open(path)?;
    let _claim = home.claim()?;
    let settings = settings::read_only(&home.settings())?;
    let store = Store::open_sound(&home.database()).await?;
    let log =
        Log { store: store.clone(), zone: TimeZone::system(), sentences: Sentences::new(&settings.language) };
    let answer = match ask {
        Ask::Why { day } => log.why(day.as_deref()).await,
        Ask::Earnings => log.earnings().await,
        Ask::Status
        | Ask::Watch
        | Ask::Pause { .. }
        | Ask::PauseUntilTomorrow
        | Ask::Resume
        | Ask::ServeAnyway
        | Ask::OpenWindow
        | Ask::Quit => Answer::Refused { sentence: log.sentences.ended() },
    };
    store.close().await;
    Ok(answer)
}

impl Node {
    /// Opens the home: claims it, reads settings and key, opens the log and the desk.
    ///
    /// # Errors
    /// When another node runs there, or the home, the key or the log cannot be used.
    pub async fn open(path: &Path, options: RunOptions) -> anyhow::Result<Self> {
        let home = Home::open(path)?;
        let claim = home.claim()?;
        let stamp = clock::stamp();
        let (settings, problems) = settings::load(&home.settings(), &stamp);
        let faults = problems.iter().cloned().map(faults::of_setting).collect();
        let key = key::load_or_make(&home.key())?;
        let opened = Store::open(&home.database(), &stamp).await?;
        let store = opened.store;
        store.close_what_was_open().await?;
        // A desk that cannot be opened costs the command line, not the earnings.
        let desk = Desk::open(home.path())
            .inspect_err(
                |error| tracing::error!(%error, "the desk cannot be opened: the command line will not work"),
            )
            .ok();
        let sentences = Sentences::new(&settings.language);
        let log = Log { store: store.clone(), zone: TimeZone::system(), sentences };
        let (requests_in, requests) = mpsc::channel(WISHES);
        let agent = Agent::new(rules(&settings, &problems));
        let serving = serving(&home, &settings);
        let mut scene = Scene::new(node_id(&key), log.sentences, serving.as_ref(), faults);
        if let Some(aside) = opened.damaged {
            tracing::error!(aside = %aside.display(), "the log was damaged and is kept aside");
            scene.log_was_set_aside(&aside);
        }
        scene.last_hand_over = store.last_hand_over().await?;
        let (snapshots, shown) = watch::channel(scene.snapshot(&agent.status(), 0));
        let handle = Handle::new(requests_in, shown, log.clone(), options.open_window);
        let station = Station::new(serving);
        Ok(Self {
            home,
            claim,
            settings,
            key,
            store,
            log,
            desk,
            handle,
            requests,
            snapshots,
            agent,
            station,
            scene,
        })
    }

    /// For asking and watching, while it runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until `stop` is cancelled or the owner quits; running jobs are handed back first.
    ///
    /// # Errors
    /// When the senses do not start.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let Self {
            home,
            claim,
            settings,
            key,
            store,
            log,
            desk,
            handle,
            requests,
            snapshots,
            agent,
            station,
            scene,
        } = self;
        tracing::info!(home = %home.path().display(), node = %node_id(&key), "node starts");
        // What can fail comes before the first task, which would be left behind.
        let (looking, sensed, eyes) = Looking::start(&settings.games)?;
        let journal = Journal::start(store.clone(), key.clone(), log.zone.clone());
        let (beat, beats) = watch::channel(Beat::default());
        // Ends link and desk, after the loop has said what it had to say.
        let over = CancellationToken::new();
        let (link_in, link_events) = mpsc::channel(link::EVENTS);
        let link = settings.broker.as_ref().map(|broker| {
            let spec = LinkSpec {
                url: broker.url.clone(),
                invite: broker.invite.clone(),
                key: key.clone(),
                store: store.clone(),
                beat: beats,
            };
            tokio::spawn(link::run(spec, link_in, over.clone()))
        });
        let desk = desk.map(|desk| tokio::spawn(desk.serve(handle, over.clone())));

        let inputs = Inputs { stop, requests, link_events, sensed, journal };
        let outputs = Outputs { snapshots, beat, eyes };
        let the_loop = Loop::new(agent, station, inputs, outputs, scene, log.zone);
        let inputs = the_loop.run(settings.broker.is_some()).await;

        over.cancel();
        drop(inputs.sensed);
        looking.end().await;
        end_link(link, inputs.link_events).await;
        if let Some(desk) = desk
            && let Err(error) = desk.await
        {
            tracing::error!(%error, "the desk failed");
        }
        inputs.journal.end().await;
        drop(claim);
        tracing::info!("node ended");
        Ok(())
    }
}

/// Lets the link say goodbye and joins it. Its events are read so that it never waits for us.
async fn end_link(link: Option<tokio::task::JoinHandle<()>>, mut events: mpsc::Receiver<link::LinkEvent>) {
    let Some(mut link) = link else { return };
    let goodbye = async { while events.recv().await.is_some() {} };
    if tokio::time::timeout(GOODBYE, goodbye).await.is_err() {
        link.abort();
    }
    if let Err(error) = (&mut link).await {
        tracing::debug!(%error, "the link did not say goodbye");
    }
}

/// The owner's rules.
fn rules(settings: &Settings, problems: &[settings::Problem]) -> Rules {
    let default = Rules::default();
    let serve = &settings.serve;
    let priceless = |problem: &&settings::Problem| matches!(problem, settings::Problem::BadValue(option) if option.starts_with("prices."));
    Rules {
        quiet: settings.games.quiet.unwrap_or(default.quiet),
        quiet_after_soft: settings.games.quiet.unwrap_or(default.quiet_after_soft),
        on_processor: serve.on_processor,
        on_battery: serve.on_battery,
        beside_films: serve.beside_films,
        away: serve.away,
        calendar: serve.calendar.clone(),
        hottest: serve.hottest,
        reserve: serve.reserve,
        unusable: problems.iter().find(priceless).cloned().map(faults::problem_of_setting),
    }
}

/// What the settings say shall be served, if its files are there.
fn serving(home: &Home, settings: &Settings) -> Option<Serving> {
    let slug = settings.model.slug.as_deref()?;
    match wakati_engine::find_model(&home.models(), slug) {
        Ok(model) => Some(Serving {
            program: wakati_engine::find_program(settings.worker.as_deref()),
            context: settings.model.context.min(model.entry.context),
            slots: settings.model.slots,
            prices: settings.prices,
            reserve: settings.serve.reserve,
            model,
        }),
        Err(problem) => {
            tracing::warn!(%problem, "the model cannot be served");
            None
        }
    }
}
