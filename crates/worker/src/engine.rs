//! mistral.rs behind one narrow door: load a model, start a job.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use mistralrs::core::{
    AdapterPaths, DefaultSchedulerMethod, DeviceMapSetting, GGUFLoaderBuilder, GGUFSpecificConfig,
    LocalModelPaths, MistralRs, MistralRsBuilder, ModelDType, ModelPaths, SchedulerConfig,
};
use mistralrs::{
    Constraint, Device, NormalRequest, Request, RequestMessage, Response, SamplingParams, best_device,
};
use tokio::sync::mpsc;
use wakati_catalogue::gguf::{BadGguf, Header, Shape};
use wakati_protocol::pipe::{Refused, RefusedReason};

use crate::memory;
use crate::processor::JobProcessor;

/// Responses on their way from mistral.rs. They carry nothing that we use but failures; a task empties it.
const RESPONSES: usize = 16;

/// What the worker was started with.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub model: PathBuf,
    /// Tokens of prompt and answer together; the model's own limit when larger.
    pub context: u32,
    pub slots: u32,
    /// Memory that must stay free for others.
    pub reserve_bytes: u64,
    pub on_processor: bool,
}

/// A loaded model.
pub struct Engine {
    runner: Arc<MistralRs>,
    pub context: u32,
    pub vocabulary: u32,
    pub slots: u32,
    /// The token at which mistral.rs ends a sequence by itself.
    pub end_id: u32,
}

/// Reads the file's header, checks that the model fits, and loads it. Blocks for as long as that takes.
///
/// # Errors
/// A refusal with its reason.
pub async fn load(wanted: Wanted) -> Result<Engine, Refused> {
    let (header, shape) = inspect(&wanted.model)?;
    let device = if wanted.on_processor { Ok(Device::Cpu) } else { best_device(false) };
    let device = device.map_err(|error| refused(RefusedReason::Engine, &error))?;
    let context = wanted.context.clamp(1, shape.context);
    let slots = wanted.slots.max(1);
    let model_bytes = memory::needed_bytes(&header, &shape, context, slots);
    let needed_bytes = model_bytes.saturating_add(wanted.reserve_bytes);
    let free_bytes = memory::free_bytes(&device).map_err(|error| refused(RefusedReason::Engine, &error))?;
    if needed_bytes > free_bytes {
        let detail = "the model needs more memory than is free".to_owned();
        return Err(Refused { reason: RefusedReason::DoesNotFit.into(), needed_bytes, free_bytes, detail });
    }
    let vocabulary = shape.vocabulary;
    start(wanted.model, device, context, vocabulary, slots)
        .await
        .map_err(|error| refused(RefusedReason::Engine, &format!("{error:#}")))
}

fn refused(reason: RefusedReason, detail: &dyn std::fmt::Display) -> Refused {
    Refused { reason: reason.into(), needed_bytes: 0, free_bytes: 0, detail: detail.to_string() }
}

fn inspect(model: &Path) -> Result<(Header, Shape), Refused> {
    let mut file = File::open(model).map_err(|error| refused(RefusedReason::NoFile, &error))?;
    let header = Header::read(&mut file).and_then(|header| Ok((header.shape()?, header)));
    let (shape, header) = header.map_err(|error| {
        let reason = match &error {
            BadGguf::Unreadable(_) => RefusedReason::NoFile,
            BadGguf::UnknownArchitecture(_) => RefusedReason::UnknownArchitecture,
            BadGguf::NotGguf
            | BadGguf::Version(_)
            | BadGguf::Truncated { .. }
            | BadGguf::Corrupt(_)
            | BadGguf::UnknownTensorType(_) => RefusedReason::CorruptFile,
        };
        refused(reason, &error)
    })?;
    Ok((header, shape))
}

