//! `engine-bench`: what the worker's pipe and sampler cost beside plain mistral.rs.
//!
//! ```text
//! engine-bench --worker PATH/wakati-worker --model FILE.gguf [--rounds 7] [--json]
//! ```
//!
//! In one run, on the same model, prompt and length, it alternates rounds of (a) the built worker over its pipe
//! and (b) mistral.rs in this process with its own sampler, both streaming at temperature 0.8 and top-p 0.95,
//! and takes the median of the rounds' ratios, so that other load on the machine weighs on both alike.
//! Then it gives the worker 2 and 4 jobs of different lengths, one after another and at once.
//! It ends with the table `figure | value | bar | ok or short`, and with exit code 1 when a bar is missed.
//! It must be built in one go with the worker: the same flags, the same mistral.rs.

mod client;
mod plain;

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use serde::Serialize;
use wakati_catalogue::gguf::{Header, Value};
use wakati_protocol::job::{Bias, Job, Sampling};

use client::{Worker, job};
use plain::Plain;

const TEMPERATURE: f32 = 0.8;
const TOP_P: f32 = 0.95;
const PROMPT_TOKENS: usize = 192;
const ANSWER_TOKENS: u32 = 64;
/// The worker's decode and prefill speed, as a share of plain mistral.rs.
const BAR: f64 = 0.97;
const MOST_SLOTS: u32 = 4;

/// Compares the worker with plain mistral.rs on one model.
#[derive(Debug, Parser)]
struct Arguments {
    /// The built `wakati-worker`.
    #[arg(long)]
    worker: PathBuf,
    /// A GGUF file.
    #[arg(long)]
    model: PathBuf,
    /// Rounds of each side; odd, so that the median is a measured one.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// One JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

/// One line of the table.
#[derive(Debug, Serialize)]
struct Figure {
    figure: String,
    value: f64,
    unit: &'static str,
    /// The least that is enough; absent where the figure is for information.
    bar: Option<f64>,
    ok: bool,
}

impl Figure {
    fn told(figure: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { figure: figure.into(), value, unit, bar: None, ok: true }
    }

