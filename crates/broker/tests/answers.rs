//! What consumers get: answers, streams and refusals.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Broker, INPUT, OUTPUT, STOP_ID, events, quick, text_of, within};
use serde_json::{Value, json};
use wakati_broker::operator;
use wakati_broker::settings::Settings;
use wakati_protocol::job::{Finish, Logprobs, TokenLogprob, Tokens};
use wakati_protocol::link::to_broker;

/// `<|im_start|>user hi<|im_end|><|im_start|>`: two, one, and seven bytes.
const PROMPT: i64 = 10;

#[tokio::test]
async fn a_whole_answer_has_text_reason_and_exact_usage() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"max_tokens": 50, "seed": 7, "temperature": 0.5}));
    let job = node.job().await;
    assert_eq!(job.prompt.len() as i64, PROMPT);
    assert_eq!((job.limit, job.stop_ids.as_slice()), (50, [STOP_ID].as_slice()));
    assert_eq!((job.sampling.seed, job.sampling.temperature), (7, 0.5));
    node.tokens(&job, 0, "Habari ").await;
    node.tokens(&job, 7, "😀!").await;
    node.end(&job, Finish::Stop, 12).await;
    let response = asked.await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().contains_key("x-request-id"));
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "Habari 😀!");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        answer["usage"],
        json!({"prompt_tokens": PROMPT, "completion_tokens": 12, "total_tokens": PROMPT + 12})
    );
    let books = broker.settled_books().await;
    // 10 x $0.05/M + 12 x $0.10/M, in nano-USD; 70% of it for the owner.
    let charge = (PROMPT * INPUT + 12 * OUTPUT) / 1_000_000;
    assert_eq!(books["jobs"][0]["charge"], charge);
    assert_eq!(books["owners"][0]["earned"], charge * 7 / 10);
    broker.until_free(2).await;
    broker.running.stop().await;
}

#[tokio::test]
async fn a_stream_has_openais_exact_shape() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true, "stream_options": {"include_usage": true}}));
    let job = node.job().await;
    node.tokens(&job, 0, "one").await;
    node.tokens(&job, 3, " two").await;
    node.end(&job, Finish::Stop, 7).await;
    let events = events(asked.await.unwrap()).await;
    assert_eq!(events.last().unwrap(), "[DONE]");
    let chunks: Vec<Value> =
        events[..events.len() - 1].iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    for field in ["id", "created", "model", "system_fingerprint"] {
        assert!(
            chunks.iter().all(|chunk| chunk[field] == chunks[0][field] && !chunk[field].is_null()),
            "{field}"
        );
    }
    assert_eq!(text_of(&events), "one two");
    let reasons: Vec<&Value> =
        chunks.iter().map(|c| &c["choices"][0]["finish_reason"]).filter(|reason| !reason.is_null()).collect();
    assert_eq!(reasons, ["stop"]);
    let (last, others) = chunks.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 7);
    assert!(others.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
}

#[tokio::test]
async fn no_usage_is_told_unless_it_was_asked_for() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    node.tokens(&job, 0, "x").await;
    node.end(&job, Finish::Stop, 1).await;
    assert!(events(asked.await.unwrap()).await.iter().all(|event| !event.contains("usage")));
}

#[tokio::test]
async fn a_stop_string_across_frames_ends_the_answer_and_the_node_is_told() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stop": ["END"]}));
    let job = node.job().await;
    node.tokens(&job, 0, "one E").await;
    node.tokens(&job, 5, "ND two").await;
    node.until_cancel().await;
    node.end(&job, Finish::Cancelled, 11).await;
    let answer: Value = asked.await.unwrap().json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "one ");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    // Positions count up to the token that completed the stop string.
    assert_eq!(answer["usage"]["completion_tokens"], 7);
    broker.until_free(2).await;
}

#[tokio::test]
async fn an_answer_without_tokens_is_charged_for_its_prompt() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({}));
    let job = node.job().await;
    node.end(&job, Finish::Stop, 0).await;
    let answer: Value = asked.await.unwrap().json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "");
    assert_eq!(broker.settled_books().await["jobs"][0]["charge"], PROMPT * INPUT / 1_000_000);
}

#[tokio::test]
async fn the_limit_is_what_the_account_affords_and_then_it_is_length() {
    let broker = Broker::start(quick()).await;
    // 500 for the prompt and three tokens of 100.
    let key = broker.key("0.000000800").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({}));
    let job = node.job().await;
    assert_eq!(job.limit, 3);
    node.tokens(&job, 0, "abc").await;
    let answer: Value = asked.await.unwrap().json().await.unwrap();
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let refused = broker.ask(&key, json!({"max_tokens": 1})).await.unwrap();
    assert_eq!(refused.status(), 402);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["type"], "insufficient_quota");
    assert_eq!(error["error"]["credit"]["available"], "0.000000000");
}

