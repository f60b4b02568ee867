use serde::Deserialize;
use wakati_protocol::job::Bias;

use super::*;

/// Made by `tests/fixtures/make_sampler_cases.py`, an independent reference.
const CASES: &str = include_str!("../tests/fixtures/sampler_cases.json");

#[derive(Deserialize)]
struct Fixture {
    logits: Vec<Vec<f32>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    logits: usize,
    settings: Settings,
    position: u32,
    emitted: Vec<u32>,
    token: u32,
    logprob: Option<f32>,
    top: Option<Vec<(u32, f32)>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Settings {
    temperature: f32,
    top_p: f32,
    top_k: u32,
    min_p: f32,
    presence_penalty: f32,
    frequency_penalty: f32,
    bias: Vec<(u32, f32)>,
    seed: String,
    top_logprobs: Option<u32>,
}

impl Settings {
    fn sampling(self) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            min_p: self.min_p,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            bias: self.bias.into_iter().map(|(token, add)| Bias { token, add }).collect(),
            seed: self.seed.parse().unwrap(),
            top_logprobs: self.top_logprobs,
        }
    }
}

/// One token from fresh state.
fn choose(logits: &[f32], sampling: &Sampling, position: u32) -> u32 {
    let mut sampler = Sampler::new(sampling.clone(), logits.len() as u32, &[]).unwrap();
    sampler.choose(&mut logits.to_vec(), position).unwrap().token
}

/// Logits without a pattern, between -5 and 5.
fn noise(count: usize, salt: u64) -> Vec<f32> {
    (0..count as u64).map(|n| (mix(n ^ mix(salt)) >> 40) as f32 / (1 << 24) as f32 * 10.0 - 5.0).collect()
}

#[test]
fn every_case_of_the_reference_gives_the_same_token() {
    let fixture: Fixture = serde_json::from_str(CASES).unwrap();
    assert!(fixture.cases.len() > 100);
    for (number, case) in fixture.cases.into_iter().enumerate() {
        let mut logits = fixture.logits[case.logits].clone();
        let sampling = case.settings.sampling();
        let mut sampler = Sampler::new(sampling, logits.len() as u32, &case.emitted).unwrap();
        let choice = sampler.choose(&mut logits, case.position).unwrap();
        assert_eq!(choice.token, case.token, "case {number}");
        assert_eq!(choice.logprobs.is_some(), case.logprob.is_some(), "case {number}");
        if let (Some(ours), Some(logprob), Some(top)) = (choice.logprobs, case.logprob, case.top) {
            assert!((ours.chosen - logprob).abs() < 1e-5, "case {number}");
            assert_eq!(ours.top.len(), top.len());
            for (ours, (token, logprob)) in ours.top.iter().zip(top) {
                assert_eq!(ours.token, token, "case {number}");
                assert!((ours.logprob - logprob).abs() < 1e-5, "case {number}");
            }
        }
    }
}

#[test]
fn temperature_nought_takes_the_largest_and_the_first_on_a_tie() {
    for salt in 0..50 {
        let mut logits = noise(300, salt);
        logits[200] = 9.0;
        logits[250] = 9.0;
        assert_eq!(choose(&logits, &Sampling { seed: salt, ..Sampling::default() }, 3), 200);
    }
}

#[test]
fn the_same_key_draws_the_same_token_and_another_key_another() {
    let logits = vec![0.0; 1000];
    let sampling = |seed| Sampling { temperature: 1.0, seed, ..Sampling::default() };
    let mut drawn = std::collections::HashSet::new();
    for seed in 0..40 {
        for position in 0..10 {
            let token = choose(&logits, &sampling(seed), position);
            assert_eq!(token, choose(&logits, &sampling(seed), position));
            drawn.insert(token);
        }
    }
    // 400 draws of 1,000 equal tokens leave 330 different ones on average, with a deviation of 7.
    assert!((300..360).contains(&drawn.len()), "{}", drawn.len());
}

#[test]
fn top_k_draws_only_from_the_k_largest_and_from_each_of_them() {
    let logits = noise(500, 1);
    let mut order: Vec<u32> = (0..500).collect();
    order.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]));
    let mut drawn: Vec<u32> = (0..4000)
        .map(|seed| choose(&logits, &Sampling { temperature: 5.0, top_k: 7, seed, ..Sampling::default() }, 0))
        .collect();
    drawn.sort_unstable();
    drawn.dedup();
    let mut expected = order[..7].to_vec();
    expected.sort_unstable();
    assert_eq!(drawn, expected);
}

