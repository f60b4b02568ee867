//! What a chat request says. Unknown fields are left alone; what is not built yet is refused, not ignored.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Number, Value};
use wakati_protocol::job::{Bias, Sampling};

use super::error::ApiError;
use crate::text::Message;

/// Stop strings in one request, and bytes in each.
const MOST_STOPS: usize = 16;
const LONGEST_STOP: usize = 1024;
/// Tokens in `logit_bias`, as OpenAI has it. All of them go to the node with every attempt.
const MOST_BIASES: usize = 300;

/// A chat request whose every value is in range.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    pub model: String,
    pub messages: Vec<Message>,
    pub limit: OutputLimit,
    /// Without a seed of its own.
    pub sampling: Sampling,
    pub seed: Option<u64>,
    pub stops: Vec<String>,
    pub stream: bool,
    pub include_usage: bool,
}

/// How many tokens the consumer wants at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLimit {
    Asked(u32),
    /// Nothing said.
    Open,
}

#[derive(Deserialize)]
struct Raw {
    model: String,
    messages: Vec<RawMessage>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<i64>,
    min_p: Option<f64>,
    presence_penalty: Option<f64>,
    frequency_penalty: Option<f64>,
    logit_bias: Option<BTreeMap<String, f64>>,
    logprobs: Option<bool>,
    top_logprobs: Option<i64>,
    stop: Option<OneOrMany>,
    seed: Option<Number>,
    n: Option<i64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    tools: Option<Value>,
    functions: Option<Value>,
    response_format: Option<Value>,
}

#[derive(Deserialize)]
struct RawMessage {
    role: Role,
    #[serde(default)]
    content: Option<Content>,
    tool_calls: Option<Value>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    r#type: String,
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// Reads and checks a request's body.
///
/// # Errors
/// 400 with the field at fault.
pub fn read_request(body: &[u8]) -> Result<ChatRequest, ApiError> {
    if body.is_empty() {
        return Err(ApiError::invalid("The body is empty; send a JSON object."));
    }
    let raw: Raw = serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid(format!("The body is not a chat request: {error}.")))?;
    refuse_unbuilt(&raw)?;
    let stream = raw.stream.unwrap_or(false);
    if raw.stream_options.is_some() && !stream {
        return Err(ApiError::field("stream_options", "stream_options is only for stream: true."));
    }
    if raw.messages.is_empty() {
        return Err(ApiError::field("messages", "messages must have at least one message."));
    }
    Ok(ChatRequest {
        limit: limit(&raw)?,
        seed: seed(raw.seed.as_ref())?,
        sampling: sampling(&raw)?,
        stops: stops(raw.stop)?,
        messages: raw.messages.into_iter().map(message).collect::<Result<_, _>>()?,
        stream,
        include_usage: raw.stream_options.and_then(|o| o.include_usage).unwrap_or(false),
        model: raw.model,
    })
}

fn refuse_unbuilt(raw: &Raw) -> Result<(), ApiError> {
    let said = |value: &Option<Value>| match value {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    };
    if said(&raw.tools) || said(&raw.functions) {
        return Err(ApiError::field("tools", "Tools are not supported yet."));
    }
    let plain_text = |format: &Value| format.get("type").is_some_and(|kind| kind == "text");
    if raw.response_format.as_ref().is_some_and(|format| !format.is_null() && !plain_text(format)) {
        return Err(ApiError::field("response_format", "Only the text response format is supported yet."));
    }
    match raw.n {
        None | Some(1) => Ok(()),
        Some(_) => Err(ApiError::field("n", "Only n = 1 is supported.")),
    }
}

fn limit(raw: &Raw) -> Result<OutputLimit, ApiError> {
    let (param, asked) = match (raw.max_completion_tokens, raw.max_tokens) {
        (Some(asked), _) => ("max_completion_tokens", asked),
        (None, Some(asked)) => ("max_tokens", asked),
        (None, None) => return Ok(OutputLimit::Open),
    };
    if asked < 1 {
        return Err(ApiError::field(param, format!("{param} must be at least 1.")));
    }
    // More than a model can say is cut to its context later.
    Ok(OutputLimit::Asked(u32::try_from(asked).unwrap_or(u32::MAX)))
}

