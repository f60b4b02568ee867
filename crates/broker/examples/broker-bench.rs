//! What the broker adds to a stream: time to the first token and to each token, alone and with many streams.
//!
//! It starts the broker it is given and a fake node that speaks the real link, and asks it through HTTP. Beside it, in
//! the same run, the same token source answers through a plain event stream without a broker: *added* is the
//! difference. Client, node and broker share this machine, so the figures hold all their work.

#[path = "../tests/common/mod.rs"]
mod common;

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::{Query, State};
use axum::response::sse::{Event, Sse};
use axum::serve::ListenerExt;
use clap::Parser;
use common::{FakeNode, OUTPUT};
use futures_util::{SinkExt, StreamExt};
use prost::Message as _;
use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use wakati_broker::operator::{self, Home};
use wakati_protocol::job::{End, Finish, Job, Tokens};
use wakati_protocol::link::{Beat, ToBroker, ToNode, to_broker, to_node};

#[derive(Parser)]
struct Arguments {
    /// The broker's program.
    #[arg(long)]
    broker: PathBuf,
    /// For machines.
    #[arg(long)]
    json: bool,
    /// Streams one after the other.
    #[arg(long, default_value_t = 60)]
    requests: usize,
    /// Streams at the same time.
    #[arg(long, default_value_t = 50)]
    streams: usize,
    #[arg(long, default_value_t = 100)]
    tokens: u32,
    /// Milliseconds between tokens of one stream: 20 is a fast home GPU.
    #[arg(long, default_value_t = 20)]
    pace: u64,
}

/// When each token of a stream left its source. Streams are told apart by their seed.
type Sent = Arc<Mutex<HashMap<u64, Vec<Instant>>>>;

fn left(sent: &Sent, seed: u64) {
    if let Ok(mut sent) = sent.lock() {
        sent.entry(seed).or_default().push(Instant::now());
    }
}

/// What a client saw of one stream.
struct Seen {
    first: Duration,
    /// From the source to the client, for each token after the first.
    each: Vec<Duration>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let sent = Sent::default();
    let folder = tempfile::tempdir()?;
    let home = Home::new(folder.path());
    let model = common::write_model(&folder.path().join("models"));
    operator::credit(&home, "bench", "1000".parse()?).await?;
    let key = operator::create_key(&home, "bench").await?;
    let invite = operator::invite(&home, "bench").await?;
    let mut broker = tokio::process::Command::new(&arguments.broker)
        .arg("--data")
        .arg(folder.path())
        .arg("serve")
        .env("RUST_LOG", "warn")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut line = String::new();
    let stdout = broker.stdout.take().ok_or_else(|| anyhow::anyhow!("the broker has no stdout"))?;
    BufReader::new(stdout).read_line(&mut line).await?;
    let url = line.trim().trim_start_matches("listening on ").to_owned();

