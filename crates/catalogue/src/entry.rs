//! The catalogue entry and the folder that it lives in.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use wakati_protocol::ids::ModelDigest;

/// The entry itself.
pub const ENTRY_FILE: &str = "entry.json";
/// The exact tokenizer, as `tokenizers` reads it. It adds no special tokens of its own: the template writes them.
pub const TOKENIZER_FILE: &str = "tokenizer.json";
/// The chat template (Jinja).
pub const TEMPLATE_FILE: &str = "chat_template.jinja";
/// The weights. Only nodes have them.
pub const WEIGHTS_FILE: &str = "weights.gguf";

/// An entry file is a few hundred bytes; a tokenizer of 256,000 tokens is about 35 MB.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// What a model is. Two machines whose entries have the same digest mean the same model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The folder's name, and the model's name in the consumer's API. Not part of the identity.
    pub slug: String,
    /// For people. Not part of the identity.
    pub name: String,
    /// SHA-256 of the rest of the entry; see [`Entry::compute_digest`].
    pub digest: ModelDigest,
    /// SHA-256 of the GGUF file, hexadecimal.
    pub weights_digest: String,
    pub weights_bytes: u64,
    /// As people write it: `Q4_1`.
    pub quantisation: String,
    /// As the GGUF names it: `llama`.
    pub architecture: String,
    /// Tokens of prompt and answer together, at most.
    pub context: u32,
    /// Token ids are below this.
    pub vocabulary: u32,
    /// Tokens that end an answer, ascending.
    pub stop_ids: Vec<u32>,
    pub bos_id: Option<u32>,
    pub eos_id: u32,
    /// SHA-256 of `tokenizer.json`, hexadecimal.
    pub tokenizer_digest: String,
    /// SHA-256 of `chat_template.jinja`, hexadecimal.
    pub template_digest: String,
    pub layers: u32,
    pub heads: u32,
    pub kv_heads: u32,
    /// Elements of one key and of one value in one head.
    pub key_length: u32,
    pub value_length: u32,
}

/// An entry's folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadEntry {
    #[error("{file} cannot be read: {error}")]
    Unreadable { file: PathBuf, error: io::Error },
    #[error("{0} is not a catalogue entry: {1}")]
    Garbled(PathBuf, serde_json::Error),
    #[error("{file} is not what the entry says: its digest differs")]
    Changed { file: PathBuf },
    #[error("the folder {0} does not carry its entry's name")]
    Misplaced(PathBuf),
}

impl Entry {
    /// Reads an entry's folder and checks the digests of entry, tokenizer and template. Weights are not read.
    ///
    /// # Errors
    /// When a file is missing, unreadable or not the one that the entry was made with.
    pub fn load(dir: &Path) -> Result<Self, BadEntry> {
        let file = dir.join(ENTRY_FILE);
        let bytes = read_bounded(&file)?;
        let entry: Self =
            serde_json::from_slice(&bytes).map_err(|error| BadEntry::Garbled(file.clone(), error))?;
        if entry.compute_digest() != entry.digest {
            return Err(BadEntry::Changed { file });
        }
        if dir.file_name().is_none_or(|name| *name != *entry.slug) {
            return Err(BadEntry::Misplaced(dir.to_owned()));
        }
        for (name, digest) in
            [(TOKENIZER_FILE, &entry.tokenizer_digest), (TEMPLATE_FILE, &entry.template_digest)]
        {
            let file = dir.join(name);
            if sha256(&read_bounded(&file)?) != *digest {
                return Err(BadEntry::Changed { file });
            }
        }
        Ok(entry)
    }

    /// SHA-256 over the entry as one JSON object with sorted keys and no white space, without `digest`, `slug`
    /// and `name`: what a model is called is not what it is.
    #[must_use]
    pub fn compute_digest(&self) -> ModelDigest {
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else {
            unreachable!("a struct of strings and numbers is a JSON object")
        };
        let identity: BTreeMap<_, _> = fields
            .into_iter()
            .filter(|(key, _)| !matches!(key.as_str(), "digest" | "slug" | "name"))
            .collect();
        let text = serde_json::json!(identity).to_string();
        ModelDigest(Sha256::digest(text).into())
    }

    /// Bytes of key-value cache for each token with 32-bit elements, which the processor uses; a GPU takes half.
    #[must_use]
    pub fn kv_bytes_per_token(&self) -> u64 {
        let lengths = u64::from(self.key_length) + u64::from(self.value_length);
        4 * u64::from(self.layers) * u64::from(self.kv_heads) * lengths
    }
}