fn seed(seed: Option<&Number>) -> Result<Option<u64>, ApiError> {
    seed.map(|number| {
        number
            .as_u64()
            .or_else(|| number.as_i64().map(i64::cast_unsigned))
            .ok_or_else(|| ApiError::field("seed", "seed must be an integer of at most 64 bits."))
    })
    .transpose()
}

fn within(
    param: &'static str,
    value: Option<f64>,
    default: f32,
    low: f64,
    high: f64,
) -> Result<f32, ApiError> {
    match value {
        None => Ok(default),
        Some(value) if (low..=high).contains(&value) => Ok(value as f32),
        Some(_) => Err(ApiError::field(param, format!("{param} must be from {low} to {high}."))),
    }
}

fn sampling(raw: &Raw) -> Result<Sampling, ApiError> {
    let top_logprobs = match (raw.logprobs.unwrap_or(false), raw.top_logprobs) {
        (false, None) => None,
        (false, Some(_)) => {
            return Err(ApiError::field("top_logprobs", "top_logprobs is only for logprobs: true."));
        }
        (true, top) => Some(
            u32::try_from(top.unwrap_or(0))
                .ok()
                .filter(|top| *top <= 20)
                .ok_or_else(|| ApiError::field("top_logprobs", "top_logprobs must be from 0 to 20."))?,
        ),
    };
    let top_k = match raw.top_k {
        // -1 is how vLLM's clients say "all".
        None | Some(-1) => 0,
        Some(top_k) => u32::try_from(top_k)
            .map_err(|_| ApiError::field("top_k", "top_k must be 0 (all) or a number of tokens."))?,
    };
    if raw.logit_bias.as_ref().is_some_and(|biases| biases.len() > MOST_BIASES) {
        return Err(ApiError::field("logit_bias", format!("logit_bias takes up to {MOST_BIASES} tokens.")));
    }
    let mut bias = Vec::new();
    for (token, add) in raw.logit_bias.iter().flatten() {
        let token = token
            .parse()
            .map_err(|_| ApiError::field("logit_bias", "The keys of logit_bias must be token ids."))?;
        bias.push(Bias { token, add: within("logit_bias", Some(*add), 0.0, -100.0, 100.0)? });
    }
    Ok(Sampling {
        temperature: within("temperature", raw.temperature, 1.0, 0.0, 2.0)?,
        top_p: within("top_p", raw.top_p, 1.0, 0.0, 1.0)?,
        top_k,
        min_p: within("min_p", raw.min_p, 0.0, 0.0, 1.0)?,
        presence_penalty: within("presence_penalty", raw.presence_penalty, 0.0, -2.0, 2.0)?,
        frequency_penalty: within("frequency_penalty", raw.frequency_penalty, 0.0, -2.0, 2.0)?,
        bias,
        seed: 0,
        top_logprobs,
    })
}

fn stops(stop: Option<OneOrMany>) -> Result<Vec<String>, ApiError> {
    let stops = match stop {
        None => Vec::new(),
        Some(OneOrMany::One(stop)) => vec![stop],
        Some(OneOrMany::Many(stops)) => stops,
    };
    if stops.len() > MOST_STOPS || stops.iter().any(|stop| stop.is_empty() || stop.len() > LONGEST_STOP) {
        let message = format!("stop takes up to {MOST_STOPS} strings of 1 to {LONGEST_STOP} bytes.");
        return Err(ApiError::field("stop", message));
    }
    Ok(stops)
}

