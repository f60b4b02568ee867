//! The sampler: logits in, one token out. Pure: no clock, no generator with hidden state.
//!
//! For logits `l`, counts `c` of the tokens already emitted in the job, and temperature `T`:
//!
//! 1. adjusted: `a[i] = l[i] + bias[i] - presence * (c[i] > 0) - frequency * c[i]` (OpenAI's definition);
//! 2. `T = 0`: the largest `a`, the smallest id on a tie;
//! 3. otherwise `s[i] = (a[i] - max a) / T`, and of these keep, one after the other, the `top_k` largest; the
//!    smallest set whose probability, among the kept, reaches `top_p` (Holtzman et al. 2019, arXiv:1904.09751);
//!    those with `p[i] >= min_p * max p` (Nguyen et al. 2024, arXiv:2407.01082);
//! 4. draw by Gumbel-max: the largest `s[i] + g[i]`, `g = -ln(-ln u)`, which is a draw from the softmax of the
//!    kept (Gumbel 1954; Maddison et al. 2014, arXiv:1411.0030).
//!
//! `u` is keyed by (seed, position, id): `key = mix(seed ^ mix(position + G))`, `x = mix(key + (id + 1) * G)`,
//! `u = (x >> 11 + 1/2) / 2^53`, where `mix` and `G` are `SplitMix64`'s (Steele et al. 2014). Noise in the logits
//! changes the choice only where two scores are nearly equal.

use std::collections::HashMap;

use wakati_protocol::job::{Logprobs, Sampling, TokenLogprob};

/// The most alternatives that a job may ask for.
const MAX_TOP_LOGPROBS: u32 = 64;
/// The most biased tokens in one job. OpenAI allows 300.
const MAX_BIAS: usize = 4096;
/// Golden-ratio increment of `SplitMix64`.
const G: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number in the job's sampling settings that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is out of range")]
pub struct OutOfRange(pub &'static str);

/// The model produced no number to choose by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the model produced no usable numbers")]
pub struct NoNumbers;

/// A chosen token.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    pub token: u32,
    /// When they were asked for.
    pub logprobs: Option<Logprobs>,
}

/// The sampler of one job, with the counts of what the job has emitted.
#[derive(Debug)]
pub struct Sampler {
    settings: Sampling,
    vocabulary: usize,
    counts: HashMap<u32, u32>,
    /// Kept between tokens so as not to allocate for each.
    candidates: Vec<Candidate>,
}

/// A token that may still be chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    token: u32,
    score: f32,
}

impl Sampler {
    /// Checks the settings and counts the tokens that earlier attempts emitted.
    ///
    /// # Errors
    /// When a number is not finite or outside what its name can mean.
    pub fn new(settings: Sampling, vocabulary: u32, emitted: &[u32]) -> Result<Self, OutOfRange> {
        let within = |value: f32, low: f32, high: f32, name| {
            if (low..=high).contains(&value) { Ok(()) } else { Err(OutOfRange(name)) }
        };
        within(settings.temperature, 0.0, 100.0, "temperature")?;
        within(settings.top_p, 0.0, 1.0, "top_p")?;
        within(settings.min_p, 0.0, 1.0, "min_p")?;
        within(settings.presence_penalty, -100.0, 100.0, "presence_penalty")?;
        within(settings.frequency_penalty, -100.0, 100.0, "frequency_penalty")?;
        if settings.bias.len() > MAX_BIAS || settings.bias.iter().any(|bias| bias.token >= vocabulary) {
            return Err(OutOfRange("a bias's token"));
        }
        for bias in &settings.bias {
            within(bias.add, -1000.0, 1000.0, "a bias")?;
        }
        if settings.top_logprobs.is_some_and(|count| count > MAX_TOP_LOGPROBS) {
            return Err(OutOfRange("top_logprobs"));
        }
        let mut sampler = Self {
            settings,
            vocabulary: vocabulary as usize,
            counts: HashMap::new(),
            candidates: Vec::new(),
        };
        emitted.iter().for_each(|token| sampler.count(*token));
        Ok(sampler)
    }