    fn barred(figure: &str, value: f64, bar: f64) -> Self {
        Self { figure: figure.to_owned(), value, unit: "x", bar: Some(bar), ok: value >= bar }
    }
}

/// Tokens per second of one round.
#[derive(Debug, Clone, Copy)]
struct Speed {
    prefill: f64,
    decode: f64,
}

impl Speed {
    fn of(to_first: Duration, to_last: Duration) -> Self {
        Self {
            prefill: PROMPT_TOKENS as f64 / to_first.as_secs_f64(),
            decode: f64::from(ANSWER_TOKENS - 1) / to_last.as_secs_f64(),
        }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Runtime::new()?;
    let figures = runtime.block_on(measure(&arguments))?;
    let ok = figures.iter().all(|figure| figure.ok);
    if arguments.json {
        let beside = serde_json::json!({ "bench": "engine", "ok": ok, "figures": figures });
        println!("{beside}");
    } else {
        print_table(&figures);
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_table(figures: &[Figure]) {
    println!("{:<44} {:>10}   {:>8}   ", "figure", "value", "bar");
    for Figure { figure, value, unit, bar, ok } in figures {
        let bar = bar.map_or(String::new(), |bar| format!("{bar:.2}"));
        let verdict = if *ok { "ok" } else { "short" };
        println!("{figure:<44} {value:>8.2} {unit:<3} {bar:>7}   {verdict}");
    }
}

async fn measure(arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let (prompt, end_id) = prompt(arguments)?;
    let plain = Plain::load(&arguments.model).await?;
    let mut worker = Worker::start(&arguments.worker, &arguments.model, 2048, MOST_SLOTS)?;
    let (_, ready) = worker.ready()?.map_err(|refused| anyhow::anyhow!("refused: {}", refused.detail))?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        // Each side goes first in every other round.
        let early = if round % 2 == 0 {
            Some(over_the_pipe(&mut worker, &prompt, end_id, round as u8)?)
        } else {
            None
        };
        let (first, last) = plain.answer(prompt.clone(), ANSWER_TOKENS).await?;
        let there = Speed::of(first, last);
        let here = match early {
            Some(here) => here,
            None => over_the_pipe(&mut worker, &prompt, end_id, round as u8)?,
        };
        // The first round warms caches up.
        if round > 0 {
            theirs.push(there);
            ours.push(here);
        }
    }
    let (prefill, decode) = (|speed: &Speed| speed.prefill, |speed: &Speed| speed.decode);
    let mut figures = Vec::new();
    for (name, of) in [("prefill", prefill as fn(&Speed) -> f64), ("decode", decode)] {
        figures.push(Figure::told(format!("plain mistral.rs, {name}"), median(theirs.iter().map(of)), "t/s"));
        figures.push(Figure::told(format!("worker, {name}"), median(ours.iter().map(of)), "t/s"));
        let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| of(ours) / of(theirs));
        figures.push(Figure::barred(&format!("{name}, worker / plain"), median(ratios), BAR));
    }
    figures.extend([
        Figure::told("worker, loading", f64::from(ready.load_ms) / 1000.0, "s"),
        Figure::told("worker, resident after loading", ready.resident_bytes as f64 / 1048576.0, "MiB"),
    ]);
    for count in [2, MOST_SLOTS as u8] {
        let (apart, together) = at_once(&mut worker, &prompt, end_id, count)?;
        figures.push(Figure::told(format!("worker, {count} jobs one after another"), apart, "t/s"));
        figures.push(Figure::told(format!("worker, {count} jobs at once"), together, "t/s"));
        figures.push(Figure::told(
            format!("{count} jobs, at once / one after another"),
            together / apart,
            "x",
        ));
    }
    Ok(figures)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Ids of common words, over and over: a prompt that needs no tokenizer. With the model's end token.
fn prompt(arguments: &Arguments) -> anyhow::Result<(Vec<u32>, u32)> {
    const WORDS: &str = "once upon a time there was an old house at the end of long road and every night when it \
        rained people who lived near would hear music from its windows but nobody had ever seen light";
    let header = Header::read(&mut File::open(&arguments.model)?)?;
    let end_id = header.number("tokenizer.ggml.eos_token_id").context("the model names its end token")?;
    let tokens = header.metadata.get("tokenizer.ggml.tokens").and_then(Value::as_array).unwrap_or_default();
    let id = |word: &str| {
        let spelt = [format!("Ġ{word}"), format!("▁{word}")];
        tokens.iter().position(|token| token.as_text().is_some_and(|text| spelt.iter().any(|s| s == text)))
    };
    let ids: Vec<_> = WORDS.split_whitespace().filter_map(id).map(|id| id as u32).collect();
    ensure!(!ids.is_empty(), "the model's vocabulary has none of the prompt's words");
    Ok((ids.into_iter().cycle().take(PROMPT_TOKENS).collect(), end_id))
}

/// Both sides sample alike, and neither ends early.
fn sampling(end_id: u32, seed: u64) -> Sampling {
    let bias = vec![Bias { token: end_id, add: -1000.0 }];
    Sampling { temperature: TEMPERATURE, top_p: TOP_P, bias, seed, ..Sampling::default() }
}

fn over_the_pipe(worker: &mut Worker, prompt: &[u32], end_id: u32, number: u8) -> anyhow::Result<Speed> {
    let job = job(number, prompt.to_vec(), ANSWER_TOKENS, sampling(end_id, number.into()));
    let began = Instant::now();
    let answers = worker.answer(vec![job])?;
    let answer = &answers[0];
    ensure!(answer.ids.len() == ANSWER_TOKENS as usize, "the answer ended early: {:?}", answer.end);
    let (first, last) = (answer.came[0], answer.came[answer.came.len() - 1]);
    Ok(Speed::of(first - began, last - first))
}

/// Generated tokens per second, prefill included, of jobs with prompts and answers of different lengths: one after
/// another, and at once. More slots than one are worth offering where the second figure is clearly the larger.
fn at_once(worker: &mut Worker, prompt: &[u32], end_id: u32, count: u8) -> anyhow::Result<(f64, f64)> {
    let jobs: Vec<Job> = (0..count)
        .map(|n| {
            let prompt = prompt[..16 + 12 * usize::from(n)].to_vec();
            job(100 + n, prompt, 32 + 8 * u32::from(n), sampling(end_id, n.into()))
        })
        .collect();
    let total: f64 = jobs.iter().map(|job| f64::from(job.limit)).sum();
    let began = Instant::now();
    for job in jobs.clone() {
        worker.answer(vec![job])?;
    }
    let apart = total / began.elapsed().as_secs_f64();
    let began = Instant::now();
    worker.answer(jobs)?;
    Ok((apart, total / began.elapsed().as_secs_f64()))
}