/// Every good entry in the models' folder, by slug. A bad one is reported and left out.
#[must_use]
pub fn load_all(models: &Path) -> Vec<Entry> {
    let Ok(folders) = fs::read_dir(models) else { return Vec::new() };
    let mut entries = Vec::new();
    for folder in folders.flatten() {
        let hidden = folder.file_name().to_string_lossy().starts_with('.');
        if hidden || !folder.path().is_dir() {
            continue;
        }
        match Entry::load(&folder.path()) {
            Ok(entry) => entries.push(entry),
            Err(error) => tracing::warn!(%error, "a model was left out"),
        }
    }
    entries.sort_by(|a, b| a.slug.cmp(&b.slug));
    entries
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn read_bounded(file: &Path) -> Result<Vec<u8>, BadEntry> {
    let read = || {
        let mut bytes = Vec::new();
        fs::File::open(file)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| BadEntry::Unreadable { file: file.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(models: &Path, slug: &str) -> Entry {
        let mut entry = Entry {
            slug: slug.to_owned(),
            name: "Tiny".to_owned(),
            digest: ModelDigest([0; 32]),
            weights_digest: "00".repeat(32),
            weights_bytes: 1,
            quantisation: "F32".to_owned(),
            architecture: "llama".to_owned(),
            context: 64,
            vocabulary: 3,
            stop_ids: vec![2],
            bos_id: Some(1),
            eos_id: 2,
            tokenizer_digest: sha256(b"{}"),
            template_digest: sha256(b"hello"),
            layers: 30,
            heads: 9,
            kv_heads: 3,
            key_length: 64,
            value_length: 64,
        };
        entry.digest = entry.compute_digest();
        let dir = models.join(slug);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(ENTRY_FILE), serde_json::to_vec(&entry).unwrap()).unwrap();
        fs::write(dir.join(TOKENIZER_FILE), "{}").unwrap();
        fs::write(dir.join(TEMPLATE_FILE), "hello").unwrap();
        entry
    }

    #[test]
    fn an_entry_whose_files_are_unchanged_is_loaded() {
        let models = tempfile::tempdir().unwrap();
        let entry = write(models.path(), "tiny");
        assert_eq!(Entry::load(&models.path().join("tiny")).unwrap(), entry);
        // 30 layers, 3 heads, 64 + 64 elements of 4 bytes.
        assert_eq!(entry.kv_bytes_per_token(), 46_080);
    }

    #[test]
    fn a_changed_file_is_noticed_whichever_it_is() {
        let models = tempfile::tempdir().unwrap();
        for (file, text) in [(TOKENIZER_FILE, "[]"), (TEMPLATE_FILE, "bye")] {
            write(models.path(), "tiny");
            fs::write(models.path().join("tiny").join(file), text).unwrap();
            let loaded = Entry::load(&models.path().join("tiny"));
            assert!(matches!(loaded, Err(BadEntry::Changed { .. })), "{file}");
        }
        let entry = Entry { context: 65, ..write(models.path(), "tiny") };
        let file = models.path().join("tiny").join(ENTRY_FILE);
        fs::write(file, serde_json::to_vec(&entry).unwrap()).unwrap();
        assert!(matches!(Entry::load(&models.path().join("tiny")), Err(BadEntry::Changed { .. })));
    }

    #[test]
    fn another_name_is_the_same_model() {
        let models = tempfile::tempdir().unwrap();
        let entry = write(models.path(), "tiny");
        let renamed = Entry { slug: "other".to_owned(), name: "Other".to_owned(), ..entry.clone() };
        assert_eq!(renamed.compute_digest(), entry.digest);
    }

    #[test]
    fn one_bad_folder_does_not_hide_the_others() {
        let models = tempfile::tempdir().unwrap();
        write(models.path(), "b");
        write(models.path(), "a");
        write(models.path(), "c");
        fs::remove_file(models.path().join("c").join(TOKENIZER_FILE)).unwrap();
        fs::create_dir(models.path().join(".import")).unwrap();
        let slugs: Vec<_> = load_all(models.path()).into_iter().map(|entry| entry.slug).collect();
        assert_eq!(slugs, ["a", "b"]);
        assert!(load_all(&models.path().join("nowhere")).is_empty());
    }
}
