//! The pipe between a node and its worker: frames on the worker's stdin and stdout.
//!
//! The worker is started with one model. It says `Hello`, then `Loading` as it goes, then `Ready` or `Refused`.
//! After `Ready` it takes jobs. It ends when its stdin ends, and may be killed at any moment.

use crate::job::{Cancel, Credit, End, Job, Tokens};

/// The environment variable that says what a worker logs, in the form of `RUST_LOG`: a node hands it on.
pub const LOG_VARIABLE: &str = "WAKATI_LOG";

/// From the node to its worker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ToWorker {
    #[prost(oneof = "to_worker::Body", tags = "1, 2, 3")]
    pub body: Option<to_worker::Body>,
}

pub mod to_worker {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Body {
        #[prost(message, tag = "1")]
        Job(super::Job),
        #[prost(message, tag = "2")]
        Credit(super::Credit),
        #[prost(message, tag = "3")]
        Cancel(super::Cancel),
    }
}

/// From the worker to its node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FromWorker {
    #[prost(oneof = "from_worker::Body", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub body: Option<from_worker::Body>,
}

pub mod from_worker {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Body {
        #[prost(message, tag = "1")]
        Hello(super::WorkerHello),
        #[prost(message, tag = "2")]
        Loading(super::Loading),
        #[prost(message, tag = "3")]
        Ready(super::Ready),
        #[prost(message, tag = "4")]
        Refused(super::Refused),
        #[prost(message, tag = "5")]
        Tokens(super::Tokens),
        #[prost(message, tag = "6")]
        End(super::End),
        #[prost(message, tag = "7")]
        Beat(super::WorkerBeat),
    }
}

impl From<to_worker::Body> for ToWorker {
    fn from(body: to_worker::Body) -> Self {
        Self { body: Some(body) }
    }
}

impl From<from_worker::Body> for FromWorker {
    fn from(body: from_worker::Body) -> Self {
        Self { body: Some(body) }
    }
}

/// The worker's first word: what it is and what holds it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WorkerHello {
    /// [`crate::PIPE_VERSION`].
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// `cpu`, `cuda` or `metal`.
    #[prost(string, tag = "2")]
    pub variant: String,
    /// What the sandbox really enforces, one word each: `files`, `network`, `exec`, `writes`.
    #[prost(string, repeated, tag = "3")]
    pub enforced: Vec<String>,
}

/// How far the model is loaded.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Loading {
    /// Bytes of the file read so far, and in all.
    #[prost(uint64, tag = "1")]
    pub bytes: u64,
    #[prost(uint64, tag = "2")]
    pub of_bytes: u64,
}

/// The model is loaded.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Ready {
    /// Tokens of prompt and answer together, at most.
    #[prost(uint32, tag = "1")]
    pub context: u32,
    #[prost(uint32, tag = "2")]
    pub vocabulary: u32,
    /// Jobs at the same time that the worker accepts.
    #[prost(uint32, tag = "3")]
    pub slots: u32,
    #[prost(uint32, tag = "4")]
    pub load_ms: u32,
    /// Resident memory after loading.
    #[prost(uint64, tag = "5")]
    pub resident_bytes: u64,
    /// Generated tokens per second in a short run after loading, times 100.
    #[prost(uint32, tag = "6")]
    pub speed_centi_tps: u32,
}

/// The worker cannot serve this model on this machine. It ends after this frame.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Refused {
    #[prost(enumeration = "RefusedReason", tag = "1")]
    pub reason: i32,
    /// What the model needs and what there is, in bytes; 0 where that was not the reason.
    #[prost(uint64, tag = "2")]
    pub needed_bytes: u64,
    #[prost(uint64, tag = "3")]
    pub free_bytes: u64,
    /// For the log.
    #[prost(string, tag = "4")]
    pub detail: String,
}

/// Why a worker cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum RefusedReason {
    Unknown = 0,
    /// The file is not there or cannot be read.
    NoFile = 1,
    /// The file is damaged or is not a model.
    CorruptFile = 2,
    /// A model of a kind that the engine does not know.
    UnknownArchitecture = 3,
    /// It needs more memory than is free.
    DoesNotFit = 4,
    /// The processor lacks AVX2, for which the worker is built.
    NoAvx2 = 5,
    /// The engine failed while loading.
    Engine = 6,
}

/// The worker lives. Sent every second after `Ready`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WorkerBeat {
    #[prost(uint32, tag = "1")]
    pub active_jobs: u32,
    #[prost(uint64, tag = "2")]
    pub resident_bytes: u64,
    /// Tokens generated since the worker was ready.
    #[prost(uint64, tag = "3")]
    pub tokens: u64,
}
