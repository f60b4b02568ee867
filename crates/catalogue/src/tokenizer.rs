//! A GGUF's `tokenizer.ggml.*` keys as the exact `tokenizer.json` that the model was published with.
//!
//! A GGUF holds vocabulary and merges but only the *name* of the pre-tokenizer. Known names are mapped exactly;
//! an unknown one is refused, since a tokenizer that is nearly right degrades a model silently.

use serde_json::{Map, Value as Json, json};
use tokenizers::Tokenizer;

use crate::gguf::{BadGguf, Header, Value};

/// Why no tokenizer could be made.
#[derive(Debug, thiserror::Error)]
pub enum BadTokenizer {
    #[error("the file names the tokenizer {0:?}, which is not known here: pass its tokenizer.json")]
    Unknown(String),
    #[error("the tokenizer cannot be used: {0}")]
    Unusable(String),
    #[error(transparent)]
    Gguf(#[from] BadGguf),
}

/// Kinds of token in `tokenizer.ggml.token_type` (llama.cpp's `llama_token_type`).
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;
/// Padding up to the size of the embedding; no text has these.
const UNUSED: i64 = 5;

/// Llama 3's pattern, from the `tokenizer.json` published with it.
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Qwen 2's pattern, from the `tokenizer.json` published with it.
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The vocabulary with the kind of each token.
pub(crate) struct Vocabulary<'a> {
    tokens: Vec<&'a str>,
    kinds: Vec<i64>,
}

impl<'a> Vocabulary<'a> {
    /// # Errors
    /// When tokens or their kinds are missing or do not fit each other.
    pub(crate) fn read(header: &'a Header) -> Result<Self, BadGguf> {
        let tokens = texts(header, "tokenizer.ggml.tokens")?;
        let kinds: Option<Vec<i64>> = list(header, "tokenizer.ggml.token_type")?
            .iter()
            .map(|kind| kind.as_u64().and_then(|kind| i64::try_from(kind).ok()))
            .collect();
        let kinds = kinds.filter(|kinds| kinds.len() == tokens.len());
        let kinds = kinds.ok_or_else(|| corrupt("tokenizer.ggml.token_type does not fit the tokens"))?;
        Ok(Self { tokens, kinds })
    }

    /// The ids of those control tokens whose text `is` accepts, ascending.
    pub(crate) fn control_ids(&self, is: impl Fn(&str) -> bool) -> Vec<u32> {
        let tokens = (0_u32..).zip(self.tokens.iter().zip(&self.kinds));
        tokens.filter(|(_, (token, kind))| **kind == CONTROL && is(token)).map(|(id, _)| id).collect()
    }
}

/// Makes the `tokenizer.json` of a header, and loads it once to be sure that it works.
///
/// # Errors
/// When the pre-tokenizer is unknown or vocabulary and merges do not fit each other.
pub(crate) fn tokenizer_json(header: &Header, vocabulary: &Vocabulary<'_>) -> Result<Vec<u8>, BadTokenizer> {
    let model = header.text("tokenizer.ggml.model").unwrap_or_default();
    let pre = header.text("tokenizer.ggml.pre").unwrap_or_default();
    let unknown = || BadTokenizer::Unknown(format!("{model}/{pre}").chars().take(80).collect());
    if model != "gpt2" {
        return Err(unknown());
    }
    let scheme = Scheme::named(pre).ok_or_else(unknown)?;
    let mut merges = Vec::new();
    for merge in texts(header, "tokenizer.ggml.merges")? {
        let (left, right) = merge.split_once(' ').ok_or_else(|| corrupt("a merge is not a pair"))?;
        merges.push(json!([left, right]));
    }
    let mut vocab = Map::new();
    let mut added = Vec::new();
    for (id, (token, kind)) in vocabulary.tokens.iter().zip(&vocabulary.kinds).enumerate() {
        if *kind == UNUSED {
            continue;
        }
        if vocab.insert((*token).to_owned(), json!(id)).is_some() {
            return Err(corrupt("a token appears twice in the vocabulary").into());
        }
        if matches!(*kind, CONTROL | USER_DEFINED) {
            added.push(json!({
                "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": *kind == CONTROL,
            }));
        }
    }
    let whole = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": scheme.normalizer, "pre_tokenizer": scheme.pre_tokenizer, "post_processor": null,
        "decoder": byte_level(true),
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": scheme.ignore_merges, "vocab": vocab, "merges": merges,
        },
    });
    let bytes = whole.to_string().into_bytes();
    check(&bytes, vocabulary.tokens.len())?;
    Ok(bytes)
}

/// Loads a `tokenizer.json` and checks that it produces no id outside the vocabulary.
///
/// # Errors
/// When it does not load or is larger than the model.
pub(crate) fn check(bytes: &[u8], vocabulary: usize) -> Result<(), BadTokenizer> {
    let tokenizer =
        Tokenizer::from_bytes(bytes).map_err(|error| BadTokenizer::Unusable(error.to_string()))?;
    let largest = tokenizer.get_vocab(true).into_values().max().unwrap_or(0);
    if largest as usize >= vocabulary {
        let detail = format!("it has the id {largest}, the model's vocabulary ends at {vocabulary}");
        return Err(BadTokenizer::Unusable(detail));
    }
    Ok(())
}

/// What a pre-tokenizer's name stands for.
struct Scheme {
    normalizer: Json,
    pre_tokenizer: Json,
    /// A word that is a token as a whole is taken without looking at merges.
    ignore_merges: bool,
}

impl Scheme {
    fn named(pre: &str) -> Option<Self> {
        let (normalizer, pre_tokenizer, ignore_merges) = match pre {
            "gpt-2" => (Json::Null, byte_level(true), false),
            "smollm" => {
                let digits = json!({ "type": "Digits", "individual_digits": true });
                (Json::Null, sequence([digits, byte_level(true)]), false)
            }
            "llama-bpe" => (Json::Null, sequence([split(LLAMA3), byte_level(false)]), true),
            "qwen2" => (json!({ "type": "NFC" }), sequence([split(QWEN2), byte_level(false)]), false),
            _ => return None,
        };
        Some(Self { normalizer, pre_tokenizer, ignore_merges })
    }
}

fn byte_level(use_regex: bool) -> Json {
    json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex })
}

fn split(pattern: &str) -> Json {
    json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false })
}

fn sequence<const N: usize>(steps: [Json; N]) -> Json {
    json!({ "type": "Sequence", "pretokenizers": steps.to_vec() })
}

fn list<'a>(header: &'a Header, key: &str) -> Result<&'a [Value], BadGguf> {
    let items = header.metadata.get(key).and_then(Value::as_array);
    items.ok_or_else(|| corrupt(&format!("{key} is missing")))
}

fn texts<'a>(header: &'a Header, key: &str) -> Result<Vec<&'a str>, BadGguf> {
    let items: Option<_> = list(header, key)?.iter().map(Value::as_text).collect();
    items.ok_or_else(|| corrupt(&format!("{key} is not a list of texts")))
}

fn corrupt(what: &str) -> BadGguf {
    BadGguf::Corrupt(what.to_owned())
}
