//! How an answer is written, whole or in chunks.

use serde_json::{Map, Value, json};

/// What does not change in one answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// `chatcmpl-` and the job's id.
    pub id: String,
    /// Seconds since 1970-01-01 UTC.
    pub created: i64,
    pub model: String,
    /// Names the weights.
    pub fingerprint: String,
    /// Whether the last chunk but `[DONE]` tells the usage.
    pub include_usage: bool,
}

/// Tokens in one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: u32,
    pub completion_tokens: u32,
}

/// A token's log-probability as consumers see it.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenProbability {
    pub token: String,
    pub logprob: f32,
    pub top: Vec<(String, f32)>,
}

impl Usage {
    fn json(self) -> Value {
        let total = u64::from(self.prompt_tokens) + u64::from(self.completion_tokens);
        json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": total,
        })
    }
}

impl Reply {
    fn frame(&self, object: &str, choices: Value) -> Map<String, Value> {
        let mut frame = Map::new();
        frame.insert("id".into(), self.id.as_str().into());
        frame.insert("object".into(), object.into());
        frame.insert("created".into(), self.created.into());
        frame.insert("model".into(), self.model.as_str().into());
        frame.insert("system_fingerprint".into(), self.fingerprint.as_str().into());
        frame.insert("choices".into(), choices);
        frame
    }

    fn chunk(&self, delta: Value, logprobs: Value, finish: Value) -> String {
        let choice = json!([{"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}]);
        let mut frame = self.frame("chat.completion.chunk", choice);
        if self.include_usage {
            frame.insert("usage".into(), Value::Null);
        }
        Value::Object(frame).to_string()
    }

    /// The first chunk: who speaks.
    #[must_use]
    pub fn role(&self) -> String {
        self.chunk(json!({"role": "assistant", "content": ""}), Value::Null, Value::Null)
    }

    /// A chunk of text.
    #[must_use]
    pub fn text(&self, text: &str, probabilities: Option<&[TokenProbability]>) -> String {
        self.chunk(json!({"content": text}), logprobs(probabilities), Value::Null)
    }

    /// The chunk that says why the answer ended.
    #[must_use]
    pub fn finish(&self, reason: &str) -> String {
        self.chunk(json!({}), Value::Null, reason.into())
    }

    /// The usage chunk: no choices.
    #[must_use]
    pub fn usage(&self, usage: Usage) -> String {
        let mut frame = self.frame("chat.completion.chunk", json!([]));
        frame.insert("usage".into(), usage.json());
        Value::Object(frame).to_string()
    }

    /// The whole answer at once.
    #[must_use]
    pub fn whole(
        &self,
        text: &str,
        probabilities: Option<&[TokenProbability]>,
        reason: &str,
        usage: Usage,
    ) -> Value {
        let choice = json!([{
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": null},
            "logprobs": logprobs(probabilities),
            "finish_reason": reason,
        }]);
        let mut frame = self.frame("chat.completion", choice);
        frame.insert("usage".into(), usage.json());
        Value::Object(frame)
    }
}

fn logprobs(probabilities: Option<&[TokenProbability]>) -> Value {
    let entry = |token: &str, logprob: f32| {
        // A part of a character has no text of its own, and its bytes are not known here.
        let bytes = (!token.contains(char::REPLACEMENT_CHARACTER)).then_some(token.as_bytes());
        json!({"token": token, "logprob": finite(logprob), "bytes": bytes})
    };
    let Some(tokens) = probabilities else { return Value::Null };
    let content: Vec<Value> = tokens
        .iter()
        .map(|t| {
            let mut one = entry(&t.token, t.logprob);
            one["top_logprobs"] = t.top.iter().map(|(token, p)| entry(token, *p)).collect();
            one
        })
        .collect();
    json!({"content": content, "refusal": null})
}

/// JSON has no infinity; OpenAI writes -9999 for what is next to impossible.
fn finite(logprob: f32) -> f32 {
    if logprob.is_finite() { logprob.max(-9999.0) } else { -9999.0 }
}
