//! A broker that does what the test says, over the real link, and a home with a model for the fake worker.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ed25519_dalek::SigningKey;
use futures_util::{SinkExt, StreamExt};
use prost::Message as _;
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;
use wakati_catalogue::Entry;
use wakati_node::{Handle, Node, RunOptions};
use wakati_protocol::desk::Snapshot;
use wakati_protocol::ids::ModelDigest;
use wakati_protocol::job::{Job, Tokens};
use wakati_protocol::link::{
    BrokerBeat, Challenge, Hello, Offer, ToBroker, ToNode, Welcome, to_broker, to_node,
};
use wakati_protocol::money::{NanoUsd, Price, Prices, Share};
use wakati_protocol::receipt::{self, Receipt};

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
pub const PRICES: Prices = Prices { input: Price(50_000_000), output: Price(100_000_000) };

/// A listening broker.
pub struct Broker {
    listener: TcpListener,
    pub key: SigningKey,
}

impl Broker {
    pub async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { listener, key: SigningKey::from_bytes(&[3; 32]) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }

    /// The next node, challenged. It has not answered yet.
    pub async fn challenge(&self) -> Session {
        let challenging = async {
            let (stream, _) = self.listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            let broker = self.key.verifying_key().to_bytes().to_vec();
            let challenge = Challenge { nonce: vec![7; 32], broker };
            socket.send(packed(to_node::Body::Challenge(challenge))).await.unwrap();
            Session { socket, hello: Hello::default() }
        };
        tokio::time::timeout(PATIENCE, challenging).await.expect("a node dials")
    }

    /// The next node, after its `Hello`.
    pub async fn greet(&self) -> Session {
        let mut session = self.challenge().await;
        let to_broker::Body::Hello(hello) = session.next().await else { panic!("the node greets first") };
        let signed = receipt::hello_bytes(&[7; 32], &self.key.verifying_key().to_bytes());
        receipt::verify(&hello.node, &signed, &hello.signature).unwrap();
        Session { hello, ..session }
    }

    /// The next node, let in.
    pub async fn welcome(&self) -> Session {
        let mut session = self.greet().await;
        let welcome = Welcome { version: 1, session: vec![1; 16], beat_ms: 200, reconnect_window_ms: 20 };
        session.say(to_node::Body::Welcome(welcome)).await;
        session
    }

    /// A receipt for this attempt as the node expects it, signed.
    pub fn receipt(&self, hello: &Hello, job: &Job, sequence: u64, positions: u32) -> Receipt {
        let input_tokens = (job.prompt.len() + job.emitted.len()) as u32;
        let NanoUsd(pay) = PRICES.share(input_tokens.into(), positions.into(), Share::OWNER);
        self.signed(Receipt {
            sequence,
            node: hello.node.clone(),
            job: job.job.clone(),
            attempt: job.attempt,
            model: job.model.clone(),
            first_position: job.emitted.len() as u32,
            positions,
            input_tokens,
            input_price: PRICES.input.0,
            output_price: PRICES.output.0,
            share: Share::OWNER.0.into(),
            pay,
            settled_at: jiff::Timestamp::now().as_millisecond(),
            broker_signature: vec![],
        })
    }

    pub fn signed(&self, receipt: Receipt) -> Receipt {
        let broker_signature = receipt::sign(&self.key, &receipt.signed_bytes());
        Receipt { broker_signature, ..receipt }
    }
}

/// One node's link, at the broker's end.
pub struct Session {
    socket: WebSocketStream<TcpStream>,
    pub hello: Hello,
}

impl Session {
    pub async fn say(&mut self, body: to_node::Body) {
        self.socket.send(packed(body)).await.unwrap();
    }

    /// Whether the node says nothing more.
    pub async fn says_no_more(mut self) -> bool {
        let next =
            tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("the node speaks or hangs up");
        !matches!(next, Some(Ok(Message::Binary(_))))
    }

    /// The node's next word. Beats are answered and passed over.
    pub async fn next(&mut self) -> to_broker::Body {
        let word = async {
            loop {
                let message = self.socket.next().await.expect("the link stands").unwrap();
                let Message::Binary(bytes) = message else { continue };
                match ToBroker::decode(bytes).unwrap().body.unwrap() {
                    to_broker::Body::Beat(beat) => {
                        self.say(to_node::Body::Beat(BrokerBeat { number: beat.number })).await;
                    }
                    body => return body,
                }
            }
        };
        tokio::time::timeout(PATIENCE, word).await.expect("the node speaks")
    }