async fn start(
    model: PathBuf,
    device: Device,
    context: u32,
    vocabulary: u32,
    slots: u32,
) -> anyhow::Result<Engine> {
    let name = model.file_name().context("the model has no file name")?.to_string_lossy().into_owned();
    // Naming a template that is not a file keeps mistral.rs from using the model's own, and its reasoning
    // parsers with it: this engine sees tokens only.
    let no_template = Some("none".to_owned());
    let config = GGUFSpecificConfig::default();
    let files = vec![name.clone()];
    let loader = GGUFLoaderBuilder::new(no_template, None, name, files, config, false, None).build();
    let paths: Box<dyn ModelPaths> = Box::new(LocalModelPaths::<PathBuf> {
        tokenizer_filename: PathBuf::new(),
        config_filename: PathBuf::new(),
        template_filename: None,
        filenames: vec![model],
        adapter_paths: AdapterPaths::None,
        gen_conf: None,
        preprocessor_config: None,
        processor_config: None,
        chat_template_json_filename: None,
    });
    let quiet = true;
    let map = DeviceMapSetting::dummy();
    let pipeline = tokio::task::block_in_place(|| {
        loader.load_model_from_path(&paths, &number_type(&device)?, &device, quiet, map, None, None)
    })?;
    let end_id = pipeline.lock().await.get_metadata().eos_tok.first().copied();
    let end_id = end_id.ok_or_else(|| anyhow!("the model names no end token"))?;
    let method = DefaultSchedulerMethod::Fixed(NonZeroUsize::new(slots as usize).context("no slots")?);
    let scheduler = SchedulerConfig::DefaultScheduler { method };
    let runner =
        MistralRsBuilder::new(pipeline, scheduler, false, None).with_no_prefix_cache(true).build().await;
    Ok(Engine { runner, context, vocabulary, slots, end_id })
}

/// The number type of activations and of the key-value cache.
///
/// mistral.rs would choose for itself, but on CUDA it starts `nvidia-smi` to do so, which the cage forbids.
/// On the processor it takes `BF16`, which has to be converted for every product. With 32-bit floats prefill was 1.08
/// and decode 1.18 times as fast (`engine-bench`, 2 cores), and the first token after a resume was the unbroken run's
/// in 75 of 80 random jobs, with `BF16`, whose coarse steps hide small differences, in 79.
fn number_type(device: &Device) -> anyhow::Result<ModelDType> {
    match device {
        Device::Cpu => Ok(ModelDType::F32),
        #[cfg(feature = "cuda")]
        Device::Cuda(cuda) => {
            // CUDA C++ Programming Guide, "Arithmetic Instructions": BF16 from compute capability 8.0.
            let (major, _) = cuda.cuda_stream().context().compute_capability()?;
            Ok(if major >= 8 { ModelDType::BF16 } else { ModelDType::F16 })
        }
        #[cfg(not(feature = "cuda"))]
        Device::Cuda(_) => Ok(ModelDType::F16),
        Device::Metal(_) => Ok(ModelDType::Auto),
    }
}

impl Engine {
    /// Starts one job. The receiver yields mistral.rs's own responses; somebody must empty it.
    ///
    /// # Errors
    /// When mistral.rs does not take requests any more.
    pub async fn begin(
        &self,
        ids: Vec<u32>,
        most: u32,
        processor: JobProcessor,
    ) -> anyhow::Result<mpsc::Receiver<Response>> {
        let (response, responses) = mpsc::channel(RESPONSES);
        // `Some(0.0)` is greedy, `None` would become 1.0: the processor's one-hot logits decide alone.
        let sampling = SamplingParams {
            temperature: Some(0.0),
            max_len: Some(most as usize),
            ..SamplingParams::neutral()
        };
        let request = NormalRequest {
            messages: RequestMessage::CompletionTokens(ids),
            sampling_params: sampling,
            response,
            return_logprobs: false,
            is_streaming: true,
            id: self.runner.next_request_id(),
            constraint: Constraint::None,
            suffix: None,
            tools: None,
            tool_choice: None,
            logits_processors: Some(vec![Arc::new(processor)]),
            return_raw_logits: false,
            web_search_options: None,
            model_id: None,
            truncate_sequence: false,
        };
        let sender = self.runner.get_sender(None).map_err(|error| anyhow!("{error:?}"))?;
        sender.send(Request::Normal(Box::new(request))).await.map_err(|_| anyhow!("the engine has ended"))?;
        Ok(responses)
    }
}

/// Empties a job's responses and gives the first failure that mistral.rs reported.
pub async fn failure(mut responses: mpsc::Receiver<Response>) -> Option<String> {
    let mut failure = None;
    while let Some(response) = responses.recv().await {
        let said = match response {
            Response::InternalError(error) | Response::ValidationError(error) => error.to_string(),
            Response::ModelError(message, _) | Response::CompletionModelError(message, _) => message,
            Response::Done(_)
            | Response::Chunk(_)
            | Response::CompletionDone(_)
            | Response::CompletionChunk(_)
            | Response::ImageGeneration(_)
            | Response::Speech { .. }
            | Response::Raw { .. }
            | Response::Embeddings { .. } => continue,
        };
        failure.get_or_insert(said);
    }
    failure
}