    /// Chooses the token at `position` and counts it. The logits are overwritten.
    ///
    /// # Errors
    /// When the largest adjusted logit is not a finite number.
    pub fn choose(&mut self, logits: &mut [f32], position: u32) -> Result<Choice, NoNumbers> {
        let width = self.vocabulary.min(logits.len());
        // Models pad their vocabulary; no text has the ids beyond it.
        let logits = &mut logits[..width];
        let raw = self.settings.top_logprobs.map(|count| RawLogprobs::of(logits, count as usize));
        let before = raw.is_some().then(|| logits.to_vec());
        self.adjust(logits);
        let (best, largest) = largest(logits).ok_or(NoNumbers)?;
        let token = if self.settings.temperature == 0.0 {
            best
        } else {
            for logit in logits.iter_mut() {
                *logit = (*logit - largest) / self.settings.temperature;
            }
            let key = mix(self.settings.seed ^ mix(u64::from(position).wrapping_add(G)));
            if self.keep(logits) {
                gumbel_max(key, self.candidates.iter().copied(), best)
            } else {
                let all = (0..).zip(logits.iter()).map(|(token, score)| Candidate { token, score: *score });
                gumbel_max(key, all, best)
            }
        };
        self.count(token);
        let logprobs = raw.zip(before).map(|(raw, before)| raw.report(before[token as usize]));
        Ok(Choice { token, logprobs })
    }

    fn count(&mut self, token: u32) {
        *self.counts.entry(token).or_insert(0) += 1;
    }

    fn adjust(&self, logits: &mut [f32]) {
        for bias in &self.settings.bias {
            if let Some(logit) = logits.get_mut(bias.token as usize) {
                *logit += bias.add;
            }
        }
        let Sampling { presence_penalty, frequency_penalty, .. } = self.settings;
        if presence_penalty == 0.0 && frequency_penalty == 0.0 {
            return;
        }
        for (token, count) in &self.counts {
            if let Some(logit) = logits.get_mut(*token as usize) {
                *logit -= presence_penalty + frequency_penalty * *count as f32;
            }
        }
    }

    /// Fills `candidates` with what top-k, top-p and min-p leave, best first; `false` when they leave everything.
    fn keep(&mut self, scores: &[f32]) -> bool {
        let Sampling { top_k, top_p, min_p, .. } = self.settings;
        let top_k = if top_k == 0 { scores.len() } else { scores.len().min(top_k as usize) };
        let cuts_p = top_p > 0.0 && top_p < 1.0;
        if top_k == scores.len() && !cuts_p && min_p == 0.0 {
            return false;
        }
        let floor = if min_p > 0.0 { min_p.ln() } else { f32::NEG_INFINITY };
        if top_k < scores.len() {
            select_largest(scores, top_k, &mut self.candidates);
            if cuts_p {
                let total = self.candidates.iter().map(|candidate| f64::from(candidate.score).exp()).sum();
                nucleus(&mut self.candidates, f64::from(top_p), total);
            }
        } else if cuts_p {
            nucleus_of_all(scores, f64::from(top_p), &mut self.candidates);
        } else {
            gather(scores, floor, &mut self.candidates);
        }
        self.candidates.retain(|candidate| candidate.score >= floor);
        true
    }
}

/// Index and value of the largest finite number, the first on a tie. `NaN` is passed over.
fn largest(values: &[f32]) -> Option<(u32, f32)> {
    let mut best = f32::NEG_INFINITY;
    for value in values {
        // Written so that the loop becomes vector instructions.
        best = if *value > best { *value } else { best };
    }
    let index = best.is_finite().then(|| values.iter().position(|value| *value == best)).flatten()?;
    Some((index as u32, best))
}

/// All tokens whose score is at least `floor`, in the order of their ids.
fn gather(scores: &[f32], floor: f32, into: &mut Vec<Candidate>) {
    into.clear();
    for (token, score) in (0..).zip(scores) {
        if *score >= floor {
            into.push(Candidate { token, score: *score });
        }
    }
}

fn best_first(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(a.token.cmp(&b.token))
}