#[test]
fn the_draws_follow_the_softmax() {
    // 16 tokens at temperature 0.5, 40,000 seeds; the chi-square of 15 degrees exceeds 44.3 once in 10,000 times
    // (tables). The seeds are fixed, so this is no lottery.
    let logits: Vec<f32> = noise(16, 2).iter().map(|logit| logit / 4.0).collect();
    let weights: Vec<f64> = logits.iter().map(|logit| (f64::from(*logit) / 0.5).exp()).collect();
    let total: f64 = weights.iter().sum();
    let draws = 40_000;
    let mut counts = [0_u32; 16];
    for seed in 0..draws {
        let sampling = Sampling { temperature: 0.5, seed, ..Sampling::default() };
        counts[choose(&logits, &sampling, 17) as usize] += 1;
    }
    let chi_square: f64 = counts
        .iter()
        .zip(&weights)
        .map(|(count, weight)| {
            let expected = weight / total * draws as f64;
            (f64::from(*count) - expected).powi(2) / expected
        })
        .sum();
    assert!(chi_square < 44.3, "{chi_square}");
}

#[test]
fn a_bias_of_minus_a_hundred_is_never_drawn() {
    let bias = vec![Bias { token: 3, add: -100.0 }];
    let sampling = |seed| Sampling { temperature: 1.0, bias: bias.clone(), seed, ..Sampling::default() };
    assert!((0..5000).all(|seed| choose(&[0.0; 4], &sampling(seed), 0) != 3));
}

#[test]
fn what_was_emitted_before_counts_like_what_is_emitted_now() {
    let sampling = Sampling { frequency_penalty: 1.0, ..Sampling::default() };
    let logits = vec![0.0, 2.5, 1.0];
    let mut whole = Sampler::new(sampling.clone(), 3, &[]).unwrap();
    let all: Vec<u32> = (0..6).map(|at| whole.choose(&mut logits.clone(), at).unwrap().token).collect();
    for cut in 0..6 {
        let mut resumed = Sampler::new(sampling.clone(), 3, &all[..cut]).unwrap();
        let rest: Vec<u32> =
            (cut as u32..6).map(|at| resumed.choose(&mut logits.clone(), at).unwrap().token).collect();
        assert_eq!(rest, all[cut..]);
    }
}

#[test]
fn ids_beyond_the_vocabulary_are_never_chosen() {
    let mut sampler = Sampler::new(Sampling::default(), 3, &[]).unwrap();
    assert_eq!(sampler.choose(&mut [1.0, 0.0, 0.0, 50.0], 0).unwrap().token, 0);
}

#[test]
fn numbers_that_cannot_be_meant_are_refused() {
    let base = || Sampling { temperature: 1.0, ..Sampling::default() };
    let bias = |token, add| Sampling { bias: vec![Bias { token, add }], ..base() };
    for (bad, name) in [
        (Sampling { temperature: f32::NAN, ..base() }, "temperature"),
        (Sampling { temperature: -0.1, ..base() }, "temperature"),
        (Sampling { temperature: f32::INFINITY, ..base() }, "temperature"),
        (Sampling { top_p: 1.5, ..base() }, "top_p"),
        (Sampling { min_p: f32::NAN, ..base() }, "min_p"),
        (Sampling { presence_penalty: f32::NEG_INFINITY, ..base() }, "presence_penalty"),
        (Sampling { frequency_penalty: f32::NAN, ..base() }, "frequency_penalty"),
        (bias(10, 1.0), "a bias's token"),
        (bias(1, f32::NAN), "a bias"),
        (Sampling { top_logprobs: Some(65), ..base() }, "top_logprobs"),
    ] {
        assert_eq!(Sampler::new(bad, 10, &[]).unwrap_err(), OutOfRange(name));
    }
}

#[test]
fn logits_that_are_no_numbers_are_a_failure_and_single_ones_are_passed_over() {
    let sampling = Sampling { temperature: 1.0, top_p: 0.9, ..Sampling::default() };
    let mut sampler = Sampler::new(sampling.clone(), 3, &[]).unwrap();
    assert_eq!(sampler.choose(&mut [f32::NAN; 3], 0), Err(NoNumbers));
    assert_eq!(sampler.choose(&mut [f32::INFINITY, 0.0, 0.0], 0), Err(NoNumbers));
    for seed in 0..200 {
        let sampling = Sampling { seed, ..sampling.clone() };
        let token =
            Sampler::new(sampling, 3, &[]).unwrap().choose(&mut [f32::NAN, 0.0, 1.0], 0).unwrap().token;
        assert_ne!(token, 0);
    }
}