    /// The next offer that has a model in it.
    pub async fn offer(&mut self) -> Offer {
        loop {
            if let to_broker::Body::Offer(offer) = self.next().await
                && !offer.models.is_empty()
            {
                return offer;
            }
        }
    }

    /// The next tokens, which are all the node may say.
    pub async fn tokens(&mut self) -> Tokens {
        match self.next().await {
            to_broker::Body::Tokens(tokens) => tokens,
            other => panic!("tokens were expected, not {other:?}"),
        }
    }
}

fn packed(body: to_node::Body) -> Message {
    Message::binary(ToNode::from(body).encode_to_vec())
}

/// A node's home with one model, whose worker needs `pace_ms` for a token.
pub struct House {
    folder: tempfile::TempDir,
    pub digest: ModelDigest,
}

impl House {
    pub fn build(url: &str, pace_ms: u32, more_settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let digest = write_model(&folder.path().join("models/tiny"), pace_ms);
        let worker = std::env::current_exe().unwrap();
        let worker = worker.parent().unwrap().parent().unwrap().join("examples/fake-worker");
        let settings = format!(
            "[broker]\nurl = \"{url}\"\ninvite = \"an-invite\"\n[model]\nslug = \"tiny\"\ncontext = 512\nslots = 2\n\
             [serve]\non_processor = true\non_battery = true\n[worker]\nprogram = \"{}\"\n{more_settings}",
            worker.display()
        );
        std::fs::write(folder.path().join("settings.toml"), settings).unwrap();
        Self { folder, digest }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub async fn start(&self) -> Running {
        let node = Node::open(self.path(), RunOptions::default()).await.unwrap();
        let handle = node.handle();
        let stop = CancellationToken::new();
        let task = tokio::spawn(node.run(stop.clone()));
        Running { handle, stop, task }
    }

    /// A job of `limit` tokens with a prompt of three.
    pub fn job(&self, name: u8, limit: u32) -> Job {
        Job {
            job: vec![name; 16],
            attempt: 1,
            model: self.digest.to_vec(),
            prompt: vec![1, 2, 3],
            limit,
            credit: limit,
            ..Job::default()
        }
    }
}

/// A node that runs in this process.
pub struct Running {
    pub handle: Handle,
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    /// Waits for a snapshot of which this is true.
    pub async fn until(&self, what: &str, holds: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let mut snapshots = self.handle.snapshots();
        let wait = snapshots.wait_for(|snapshot| holds(snapshot));
        let found = tokio::time::timeout(PATIENCE, wait).await;
        let found = found.map(|snapshot| snapshot.unwrap().clone());
        found.unwrap_or_else(|_| panic!("{what}: {:#?}", self.handle.snapshots().borrow()))
    }

    pub async fn end(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("the node ends").unwrap().unwrap();
    }
}

fn write_model(folder: &PathBuf, pace_ms: u32) -> ModelDigest {
    let digest = |text: &str| hex::encode(Sha256::digest(text));
    let weights = pace_ms.to_string();
    let mut entry = Entry {
        slug: "tiny".into(),
        name: "Tiny".into(),
        digest: ModelDigest([0; 32]),
        weights_digest: digest(&weights),
        weights_bytes: weights.len() as u64,
        quantisation: "F32".into(),
        architecture: "llama".into(),
        context: 1024,
        vocabulary: 1000,
        stop_ids: vec![2],
        bos_id: None,
        eos_id: 2,
        tokenizer_digest: digest("{}"),
        template_digest: digest("hello"),
        layers: 1,
        heads: 1,
        kv_heads: 1,
        key_length: 8,
        value_length: 8,
    };
    entry.digest = entry.compute_digest();
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("entry.json"), serde_json::to_vec(&entry).unwrap()).unwrap();
    std::fs::write(folder.join("tokenizer.json"), "{}").unwrap();
    std::fs::write(folder.join("chat_template.jinja"), "hello").unwrap();
    std::fs::write(folder.join("weights.gguf"), weights).unwrap();
    entry.digest
}
