//! The first tokens after loading: they touch every weight once and give a first figure for the speed.

use std::time::Instant;

use anyhow::bail;
use tokio_util::sync::CancellationToken;
use wakati_protocol::job::{Bias, Sampling};

use crate::engine::{self, Engine};
use crate::processor::{JobProcessor, Plan, Yielded};
use crate::sampler::Sampler;

/// Enough for a figure within a few percent, and under a second on a slow processor with a small model.
const TOKENS: u32 = 16;

/// Generated tokens per second in a short greedy run, without the prompt.
///
/// # Errors
/// When the engine produces nothing.
pub async fn speed(engine: &Engine) -> anyhow::Result<f64> {
    let most = TOKENS.min(engine.context.saturating_sub(1)).max(1);
    // The run shall not end early.
    let bias = vec![Bias { token: engine.end_id, add: -1000.0 }];
    let sampler = Sampler::new(Sampling { bias, ..Sampling::default() }, engine.vocabulary, &[])?;
    let plan = Plan { sampler, position: 0, most, stop_ids: Vec::new(), end_id: engine.end_id };
    let (processor, mut yielded) = JobProcessor::new(plan, CancellationToken::new());
    let responses = engine.begin(vec![engine.end_id], most, processor).await?;
    let failure = tokio::spawn(engine::failure(responses));
    let mut came = Vec::new();
    while let Some(one) = yielded.recv().await {
        if let Yielded::Token(_) = one {
            came.push(Instant::now());
        }
    }
    let failure = failure.await?;
    match came.as_slice() {
        [first, .., last] => Ok((came.len() - 1) as f64 / (*last - *first).as_secs_f64().max(1e-6)),
        [_] => Ok(0.0),
        [] => bail!("nothing was generated: {}", failure.unwrap_or_default()),
    }
}
