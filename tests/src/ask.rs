//! A consumer: a streaming chat request, read chunk by chunk.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::prompts;

/// How long the next chunk may take: a fail-over with its prefill on a busy machine lies in between.
const PATIENCE: Duration = Duration::from_secs(60);

/// What to ask.
#[derive(Debug, Clone)]
pub struct Question {
    pub prompt: String,
    pub seed: u64,
    pub tokens: u32,
    /// Bars the model's end tokens, so that the answer has exactly `tokens` tokens.
    pub to_the_limit: bool,
}

impl Question {
    /// A random question with an answer of exactly this many tokens.
    #[must_use]
    pub fn drawn(tokens: u32) -> Self {
        let (prompt, seed) = prompts::draw();
        Self { prompt: prompt.to_owned(), seed, tokens, to_the_limit: true }
    }
}

impl Question {
    /// The request's body.
    #[must_use]
    pub fn body(&self, model: &str) -> Value {
        let mut body = json!({
            "model": model,
            "messages": [{"role": "user", "content": self.prompt}],
            "max_tokens": self.tokens,
            "temperature": 0.8,
            "seed": self.seed,
            // One entry for each token, so that tokens can be counted whatever a chunk holds.
            "logprobs": true,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        if self.to_the_limit {
            // <|endoftext|> and <|im_end|> of SmolLM2.
            body["logit_bias"] = json!({"0": -100, "2": -100});
        }
        body
    }
}

/// An answer as far as it has come.
pub struct Answer {
    response: reqwest::Response,
    buffer: Vec<u8>,
    pub text: String,
    /// Tokens that have arrived.
    pub tokens: u32,
    pub finish: Option<String>,
    pub usage: Option<Value>,
    /// The ids that the chunks named; one, or something is wrong.
    pub ids: Vec<String>,
    /// When the last chunk came.
    pub last: Instant,
}

/// How a stream went on.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// More text.
    Text(String),
    /// A chunk without text: the role, the finish reason or the usage.
    Other,
    /// `[DONE]`.
    Done,
    /// An error frame.
    Error(Value),
    /// The connection ended without a word.
    Cut,
}

impl Answer {
    /// Sends the question and waits for the response's head.
    ///
    /// # Errors
    /// When the broker does not take it; the message holds its error.
    pub async fn begin(url: &str, key: &str, model: &str, question: &Question) -> anyhow::Result<Self> {
        let request = reqwest::Client::new()
            .post(format!("{url}/v1/chat/completions"))
            .bearer_auth(key)
            .json(&question.body(model));
        let response = tokio::time::timeout(PATIENCE, request.send()).await??;
        if !response.status().is_success() {
            bail!("{}: {}", response.status(), response.text().await?);
        }
        Ok(Self {
            response,
            buffer: vec![],
            text: String::new(),
            tokens: 0,
            finish: None,
            usage: None,
            ids: vec![],
            last: Instant::now(),
        })
    }

    /// What the broker sells.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn models(url: &str, key: &str) -> anyhow::Result<Value> {
        let request = reqwest::Client::new().get(format!("{url}/v1/models")).bearer_auth(key);
        Ok(request.send().await?.json().await?)
    }

    /// The next event.
    ///
    /// # Errors
    /// When it takes too long or is no event.
    pub async fn next(&mut self) -> anyhow::Result<Next> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let event = String::from_utf8(event)?;
                match event.trim().strip_prefix("data: ") {
                    Some("[DONE]") => return Ok(Next::Done),
                    Some(data) => return self.take(serde_json::from_str(data)?),
                    // A comment keeps the line alive.
                    None => continue,
                }
            }
            let more = tokio::time::timeout(PATIENCE, self.response.chunk()).await;
            match more.context("the stream stood still")? {
                Ok(Some(bytes)) => self.buffer.extend(bytes),
                Ok(None) | Err(_) => return Ok(Next::Cut),
            }
        }
    }

    fn take(&mut self, chunk: Value) -> anyhow::Result<Next> {
        self.last = Instant::now();
        if let Some(error) = chunk.get("error") {
            return Ok(Next::Error(error.clone()));
        }
        let id = chunk["id"].as_str().context("a chunk without id")?.to_owned();
        if !self.ids.contains(&id) {
            self.ids.push(id);
        }
        if !chunk["usage"].is_null() {
            self.usage = Some(chunk["usage"].clone());
        }
        if let Some(finish) = chunk["choices"][0]["finish_reason"].as_str() {
            self.finish = Some(finish.to_owned());
        }
        let counted = chunk["choices"][0]["logprobs"]["content"].as_array().map_or(0, Vec::len);
        self.tokens += u32::try_from(counted)?;
        match chunk["choices"][0]["delta"]["content"].as_str() {
            Some(text) if !text.is_empty() => {
                self.text.push_str(text);
                Ok(Next::Text(text.to_owned()))
            }
            Some(_) | None => Ok(Next::Other),
        }
    }

    /// Reads on until this many tokens have come.
    ///
    /// # Errors
    /// When the answer ends before.
    pub async fn until_tokens(&mut self, tokens: u32) -> anyhow::Result<()> {
        while self.tokens < tokens {
            match self.next().await? {
                Next::Text(_) | Next::Other => {}
                end @ (Next::Done | Next::Error(_) | Next::Cut) => {
                    bail!("the answer ended after {} tokens: {end:?}", self.tokens)
                }
            }
        }
        Ok(())
    }

    /// Reads to the end and says how it ended.
    ///
    /// # Errors
    /// When the stream stands still.
    pub async fn to_the_end(&mut self) -> anyhow::Result<Next> {
        loop {
            match self.next().await? {
                Next::Text(_) | Next::Other => {}
                end @ (Next::Done | Next::Error(_) | Next::Cut) => return Ok(end),
            }
        }
    }

    /// Generated tokens, as the usage chunk counts them.
    ///
    /// # Errors
    /// When there was no usage chunk.
    pub fn completion_tokens(&self) -> anyhow::Result<u64> {
        self.usage.as_ref().and_then(|usage| usage["completion_tokens"].as_u64()).context("no usage")
    }
}
