//! Prompts drawn at random, so that no test fits one answer.

use rand::seq::IndexedRandom as _;

const PROMPTS: &[&str] = &[
    "Write a story about a lighthouse keeper who finds a letter in a bottle.",
    "Explain how bread is made, from the field to the table.",
    "Describe a long train journey through the mountains in winter.",
    "Tell me about the history of the bicycle.",
    "Write a letter from a sailor to his sister.",
    "Explain to a child why the sky is blue and why sunsets are red.",
    "Describe a busy market in a small town, with its people and its smells.",
    "Write a speech for the opening of a new library.",
    "Explain how a river shapes the land over thousands of years.",
    "Tell a story about a fox, a crow and a broken clock.",
    "Describe how to plan a vegetable garden for a family of four.",
    "Write about a football match that was decided in the last minute.",
];

/// One of them, and a seed to sample with. Both are printed, so that a failure can be repeated.
#[must_use]
pub fn draw() -> (&'static str, u64) {
    let mut random = rand::rng();
    let prompt = PROMPTS.choose(&mut random).copied().unwrap_or(PROMPTS[0]);
    // JSON's numbers are exact up to 2^53 in every client.
    let seed = rand::Rng::random_range(&mut random, 0..1 << 53);
    eprintln!("prompt {prompt:?}, seed {seed}");
    (prompt, seed)
}