#[tokio::test]
async fn log_probabilities_come_with_their_tokens() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"logprobs": true, "top_logprobs": 1}));
    let job = node.job().await;
    assert_eq!(job.sampling.top_logprobs, Some(1));
    let logprobs = vec![Logprobs { chosen: -0.5, top: vec![TokenLogprob { token: 98, logprob: -0.25 }] }];
    let (id, attempt) = (job.job.clone(), job.attempt);
    let tokens = Tokens { job: id, attempt, first_position: 0, ids: vec![97], logprobs };
    node.say(to_broker::Body::Tokens(tokens)).await;
    node.end(&job, Finish::Stop, 1).await;
    let answer: Value = asked.await.unwrap().json().await.unwrap();
    assert_eq!(
        answer["choices"][0]["logprobs"]["content"],
        json!([{"token": "a", "logprob": -0.5, "bytes": [97],
            "top_logprobs": [{"token": "b", "logprob": -0.25, "bytes": [98]}]}])
    );
}

#[tokio::test]
async fn no_node_is_503_a_full_one_429_and_a_recovered_one_serves() {
    let broker = Broker::start(Settings { queue: Duration::ZERO, ..quick() }).await;
    let key = broker.key("1").await;
    let none = broker.ask(&key, json!({})).await.unwrap();
    assert_eq!(none.status(), 503);
    assert!(none.headers().contains_key("retry-after"));
    let mut node = broker.node(1, OUTPUT).await;
    let first = broker.ask(&key, json!({"max_tokens": 5}));
    let one = node.job().await;
    let second = broker.ask(&key, json!({"max_tokens": 5}));
    let two = node.job().await;
    let full = broker.ask(&key, json!({"max_tokens": 5})).await.unwrap();
    assert_eq!(full.status(), 429);
    assert_eq!(full.headers()["retry-after"], "1");
    for job in [&one, &two] {
        node.tokens(job, 0, "x").await;
        node.end(job, Finish::Stop, 1).await;
    }
    assert_eq!(first.await.unwrap().status(), 200);
    assert_eq!(second.await.unwrap().status(), 200);
    broker.until_free(2).await;
}

