//! What the worker is compared with: mistral.rs in this process, with its own loader, sampler and defaults.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use mistralrs::core::{MistralRs, MistralRsBuilder};
use mistralrs::model_builder_trait::build_gguf_pipeline;
use mistralrs::{
    Constraint, GgufModelBuilder, NormalRequest, Request, RequestMessage, Response, SamplingParams,
    TokenSource,
};
use tokio::sync::mpsc;

use crate::{TEMPERATURE, TOP_P};

/// Enough that mistral.rs never waits for this program.
const RESPONSES: usize = 1024;

/// A loaded model.
pub struct Plain {
    runner: Arc<MistralRs>,
}

impl Plain {
    pub async fn load(model: &Path) -> anyhow::Result<Self> {
        let folder = model.parent().context("the model lies in a folder")?.display();
        let file = model.file_name().context("the model is a file")?.to_string_lossy();
        let builder = GgufModelBuilder::new(folder, vec![file])
            .with_force_cpu()
            .with_token_source(TokenSource::None)
            .with_prefix_cache_n(None);
        let (pipeline, scheduler, _) = build_gguf_pipeline(builder).await?;
        let runner = MistralRsBuilder::new(pipeline, scheduler, false, None)
            .with_no_prefix_cache(true)
            .with_disable_eos_stop(true)
            .build()
            .await;
        Ok(Self { runner })
    }

    /// Answers once: the time to the first token and from there to the last.
    pub async fn answer(&self, prompt: Vec<u32>, tokens: u32) -> anyhow::Result<(Duration, Duration)> {
        let (response, mut responses) = mpsc::channel(RESPONSES);
        let sampling_params = SamplingParams {
            temperature: Some(f64::from(TEMPERATURE)),
            top_p: Some(f64::from(TOP_P)),
            max_len: Some(tokens as usize),
            ..SamplingParams::neutral()
        };
        let request = NormalRequest {
            messages: RequestMessage::CompletionTokens(prompt),
            sampling_params,
            response,
            return_logprobs: false,
            is_streaming: true,
            id: self.runner.next_request_id(),
            constraint: Constraint::None,
            suffix: None,
            tools: None,
            tool_choice: None,
            logits_processors: None,
            return_raw_logits: false,
            web_search_options: None,
            model_id: None,
            truncate_sequence: false,
        };
        let began = Instant::now();
        let sender = self.runner.get_sender(None).map_err(|error| anyhow!("{error:?}"))?;
        sender.send(Request::Normal(Box::new(request))).await.map_err(|_| anyhow!("the engine has ended"))?;
        let (mut first, mut last) = (None, began);
        while let Some(response) = responses.recv().await {
            if let Response::InternalError(error) | Response::ValidationError(error) = response {
                bail!("{error}");
            } else if let Response::CompletionModelError(message, _) = response {
                bail!(message);
            } else if let Response::CompletionChunk(_) = response {
                last = Instant::now();
                first.get_or_insert(last);
            }
        }
        let first = first.context("mistral.rs answered nothing")?;
        Ok((first - began, last - first))
    }
}
