//! A broker on a free port with a tiny model, and a fake node that speaks the real link over a real socket.
//!
//! The fake contains no logic: it says what a test tells it to say.

// Each test program uses a part of it.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use ed25519_dalek::SigningKey;
use futures_util::{SinkExt, StreamExt};
use prost::Message as _;
use reqwest::Response;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};
use wakati_broker::operator::{self, Home};
use wakati_broker::settings::Settings;
use wakati_broker::{Running, start};
use wakati_catalogue::Entry;
use wakati_protocol::ids::{ModelDigest, NodeId};
use wakati_protocol::job::{End, Finish, Job, Tokens};
use wakati_protocol::link::{
    Hello, ModelOffer, Offer, ToBroker, ToNode, YieldReason, Yielding, to_broker, to_node,
};
use wakati_protocol::money::NanoUsd;
use wakati_protocol::receipt::{Receipt, ReceiptAck, hello_bytes, sign};

/// Nothing in these tests takes this long; what does is stuck.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The token that ends an answer.
pub const STOP_ID: u32 = 257;
/// $0.05 and $0.10 per million tokens.
pub const INPUT: i64 = 50_000_000;
pub const OUTPUT: i64 = 100_000_000;

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// A model of one token for each byte.
pub fn write_model(models: &Path) -> ModelDigest {
    let dir = models.join("bytes");
    std::fs::create_dir_all(&dir).unwrap();
    let mut vocabulary = serde_json::Map::new();
    let mut moved = 256;
    for byte in 0..=255_u32 {
        let printable = matches!(byte, 33..=126 | 161..=172 | 174..=255);
        let letter = if printable { byte } else { moved };
        moved += u32::from(!printable);
        vocabulary.insert(char::from_u32(letter).unwrap().to_string(), byte.into());
    }
    let special = |id, content: &str| {
        json!({"id": id, "content": content, "special": true, "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false})
    };
    let level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": [special(256, "<|im_start|>"), special(257, "<|im_end|>"), special(258, "<|pad|>")],
        "pre_tokenizer": level, "decoder": level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    })
    .to_string();
    let template = "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}\
        <|im_start|>{{ m.role }} {{ m.content }}<|im_end|>{% endfor %}<|im_start|>";
    let digest = |text: &str| hex::encode(Sha256::digest(text));
    let mut entry = Entry {
        slug: "bytes".into(),
        name: "Bytes".into(),
        digest: ModelDigest([0; 32]),
        weights_digest: "00".repeat(32),
        weights_bytes: 1,
        quantisation: "F32".into(),
        architecture: "none".into(),
        context: 4096,
        vocabulary: 259,
        stop_ids: vec![STOP_ID],
        bos_id: None,
        eos_id: STOP_ID,
        tokenizer_digest: digest(&tokenizer),
        template_digest: digest(template),
        layers: 1,
        heads: 1,
        kv_heads: 1,
        key_length: 1,
        value_length: 1,
    };
    entry.digest = entry.compute_digest();
    std::fs::write(dir.join("tokenizer.json"), tokenizer).unwrap();
    std::fs::write(dir.join("chat_template.jinja"), template).unwrap();
    std::fs::write(dir.join("entry.json"), serde_json::to_string(&entry).unwrap()).unwrap();
    entry.digest
}

pub struct Broker {
    pub folder: tempfile::TempDir,
    pub home: Home,
    pub running: Running,
    pub url: String,
    pub model: ModelDigest,
    pub http: reqwest::Client,
}

/// Settings in which waiting is short.
pub fn quick() -> Settings {
    Settings {
        replacement: Duration::from_millis(500),
        drain: Duration::from_secs(2),
        receipt_resend: Duration::from_millis(300),
        ..Settings::default()
    }
}

impl Broker {
    pub async fn start(settings: Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::start_in(folder, settings).await
    }

    pub async fn start_in(folder: tempfile::TempDir, settings: Settings) -> Self {
        let model = write_model(&folder.path().join("models"));
        let home = Home::new(folder.path());
        let running = start(&home, "127.0.0.1:0".parse().unwrap(), settings).await.unwrap();
        let url = format!("http://{}", running.address);
        Self { folder, home, running, url, model, http: reqwest::Client::new() }
    }

