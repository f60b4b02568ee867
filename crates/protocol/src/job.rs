//! A job as the link and the pipe carry it: token ids in, token ids out.

/// How to choose the next token. The worker's sampler is the only place that reads it.
///
/// The same model, seed, position and prefix choose the same token on any node, up to float noise.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sampling {
    /// 0 is greedy.
    #[prost(float, tag = "1")]
    pub temperature: f32,
    /// Keep the smallest set of tokens with at least this probability; 0 or 1 keeps all.
    #[prost(float, tag = "2")]
    pub top_p: f32,
    /// Keep the most probable tokens; 0 keeps all.
    #[prost(uint32, tag = "3")]
    pub top_k: u32,
    /// Drop tokens less probable than this share of the best one; 0 drops none.
    #[prost(float, tag = "4")]
    pub min_p: f32,
    /// Subtracted once from tokens already emitted in this job.
    #[prost(float, tag = "5")]
    pub presence_penalty: f32,
    /// Subtracted from tokens already emitted in this job, times how often.
    #[prost(float, tag = "6")]
    pub frequency_penalty: f32,
    /// Added to the logits of these tokens.
    #[prost(message, repeated, tag = "7")]
    pub bias: Vec<Bias>,
    /// Keys the draw together with the position and the token id.
    #[prost(fixed64, tag = "8")]
    pub seed: u64,
    /// Report the log-probability of each token, and of this many alternatives.
    #[prost(uint32, optional, tag = "9")]
    pub top_logprobs: Option<u32>,
}

/// A bias on one token's logit.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Bias {
    #[prost(uint32, tag = "1")]
    pub token: u32,
    #[prost(float, tag = "2")]
    pub add: f32,
}

/// One node's try at a job. `position` of the first token to produce is `emitted.len()`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Job {
    /// The 16 bytes of a [`crate::ids::JobId`].
    #[prost(bytes = "vec", tag = "1")]
    pub job: Vec<u8>,
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// The 32 bytes of a [`crate::ids::ModelDigest`].
    #[prost(bytes = "vec", tag = "3")]
    pub model: Vec<u8>,
    #[prost(uint32, repeated, tag = "4")]
    pub prompt: Vec<u32>,
    /// Tokens that earlier attempts have already given the consumer.
    #[prost(uint32, repeated, tag = "5")]
    pub emitted: Vec<u32>,
    /// Generated tokens in the whole job, earlier attempts included, at most.
    #[prost(uint32, tag = "6")]
    pub limit: u32,
    /// Tokens that end the answer. They are not counted, billed or delivered.
    #[prost(uint32, repeated, tag = "7")]
    pub stop_ids: Vec<u32>,
    #[prost(message, required, tag = "8")]
    pub sampling: Sampling,
    /// How many tokens may be sent before the first [`Credit`].
    #[prost(uint32, tag = "9")]
    pub credit: u32,
}

/// Generated tokens. Taken if and only if the attempt is current and the position is next.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Tokens {
    #[prost(bytes = "vec", tag = "1")]
    pub job: Vec<u8>,
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// The position of the first of `ids` in the job.
    #[prost(uint32, tag = "3")]
    pub first_position: u32,
    #[prost(uint32, repeated, tag = "4")]
    pub ids: Vec<u32>,
    /// As many as `ids` when log-probabilities were asked for, else none.
    #[prost(message, repeated, tag = "5")]
    pub logprobs: Vec<Logprobs>,
}

/// Raw log-probabilities (natural logarithm, before bias, penalties and temperature) at one position.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Logprobs {
    /// Of the chosen token.
    #[prost(float, tag = "1")]
    pub chosen: f32,
    /// The most probable tokens, best first.
    #[prost(message, repeated, tag = "2")]
    pub top: Vec<TokenLogprob>,
}

/// One token and its log-probability.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct TokenLogprob {
    #[prost(uint32, tag = "1")]
    pub token: u32,
    #[prost(float, tag = "2")]
    pub logprob: f32,
}

/// Leave to send more tokens of a job.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Credit {
    #[prost(bytes = "vec", tag = "1")]
    pub job: Vec<u8>,
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// Tokens more than before.
    #[prost(uint32, tag = "3")]
    pub tokens: u32,
}

/// Stop a job. An `End` with [`Finish::Cancelled`] follows.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Cancel {
    #[prost(bytes = "vec", tag = "1")]
    pub job: Vec<u8>,
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
}

/// Why an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum Finish {
    /// Nobody said; never sent by this build.
    Unknown = 0,
    /// The model produced one of the stop ids.
    Stop = 1,
    /// The limit or the context is full.
    Length = 2,
    /// It was cancelled.
    Cancelled = 3,
    /// This worker or node cannot go on; another may.
    Failed = 4,
    /// The job itself is at fault; no node can serve it.
    Refused = 5,
    /// No free slot at the moment. Neutral: nobody is at fault.
    Busy = 6,
}

/// The end of an attempt. All its tokens have been sent before.
#[derive(Clone, PartialEq, prost::Message)]
pub struct End {
    #[prost(bytes = "vec", tag = "1")]
    pub job: Vec<u8>,
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    #[prost(enumeration = "Finish", tag = "3")]
    pub finish: i32,
    /// The position after the last token of this attempt.
    #[prost(uint32, tag = "4")]
    pub position: u32,
    /// For `Failed` and `Refused`: what happened, without any of the prompt or the answer.
    #[prost(string, tag = "5")]
    pub detail: String,
    /// Milliseconds from the job's start to its first token.
    #[prost(uint32, tag = "6")]
    pub prefill_ms: u32,
    /// Milliseconds from the first token to the last.
    #[prost(uint32, tag = "7")]
    pub decode_ms: u32,
}