#[tokio::test]
async fn while_all_slots_are_taken_a_request_waits_its_turn() {
    let broker = Broker::start(Settings { queue: Duration::from_secs(60), ..quick() }).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let mut asked = Vec::new();
    let mut jobs = Vec::new();
    for _ in 0..2 {
        asked.push(broker.ask(&key, json!({"max_tokens": 5})));
        jobs.push(node.job().await);
    }
    asked.push(broker.ask(&key, json!({"max_tokens": 5})));
    for turn in 0..3 {
        let job = jobs[turn].clone();
        node.tokens(&job, 0, "x").await;
        node.end(&job, Finish::Stop, 1).await;
        if turn == 0 {
            jobs.push(node.job().await);
        }
    }
    for one in asked {
        assert_eq!(one.await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn whatever_a_client_sends_it_gets_its_own_error() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let _node = broker.node(1, OUTPUT).await;
    let deep = format!("{{\"model\": {}", "[".repeat(100_000));
    let with = |fields: &str| {
        format!(r#"{{"model": "bytes", "messages": [{{"role": "user", "content": "hi"}}], {fields}}}"#)
    };
    let long = format!(
        r#"{{"model": "bytes", "messages": [{{"role": "user", "content": "{}"}}]}}"#,
        "x".repeat(5000)
    );
    let rows: Vec<(String, u16)> = vec![
        (String::new(), 400),
        ("not json".into(), 400),
        ("null".into(), 400),
        ("[]".into(), 400),
        ("{}".into(), 400),
        (r#"{"model": "bytes"}"#.into(), 400),
        (r#"{"model": "bytes", "messages": []}"#.into(), 400),
        (r#"{"model": "bytes", "messages": "hi"}"#.into(), 400),
        (r#"{"model": "bytes", "messages": [{"role": "wizard", "content": "hi"}]}"#.into(), 400),
        (r#"{"model": "bytes", "messages": [{"role": "user", "content": 5}]}"#.into(), 400),
        (r#"{"model": "bytes", "messages": [{"role": "user"}]}"#.into(), 400),
        (r#"{"model": "bytes", "messages": [{"role": "tool", "content": "x"}]}"#.into(), 400),
        (r#"{"model": "bytes", "messages": [{"role": "user", "content": "\ud800"}]}"#.into(), 400),
        (
            r#"{"model": "bytes", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}"#
                .into(),
            400,
        ),
        (deep, 400),
        (with(r#""max_tokens": -1"#), 400),
        (with(r#""max_tokens": 1e400"#), 400),
        (with(r#""max_tokens": "many""#), 400),
        (with(r#""temperature": NaN"#), 400),
        (with(r#""temperature": -1"#), 400),
        (with(r#""n": 3"#), 400),
        (with(r#""tools": [{}]"#), 400),
        (with(r#""response_format": {"type": "json_schema"}"#), 400),
        (with(r#""logit_bias": {"99999": 1}"#), 400),
        (with(r#""stream": "yes""#), 400),
        (long, 400),
        (r#"{"model": "no/such", "messages": [{"role": "user", "content": "hi"}]}"#.into(), 404),
        ("x".repeat(5 << 20), 413),
    ];
    let url = format!("{}/v1/chat/completions", broker.url);
    let post = |body: String| broker.http.post(&url).header("content-type", "application/json").body(body);
    for (body, status) in rows {
        let shown: String = body.chars().take(90).collect();
        let response = within("an error", post(body).bearer_auth(&key).send()).await.unwrap();
        assert_eq!(response.status(), status, "{shown}");
        let error: Value = response.json().await.unwrap();
        assert!(error["error"]["message"].is_string() && error["error"]["type"].is_string(), "{shown}");
    }
    let fine = with(r#""max_tokens": 5"#);
    for (request, status) in [
        (post(fine.clone()), 401),
        (post(fine.clone()).bearer_auth("wk-guess"), 401),
        (post(fine.clone()).header("authorization", "Basic eDp5"), 401),
        (broker.http.post(&url).header("content-type", "text/plain").bearer_auth(&key).body(fine), 415),
        (broker.http.get(&url).bearer_auth(&key), 405),
        (broker.http.get(format!("{}/v1/nothing", broker.url)), 404),
        (broker.http.get(format!("{}/v1/models/no/such", broker.url)), 404),
    ] {
        let response = within("an error", request.send()).await.unwrap();
        assert_eq!(response.status(), status);
        let error: Value = response.json().await.unwrap();
        assert!(error["error"]["message"].is_string());
    }
}

#[tokio::test]
async fn a_consumer_that_leaves_stops_the_node_and_pays_for_what_it_got() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true}));
    let job = node.job().await;
    node.tokens(&job, 0, "hello").await;
    let mut response = asked.await.unwrap();
    let mut seen = String::new();
    while !seen.contains("hello") {
        let chunk = within("a chunk", response.chunk()).await.unwrap().unwrap();
        seen.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let left = std::time::Instant::now();
    drop(response);
    node.until_cancel().await;
    assert!(left.elapsed() < Duration::from_millis(500), "{:?}", left.elapsed());
    node.end(&job, Finish::Cancelled, 5).await;
    let books = broker.settled_books().await;
    assert_eq!(books["jobs"][0]["finish"], "cancelled");
    assert_eq!(books["jobs"][0]["completion_tokens"], 5);
    broker.until_free(2).await;
}

#[tokio::test]
async fn a_node_that_sends_more_than_its_credit_is_taken_off_the_job() {
    let broker = Broker::start(quick()).await;
    let key = broker.key("1").await;
    let mut node = broker.node(1, OUTPUT).await;
    let asked = broker.ask(&key, json!({"stream": true, "max_tokens": 200}));
    let job = node.job().await;
    assert_eq!(job.credit, 64);
    // More than the credit is garbage: the attempt is over, and nobody else serves.
    node.tokens(&job, 0, &"x".repeat(65)).await;
    let response = asked.await.unwrap();
    assert_eq!(response.status(), 502);
    assert_eq!(broker.settled_books().await["jobs"][0]["charge"], 0);
}

#[tokio::test]
async fn models_and_health_tell_how_things_stand() {
    let broker = Broker::start(quick()).await;
    let _node = broker.node(1, OUTPUT).await;
    let list = broker.get("/v1/models").await;
    assert_eq!(list["object"], "list");
    assert_eq!(list["data"][0]["id"], "bytes");
    assert_eq!(list["data"][0]["wakati"]["output_price"]["lowest"], "0.100000000");
    for (path, text) in [("/healthz", "ok"), ("/readyz", "ready")] {
        let answer = broker.http.get(format!("{}{path}", broker.url)).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (200, text));
    }
    let metrics =
        broker.http.get(format!("{}/metrics", broker.url)).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("wakati_nodes"), "{metrics}");
}

#[tokio::test]
async fn only_loopback_is_listened_on() {
    let folder = tempfile::tempdir().unwrap();
    let home = operator::Home::new(folder.path());
    let refused = wakati_broker::start(&home, "0.0.0.0:0".parse().unwrap(), quick()).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("loopback")));
}
