//! What `/metrics` tells. No label carries a prompt, a key or an account.

use std::sync::OnceLock;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// Why a frame from a node was not used.
#[derive(Debug, Clone, Copy)]
pub enum Dropped {
    /// Not of this protocol, or with impossible values.
    Hostile,
    /// Of an attempt that is over, or a position that is not next.
    Late,
}

/// The process's recorder. There is one for a process, however many brokers a test starts in it.
pub fn recorder() -> &'static PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(|| {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        // Fails only when the embedding program has a recorder of its own, which then gets the figures.
        let _ = metrics::set_global_recorder(recorder);
        describe_counter!("wakati_jobs_total", "Jobs by how they ended");
        describe_counter!("wakati_attempts_total", "Attempts by how they ended");
        describe_counter!("wakati_prompt_tokens_total", "Prompt tokens of settled jobs");
        describe_counter!("wakati_completion_tokens_total", "Generated tokens that consumers received");
        describe_counter!("wakati_refused_requests_total", "Requests that were refused, by status");
        describe_counter!("wakati_dropped_frames_total", "Frames from nodes that were not used");
        describe_gauge!("wakati_open_jobs", "Jobs with an open hold");
        describe_gauge!("wakati_nodes", "Nodes connected");
        describe_histogram!("wakati_first_token_seconds", "From the request to its first text");
        handle
    })
}

pub fn job_opened() {
    gauge!("wakati_open_jobs").increment(1.0);
}

pub fn job_ended(finish: &'static str, prompt_tokens: u32, completion_tokens: u32) {
    gauge!("wakati_open_jobs").decrement(1.0);
    counter!("wakati_jobs_total", "finish" => finish).increment(1);
    counter!("wakati_prompt_tokens_total").increment(prompt_tokens.into());
    counter!("wakati_completion_tokens_total").increment(completion_tokens.into());
}

pub fn attempt_ended(how: &'static str) {
    counter!("wakati_attempts_total", "ended" => how).increment(1);
}

pub fn refused(status: u16) {
    counter!("wakati_refused_requests_total", "status" => status.to_string()).increment(1);
}

pub fn dropped(why: Dropped) {
    let why = match why {
        Dropped::Hostile => "hostile",
        Dropped::Late => "late",
    };
    counter!("wakati_dropped_frames_total", "why" => why).increment(1);
}

pub fn nodes(count: usize) {
    gauge!("wakati_nodes").set(count as f64);
}

pub fn first_token(seconds: f64) {
    histogram!("wakati_first_token_seconds").record(seconds);
}