    /// Ends as a crash would, and starts again on the same folder.
    pub async fn crash_and_restart(self, settings: Settings) -> Self {
        self.running.crash().await;
        Self::start_in(self.folder, settings).await
    }

    pub async fn key(&self, dollars: &str) -> String {
        operator::credit(&self.home, "acme", dollars.parse().unwrap()).await.unwrap();
        operator::create_key(&self.home, "acme").await.unwrap()
    }

    pub async fn node(&self, seed: u8, output_price: i64) -> FakeNode {
        let invite = operator::invite(&self.home, &format!("owner {seed}")).await.unwrap();
        let mut node = FakeNode::join(&self.url, seed, &invite, 0).await;
        node.offer(self.model, 2, output_price).await;
        self.until_offered(self.model).await;
        node
    }

    /// A node with an offer of its own, which the market shows when this returns.
    pub async fn node_that_offers(&self, seed: u8, offer: ModelOffer) -> FakeNode {
        let before = self.get("/v1/models/bytes").await["wakati"]["nodes"].as_u64().unwrap();
        let invite = operator::invite(&self.home, &format!("owner {seed}")).await.unwrap();
        let mut node = FakeNode::join(&self.url, seed, &invite, 0).await;
        node.say(to_broker::Body::Offer(Offer { models: vec![offer] })).await;
        within("an offer to be seen", async {
            while self.get("/v1/models/bytes").await["wakati"]["nodes"] != before + 1 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        node
    }

    /// Two slots of 2048 tokens at these prices.
    pub fn at(&self, input_price: i64, output_price: i64) -> ModelOffer {
        let model = self.model.to_vec();
        ModelOffer { model, context: 2048, slots: 2, input_price, output_price, speed_centi_tps: 0 }
    }

    /// A second connection to the books, as an operator's command has one.
    pub async fn database(&self) -> sqlx::SqliteConnection {
        let file = self.folder.path().join("broker.sqlite");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file).busy_timeout(PATIENCE);
        <sqlx::SqliteConnection as sqlx::Connection>::connect_with(&options).await.unwrap()
    }

    /// Until the market shows at least one more free slot than none.
    pub async fn until_offered(&self, _model: ModelDigest) {
        within("an offer to be seen", async {
            loop {
                let model = self.get("/v1/models/bytes").await;
                if model["wakati"]["free_slots"].as_u64().unwrap() > 0 {
                    return;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    pub async fn get(&self, path: &str) -> Value {
        self.http.get(format!("{}{path}", self.url)).send().await.unwrap().json().await.unwrap()
    }

    pub fn ask(&self, key: &str, fields: Value) -> tokio::task::JoinHandle<Response> {
        let mut body = json!({"model": "bytes", "messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let request =
            self.http.post(format!("{}/v1/chat/completions", self.url)).bearer_auth(key).json(&body);
        tokio::spawn(async move { request.send().await.unwrap() })
    }

    /// The books as soon as no job is open.
    pub async fn settled_books(&self) -> Value {
        within("all jobs to be settled", async {
            loop {
                let books = serde_json::to_value(operator::books(&self.home).await.unwrap()).unwrap();
                let jobs = books["jobs"].as_array().unwrap();
                if !jobs.is_empty() && jobs.iter().all(|job| job["finish"] != "open") {
                    assert_eq!(operator::audit(&self.home).await.unwrap(), []);
                    return books;
                }
            }
        })
        .await
    }

    /// The slots that are free, as soon as that is so many.
    pub async fn until_free(&self, slots: u64) {
        within("slots to be free", async {
            while self.get("/v1/models/bytes").await["wakati"]["free_slots"] != slots {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

pub struct FakeNode {
    pub socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub key: SigningKey,
}

impl FakeNode {
    pub fn id(&self) -> NodeId {
        NodeId(self.key.verifying_key().to_bytes())
    }

    /// Connects and says hello; the next frame is `Welcome` or `Refuse`.
    pub async fn knock(url: &str, seed: u8, invite: &str, receipts_to: u64) -> Self {
        let key = SigningKey::from_bytes(&[seed; 32]);
        let url = format!("{}/node/v1", url.replace("http", "ws"));
        let (socket, _) = tokio_tungstenite::connect_async_with_config(url, None, true).await.unwrap();
        let mut node = Self { socket, key };
        let Some(to_node::Body::Challenge(challenge)) = node.hear().await else { panic!("no challenge") };
        let hello = Hello {
            oldest_version: 1,
            newest_version: 1,
            node: node.id().to_vec(),
            signature: sign(&node.key, &hello_bytes(&challenge.nonce, &challenge.broker)),
            invite: invite.to_owned(),
            software: "fake".to_owned(),
            receipts_to,
        };
        node.say(to_broker::Body::Hello(hello)).await;
        node
    }

    pub async fn join(url: &str, seed: u8, invite: &str, receipts_to: u64) -> Self {
        let mut node = Self::knock(url, seed, invite, receipts_to).await;
        assert!(matches!(node.hear().await, Some(to_node::Body::Welcome(_))));
        node
    }

    pub async fn offer(&mut self, model: ModelDigest, slots: u32, output_price: i64) {
        let offer = ModelOffer {
            model: model.to_vec(),
            context: 2048,
            slots,
            input_price: INPUT,
            output_price,
            speed_centi_tps: 0,
        };
        self.say(to_broker::Body::Offer(Offer { models: vec![offer] })).await;
    }

    pub async fn say(&mut self, body: to_broker::Body) {
        self.raw(Message::Binary(ToBroker::from(body).encode_to_vec().into())).await;
    }

    pub async fn raw(&mut self, message: Message) {
        // A link that the broker has closed is part of some tests.
        let _ = self.socket.send(message).await;
    }

    /// The next frame; `None` when the link has ended.
    pub async fn hear(&mut self) -> Option<to_node::Body> {
        within("a frame from the broker", async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Binary(bytes))) => return ToNode::decode(bytes).unwrap().body,
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Text(_) | Message::Frame(_))) => {}
                    None | Some(Err(_) | Ok(Message::Close(_))) => return None,
                }
            }
        })
        .await
    }

    pub async fn job(&mut self) -> Job {
        loop {
            if let to_node::Body::Job(job) = self.hear().await.expect("the link ended") {
                return job;
            }
        }
    }

    pub async fn until_cancel(&mut self) {
        while !matches!(self.hear().await.expect("the link ended"), to_node::Body::Cancel(_)) {}
    }

    pub async fn receipt(&mut self) -> Receipt {
        loop {
            if let to_node::Body::Receipt(receipt) = self.hear().await.expect("the link ended") {
                return receipt;
            }
        }
    }

    pub async fn acknowledge(&mut self, receipt: &Receipt) {
        let node_signature = sign(&self.key, &receipt.signed_bytes());
        self.say(to_broker::Body::ReceiptAck(ReceiptAck { sequence: receipt.sequence, node_signature }))
            .await;
    }

    /// Says text: one token for each byte, all in one frame.
    pub async fn tokens(&mut self, job: &Job, first_position: u32, text: &str) {
        let ids = text.bytes().map(u32::from).collect();
        let (job, attempt) = (job.job.clone(), job.attempt);
        let tokens = Tokens { job, attempt, first_position, ids, logprobs: Vec::new() };
        self.say(to_broker::Body::Tokens(tokens)).await;
    }

    pub async fn end(&mut self, job: &Job, finish: Finish, position: u32) {
        let end = End {
            job: job.job.clone(),
            attempt: job.attempt,
            finish: finish.into(),
            position,
            ..End::default()
        };
        self.say(to_broker::Body::End(end)).await;
    }

    pub async fn yields(&mut self) {
        let yielding = Yielding { reason: YieldReason::Game.into(), handed_back: Vec::new() };
        self.say(to_broker::Body::Yielding(yielding)).await;
    }

    pub async fn leave(mut self) {
        let _ = self.socket.close(None).await;
    }
}

/// The payloads of a whole event stream.
pub async fn events(response: Response) -> Vec<String> {
    assert_eq!(response.status(), 200);
    let text = within("the stream's end", response.text()).await.unwrap();
    text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).map(str::to_owned).collect()
}

/// The text that a consumer sees in these payloads.
pub fn text_of(events: &[String]) -> String {
    events
        .iter()
        .filter_map(|event| serde_json::from_str::<Value>(event).ok())
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect()
}

pub fn dollars(nano: i64) -> NanoUsd {
    NanoUsd(nano)
}