/// The `k` largest, best first, in one pass: whatever is not above the k-th of those seen so far is skipped.
fn select_largest(scores: &[f32], k: usize, into: &mut Vec<Candidate>) {
    into.clear();
    let mut bar = f32::NEG_INFINITY;
    for (token, score) in (0..).zip(scores) {
        if *score > bar || (into.len() < k && !score.is_nan()) {
            into.push(Candidate { token, score: *score });
            if into.len() >= 2 * k + 64 {
                into.select_nth_unstable_by(k - 1, best_first);
                into.truncate(k);
                bar = into[k - 1].score;
            }
        }
    }
    into.sort_unstable_by(best_first);
    into.truncate(k);
}

/// Cuts sorted candidates after the first whose cumulated probability reaches `top_p` of `total`.
fn nucleus(candidates: &mut Vec<Candidate>, top_p: f64, total: f64) -> bool {
    let mut sum = 0.0;
    for index in 0..candidates.len() {
        sum += f64::from(candidates[index].score).exp();
        if sum >= top_p * total {
            candidates.truncate(index + 1);
            return true;
        }
    }
    false
}

/// The nucleus of a whole vocabulary, sorting only as much of its upper end as is needed.
fn nucleus_of_all(scores: &[f32], top_p: f64, into: &mut Vec<Candidate>) {
    let total: f64 = scores.iter().filter(|score| !score.is_nan()).map(|score| f64::from(score.exp())).sum();
    for floor in [-4.0, -8.0, -16.0, f32::NEG_INFINITY] {
        gather(scores, floor, into);
        let mass: f64 = into.iter().map(|candidate| f64::from(candidate.score).exp()).sum();
        if mass > top_p * total * (1.0 + 1e-6) || floor == f32::NEG_INFINITY {
            into.sort_unstable_by(best_first);
            nucleus(into, top_p, total);
            return;
        }
    }
}

/// The token with the largest score plus noise. Scores are at most 0 and `best` has 0.
fn gumbel_max(key: u64, candidates: impl Iterator<Item = Candidate>, best: u32) -> u32 {
    let noise = |token: u32| bits(key, token);
    let mut winner = best;
    let mut winning = gumbel(noise(best));
    for Candidate { token, score } in candidates {
        let x = noise(token);
        // g = -ln(-ln u) <= -ln(1 - u) <= (z + 1) ln 2, where z are the leading ones of u in binary: nearly every
        // token is settled without a logarithm. The margin is far above rounding.
        let bound = f64::from((x | 0x7ff).leading_ones() + 1) * std::f64::consts::LN_2;
        if f64::from(score) + bound + 1e-3 < winning {
            continue;
        }
        let total = f64::from(score) + gumbel(x);
        if total > winning || (total == winning && token < winner) {
            (winner, winning) = (token, total);
        }
    }
    winner
}

/// 64 bits keyed by the job's seed, the position and the token.
fn bits(key: u64, token: u32) -> u64 {
    mix(key.wrapping_add((u64::from(token) + 1).wrapping_mul(G)))
}

fn gumbel(x: u64) -> f64 {
    let u = ((x >> 11) as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64);
    -(-u.ln()).ln()
}

/// `SplitMix64`'s output function.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Log-probabilities before any adjustment.
struct RawLogprobs {
    /// Logarithm of the sum of the exponentials of all logits.
    normaliser: f64,
    top: Vec<Candidate>,
}

impl RawLogprobs {
    fn of(logits: &[f32], count: usize) -> Self {
        let (_, largest) = largest(logits).unwrap_or((0, 0.0));
        let finite = logits.iter().filter(|logit| !logit.is_nan());
        let sum: f64 = finite.map(|logit| f64::from(*logit - largest).exp()).sum();
        let mut top = Vec::new();
        if count > 0 {
            select_largest(logits, count, &mut top);
        }
        Self { normaliser: f64::from(largest) + sum.ln(), top }
    }

    fn report(self, chosen: f32) -> Logprobs {
        let logprob = |logit: f32| (f64::from(logit) - self.normaliser) as f32;
        let top = self.top.iter().map(|c| TokenLogprob { token: c.token, logprob: logprob(c.score) });
        Logprobs { chosen: logprob(chosen), top: top.collect() }
    }
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
