//! The node link: one outbound WebSocket from a node to its broker, one protobuf message in each frame.
//!
//! ```text
//! broker: Challenge            node: Hello
//! broker: Welcome | Refuse     node: Offer, then again whenever it changes
//! node:   Beat every 5 s       broker: Beat in answer
//! broker: Job, Credit, Cancel  node: Tokens, End | Yielding
//! broker: Receipt, again until node: ReceiptAck
//! ```

use crate::job::{Cancel, Credit, End, Job, Tokens};
use crate::receipt::{Receipt, ReceiptAck};

/// From the broker to a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToNode {
    #[prost(oneof = "to_node::Body", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9")]
    pub body: Option<to_node::Body>,
}

pub mod to_node {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Body {
        #[prost(message, tag = "1")]
        Challenge(super::Challenge),
        #[prost(message, tag = "2")]
        Welcome(super::Welcome),
        #[prost(message, tag = "3")]
        Refuse(super::Refuse),
        #[prost(message, tag = "4")]
        Beat(super::BrokerBeat),
        #[prost(message, tag = "5")]
        Job(super::Job),
        #[prost(message, tag = "6")]
        Credit(super::Credit),
        #[prost(message, tag = "7")]
        Cancel(super::Cancel),
        #[prost(message, tag = "8")]
        Receipt(super::Receipt),
        #[prost(message, tag = "9")]
        Bye(super::Bye),
    }
}

/// From a node to the broker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToBroker {
    #[prost(oneof = "to_broker::Body", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    pub body: Option<to_broker::Body>,
}

pub mod to_broker {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Body {
        #[prost(message, tag = "1")]
        Hello(super::Hello),
        #[prost(message, tag = "2")]
        Offer(super::Offer),
        #[prost(message, tag = "3")]
        Beat(super::Beat),
        #[prost(message, tag = "4")]
        Tokens(super::Tokens),
        #[prost(message, tag = "5")]
        End(super::End),
        #[prost(message, tag = "6")]
        Yielding(super::Yielding),
        #[prost(message, tag = "7")]
        ReceiptAck(super::ReceiptAck),
        #[prost(message, tag = "8")]
        Bye(super::Bye),
    }
}

impl From<to_node::Body> for ToNode {
    fn from(body: to_node::Body) -> Self {
        Self { body: Some(body) }
    }
}

impl From<to_broker::Body> for ToBroker {
    fn from(body: to_broker::Body) -> Self {
        Self { body: Some(body) }
    }
}

/// The broker's first word.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Challenge {
    /// 32 random bytes, used once.
    #[prost(bytes = "vec", tag = "1")]
    pub nonce: Vec<u8>,
    /// The 32 bytes of the broker's public key; the node signs it too, so that no other broker can reuse the answer.
    #[prost(bytes = "vec", tag = "2")]
    pub broker: Vec<u8>,
}

/// The node's answer: who it is and what it speaks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    #[prost(uint32, tag = "1")]
    pub oldest_version: u32,
    #[prost(uint32, tag = "2")]
    pub newest_version: u32,
    /// The 32 bytes of the node's public key.
    #[prost(bytes = "vec", tag = "3")]
    pub node: Vec<u8>,
    /// 64 bytes over [`crate::receipt::hello_bytes`].
    #[prost(bytes = "vec", tag = "4")]
    pub signature: Vec<u8>,
    /// The invite that a node shows the first time it joins; empty afterwards.
    #[prost(string, tag = "5")]
    pub invite: String,
    /// The program and its version, for the operator.
    #[prost(string, tag = "6")]
    pub software: String,
    /// The highest receipt sequence that the node has stored; receipts after it are sent again.
    #[prost(uint64, tag = "7")]
    pub receipts_to: u64,
}

/// The node is in.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Welcome {
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// Random bytes that name this session.
    #[prost(bytes = "vec", tag = "2")]
    pub session: Vec<u8>,
    /// Beats are due this often.
    #[prost(uint32, tag = "3")]
    pub beat_ms: u32,
    /// After a lost link, wait a random time up to this before dialling again.
    #[prost(uint32, tag = "4")]
    pub reconnect_window_ms: u32,
}

/// The node is not let in. Dialling again at once will not help.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Refuse {
    #[prost(enumeration = "RefuseReason", tag = "1")]
    pub reason: i32,
    /// Milliseconds before it makes sense to try again; 0 leaves that to the node.
    #[prost(uint32, tag = "2")]
    pub retry_after_ms: u32,
}

/// Why a node is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum RefuseReason {
    Unknown = 0,
    /// No common version.
    Version = 1,
    /// The signature does not fit the key.
    Signature = 2,
    /// The node is not registered and showed no invite.
    NotInvited = 3,
    /// The invite is not valid, already used or expired.
    BadInvite = 4,
    /// Too many nodes at the moment.
    Full = 5,
    /// This node key is already connected.
    AlreadyHere = 6,
}

/// What the node is willing to serve now. Replaces the offer before it; without models the node takes no jobs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Offer {
    #[prost(message, repeated, tag = "1")]
    pub models: Vec<ModelOffer>,
}

/// One model on offer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelOffer {
    /// The 32 bytes of a [`crate::ids::ModelDigest`].
    #[prost(bytes = "vec", tag = "1")]
    pub model: Vec<u8>,
    /// Tokens of prompt and answer together, at most.
    #[prost(uint32, tag = "2")]
    pub context: u32,
    /// Jobs at the same time.
    #[prost(uint32, tag = "3")]
    pub slots: u32,
    /// Ask price for prompt tokens, nano-USD per million: what the consumer pays.
    #[prost(int64, tag = "4")]
    pub input_price: i64,
    /// Ask price for generated tokens, nano-USD per million: what the consumer pays.
    #[prost(int64, tag = "5")]
    pub output_price: i64,
    /// Generated tokens per second that the worker measured, times 100; 0 when not measured.
    #[prost(uint32, tag = "6")]
    pub speed_centi_tps: u32,
}

/// The node lives. Sent every [`Welcome::beat_ms`].
#[derive(Clone, PartialEq, prost::Message)]
pub struct Beat {
    /// Echoed in the answer, to measure the round trip.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(uint32, tag = "2")]
    pub active_jobs: u32,
    #[prost(uint32, optional, tag = "3")]
    pub free_vram_mib: Option<u32>,
    #[prost(sint32, optional, tag = "4")]
    pub temperature_celsius: Option<i32>,
}

/// The broker lives.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BrokerBeat {
    #[prost(uint64, tag = "1")]
    pub number: u64,
}

/// The node gives its GPU back now. Every attempt it had is over; an empty offer goes with it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Yielding {
    #[prost(enumeration = "YieldReason", tag = "1")]
    pub reason: i32,
    /// How far each of its attempts came.
    #[prost(message, repeated, tag = "2")]
    pub handed_back: Vec<HandedBack>,
}

/// Why a node yields. What runs on the machine stays on the machine: the broker learns the kind, never the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum YieldReason {
    Unknown = 0,
    /// The owner plays.
    Game = 1,
    /// The owner paused or quit.
    Owner = 2,
    /// A limit, the calendar, sleep.
    Limit = 3,
    /// The worker ended and the node is not able to serve.
    Fault = 4,
}

/// An attempt that ends with the yield.
#[derive(Clone, PartialEq, prost::Message)]
pub struct HandedBack {
    #[prost(bytes = "vec", tag = "1")]
    pub job: Vec<u8>,
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// The position after the last token sent.
    #[prost(uint32, tag = "3")]
    pub position: u32,
}

/// A polite end of the link.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Bye {}