    let pace = Duration::from_millis(arguments.pace);
    let mut node = FakeNode::join(&url, 1, &invite, 0).await;
    node.offer(model, arguments.streams as u32 + 4, OUTPUT).await;
    let node = tokio::spawn(serve(node, Arc::clone(&sent), pace));
    let first = client(&url).await?;
    while ask(&first, &url, Some(&key), u64::MAX, 2, &sent).await.is_err() {
        // Until the offer has been read.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let direct = direct(Arc::clone(&sent), pace).await?;

    let mut rows = Vec::new();
    let mut seeds = 0..;
    for (name, together, bars) in
        [("1 stream", 1, [5.0, 1.0]), ("many streams", arguments.streams, [25.0, 5.0])]
    {
        let rounds = if together == 1 { arguments.requests } else { 3 };
        let tokens = if together == 1 { 10 } else { arguments.tokens };
        let (mut through, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            // In turns, so that whatever else the machine does falls on both.
            for (url, key, seen) in [(&direct, None, &mut beside), (&url, Some(&key), &mut through)] {
                let mut clients = Vec::new();
                for _ in 0..together {
                    clients.push(client(url).await?);
                }
                let asked = clients
                    .iter()
                    .zip(seeds.by_ref())
                    .map(|(client, seed)| ask(client, url, key, seed, tokens, &sent));
                for one in futures_util::future::join_all(asked).await {
                    seen.push(one?);
                }
            }
        }
        let first = |seen: &[Seen], p| percentile(seen.iter().map(|s| s.first).collect(), p);
        let each = |seen: &[Seen], p| percentile(seen.iter().flat_map(|s| s.each.clone()).collect(), p);
        for (what, p, bar) in [("p50", 0.5, Some(bars[0])), ("p99", 0.99, None)] {
            let added = first(&through, p) - first(&beside, p);
            rows.push((format!("added to first token, {name}, {what}"), added, first(&beside, p), bar));
        }
        for (what, p, bar) in [("p50", 0.5, Some(bars[1])), ("p99", 0.99, None)] {
            let added = each(&through, p) - each(&beside, p);
            rows.push((format!("added to each token, {name}, {what}"), added, each(&beside, p), bar));
        }
    }
    node.abort();
    broker.kill().await?;
    Ok(report(&arguments, &rows))
}

fn percentile(mut times: Vec<Duration>, p: f64) -> f64 {
    times.sort();
    let at = ((times.len().max(1) - 1) as f64 * p).round() as usize;
    times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}

fn report(arguments: &Arguments, rows: &[(String, f64, f64, Option<f64>)]) -> ExitCode {
    let verdict = |value: f64, bar: Option<f64>| match bar {
        None => "-",
        Some(bar) if value <= bar => "ok",
        Some(_) => "short",
    };
    if arguments.json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(figure, value, beside, bar)| {
                json!({"figure": figure, "unit": "ms", "value": value, "direct": beside, "bar": bar,
                    "verdict": verdict(*value, *bar)})
            })
            .collect();
        println!("{}", json!({"bench": "broker", "rows": rows}));
    } else {
        println!(
            "fake node over the real link; {} tokens a stream, {} ms apart, {} streams; direct: the same source without a broker",
            arguments.tokens, arguments.pace, arguments.streams
        );
        println!("{:<44} {:>9} {:>10} {:>8}", "figure", "value ms", "direct ms", "bar ms");
        for (figure, value, beside, bar) in rows {
            let shown = bar.map_or_else(|| "-".to_owned(), |bar| format!("{bar:.1}"));
            println!("{figure:<44} {value:>9.2} {beside:>10.2} {shown:>8} {}", verdict(*value, *bar));
        }
    }
    let short = rows.iter().any(|(_, value, _, bar)| verdict(*value, *bar) == "short");
    if short { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A client with an open connection. Making one takes milliseconds, so all are made before any clock starts.
async fn client(url: &str) -> anyhow::Result<Client> {
    let client = Client::builder().pool_max_idle_per_host(1).build()?;
    client.get(format!("{url}/healthz")).send().await?.bytes().await?;
    Ok(client)
}

/// One stream, timed. The client counts a token when its event is whole.
async fn ask(
    client: &Client,
    url: &str,
    key: Option<&String>,
    seed: u64,
    tokens: u32,
    sent: &Sent,
) -> anyhow::Result<Seen> {
    let request = match key {
        Some(key) => client.post(format!("{url}/v1/chat/completions")).bearer_auth(key).json(&json!({
            "model": "bytes", "messages": [{"role": "user", "content": "hi"}], "stream": true, "seed": seed,
            "max_tokens": tokens,
        })),
        None => client.get(format!("{url}/stream?seed={seed}&tokens={tokens}")),
    };
    let began = Instant::now();
    let response = request.send().await?.error_for_status()?;
    let mut body = response.bytes_stream();
    let mut buffer = String::new();
    let mut arrived = Vec::new();
    while let Some(bytes) = body.next().await {
        buffer.push_str(std::str::from_utf8(&bytes?)?);
        while let Some(end) = buffer.find("\n\n") {
            if buffer[..end].contains("\"content\":\"x") {
                arrived.push(Instant::now());
            }
            buffer.drain(..end + 2);
        }
    }
    let left = sent.lock().ok().and_then(|mut sent| sent.remove(&seed)).unwrap_or_default();
    let whole = arrived.len() == tokens as usize && left.len() == tokens as usize;
    anyhow::ensure!(whole, "{} tokens arrived and {} left of {tokens}", arrived.len(), left.len());
    let each =
        left.iter().zip(&arrived).skip(1).map(|(left, arrived)| arrived.duration_since(*left)).collect();
    Ok(Seen { first: arrived[0].duration_since(began), each })
}

/// The fake node: every job gets its limit in tokens, one by one, as its credit allows.
async fn serve(node: FakeNode, sent: Sent, pace: Duration) {
    let (mut out, mut inward) = node.socket.split();
    // Frames of all jobs on their way to the socket.
    let (frames, mut queue) = mpsc::channel::<to_broker::Body>(1024);
    let writer = tokio::spawn(async move {
        while let Some(body) = queue.recv().await {
            if out.send(Message::Binary(ToBroker::from(body).encode_to_vec().into())).await.is_err() {
                return;
            }
        }
    });
    let mut credits: HashMap<Vec<u8>, mpsc::UnboundedSender<u32>> = HashMap::new();
    let mut beat = tokio::time::interval(Duration::from_secs(2));
    loop {
        let message = tokio::select! {
            message = inward.next() => message,
            _ = beat.tick() => {
                if frames.send(to_broker::Body::Beat(Beat::default())).await.is_err() {
                    break;
                }
                continue;
            }
        };
        let Some(Ok(message)) = message else { break };
        match ToNode::decode(message.into_data()).ok().and_then(|frame| frame.body) {
            Some(to_node::Body::Job(job)) => {
                let (more, credit) = mpsc::unbounded_channel();
                credits.insert(job.job.clone(), more);
                tokio::spawn(produce(job, credit, frames.clone(), Arc::clone(&sent), pace));
            }
            Some(to_node::Body::Credit(credit)) => {
                if let Some(more) = credits.get(&credit.job) {
                    let _ = more.send(credit.tokens);
                }
            }
            _ => {}
        }
    }
    writer.abort();
}

async fn produce(
    job: Job,
    mut credit: mpsc::UnboundedReceiver<u32>,
    frames: mpsc::Sender<to_broker::Body>,
    sent: Sent,
    pace: Duration,
) {
    let mut allowed = job.credit;
    let (id, attempt, seed) = (job.job.clone(), job.attempt, job.sampling.seed);
    let mut clock = tokio::time::interval(pace);
    for position in 0..job.limit {
        clock.tick().await;
        while allowed == 0 {
            let Some(more) = credit.recv().await else { return };
            allowed += more;
        }
        allowed -= 1;
        let ids = vec![u32::from(b'x')];
        left(&sent, seed);
        let tokens = Tokens { job: id.clone(), attempt, first_position: position, ids, logprobs: Vec::new() };
        let _ = frames.send(to_broker::Body::Tokens(tokens)).await;
    }
    let end = End { job: id, attempt, finish: Finish::Length.into(), position: job.limit, ..End::default() };
    let _ = frames.send(to_broker::Body::End(end)).await;
}

#[derive(Deserialize)]
struct Wanted {
    seed: u64,
    tokens: u32,
}

/// The same source behind a plain event stream.
async fn direct(sent: Sent, pace: Duration) -> anyhow::Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let stream = move |State(sent): State<Sent>, Query(wanted): Query<Wanted>| async move {
        let clock = tokio::time::interval(pace);
        let events = futures_util::stream::unfold((clock, 0), move |(mut clock, position)| {
            let sent = Arc::clone(&sent);
            async move {
                if position == wanted.tokens {
                    return None;
                }
                clock.tick().await;
                left(&sent, wanted.seed);
                let chunk = json!({"choices": [{"index": 0, "delta": {"content": "x"}}]});
                let event = Event::default().data(chunk.to_string());
                Some((Ok::<_, Infallible>(event), (clock, position + 1)))
            }
        });
        Sse::new(events)
    };
    let routes = axum::Router::new()
        .route("/stream", axum::routing::get(stream))
        .route("/healthz", axum::routing::get(|| async { "ok" }))
        .with_state(sent);
    // As the broker's sockets; otherwise the comparison waits for acknowledgements and flatters the broker.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Ok(format!("http://{address}"))
}