fn message(raw: RawMessage) -> Result<Message, ApiError> {
    let calls = raw.tool_calls.is_some_and(|calls| !calls.is_null() && calls != Value::Array(Vec::new()));
    if calls {
        return Err(ApiError::field("messages", "Messages with tool calls are not supported yet."));
    }
    let content = match (raw.content, raw.role) {
        (Some(Content::Text(text)), _) => text,
        (Some(Content::Parts(parts)), _) => {
            parts.into_iter().map(part).collect::<Result<Vec<_>, _>>()?.concat()
        }
        (None, Role::Assistant) => String::new(),
        (None, _) => return Err(ApiError::field("messages", "A message has no content.")),
    };
    let role = match raw.role {
        // The newer name for the same thing; templates know the older one.
        Role::System | Role::Developer => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    Ok(Message { role: role.to_owned(), content })
}

fn part(part: Part) -> Result<String, ApiError> {
    match (part.r#type.as_str(), part.text) {
        ("text", Some(text)) => Ok(text),
        _ => Err(ApiError::field("messages", "Only text parts with a text are supported by this model.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &str) -> Result<ChatRequest, ApiError> {
        let comma = if fields.is_empty() { "" } else { ", " };
        read_request(
            format!(r#"{{"model": "m", "messages": [{{"role": "user", "content": "hi"}}]{comma}{fields}}}"#)
                .as_bytes(),
        )
    }

    #[test]
    fn a_plain_request_gets_openais_defaults() {
        let request =
            read(r#""user": "x", "made_up": {"a": 1}, "tools": [], "tool_choice": "none""#).unwrap();
        assert_eq!(request.sampling.temperature, 1.0);
        assert_eq!(request.limit, OutputLimit::Open);
        assert!(!request.stream && request.seed.is_none());
    }

    #[test]
    fn text_parts_are_one_text_and_a_developer_is_the_system() {
        let body = br#"{"model": "m", "messages": [{"role": "developer", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]}"#;
        let message = read_request(body).unwrap().messages.remove(0);
        assert_eq!(message, Message { role: "system".into(), content: "ab".into() });
    }

    #[test]
    fn what_is_out_of_range_or_not_built_is_refused_with_its_name() {
        for (fields, param) in [
            (r#""max_tokens": 0"#, "max_tokens"),
            (r#""max_tokens": -5"#, "max_tokens"),
            (r#""max_completion_tokens": -1"#, "max_completion_tokens"),
            (r#""temperature": 2.5"#, "temperature"),
            (r#""temperature": -0.1"#, "temperature"),
            (r#""top_p": 1.5"#, "top_p"),
            (r#""top_k": -2"#, "top_k"),
            (r#""seed": 1.5"#, "seed"),
            (r#""n": 2"#, "n"),
            (r#""n": 0"#, "n"),
            (r#""logit_bias": {"x": 1}"#, "logit_bias"),
            (r#""logit_bias": {"5": 101}"#, "logit_bias"),
            (r#""top_logprobs": 2"#, "top_logprobs"),
            (r#""logprobs": true, "top_logprobs": 21"#, "top_logprobs"),
            (r#""stop": """#, "stop"),
            (r#""tools": [{"type": "function"}]"#, "tools"),
            (r#""response_format": {"type": "json_object"}"#, "response_format"),
            (r#""stream_options": {"include_usage": true}"#, "stream_options"),
        ] {
            let error = read(fields).expect_err(fields);
            assert_eq!(error.envelope()["error"]["param"], param, "{fields}");
        }
    }

    #[test]
    fn three_hundred_biases_are_taken_and_one_more_is_not() {
        let biases = |n: u32| {
            let each: Vec<String> = (0..n).map(|token| format!(r#""{token}": 1"#)).collect();
            read(&format!(r#""logit_bias": {{{}}}"#, each.join(", ")))
        };
        assert_eq!(biases(300).unwrap().sampling.bias.len(), 300);
        let error = biases(301).unwrap_err().envelope();
        assert_eq!(error["error"]["message"], "logit_bias takes up to 300 tokens.");
        assert_eq!(error["error"]["param"], "logit_bias");
    }

    #[test]
    fn a_large_limit_and_a_negative_seed_are_fine() {
        let request = read(r#""max_tokens": 99999999999, "seed": -1, "top_k": -1"#).unwrap();
        assert_eq!(request.limit, OutputLimit::Asked(u32::MAX));
        assert_eq!(request.seed, Some(u64::MAX));
    }
}
