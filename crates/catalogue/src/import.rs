//! A GGUF file becomes a catalogue entry.
//!
//! Everything is written into a hidden folder beside the others and appears under its name in one step.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wakati_protocol::ids::ModelDigest;

use crate::entry::{ENTRY_FILE, Entry, TEMPLATE_FILE, TOKENIZER_FILE, WEIGHTS_FILE, sha256};
use crate::gguf::{BadGguf, Header};
use crate::tokenizer::{self, BadTokenizer, Vocabulary};

/// How a model is imported.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What people call the model; the file's name without its quantisation when absent.
    pub name: Option<String>,
    /// The published `tokenizer.json`, for files whose pre-tokenizer is not known here.
    pub tokenizer: Option<PathBuf>,
    pub weights: KeepWeights,
}

/// Whether the entry's folder holds the weights: a node serves them, a broker only names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeepWeights {
    /// A hard link where the file system allows it, else a copy.
    #[default]
    KeepWeights,
    EntryOnly,
}

/// How far the weights' digest is computed, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub bytes: u64,
    pub of_bytes: u64,
}

/// Why a file did not become an entry. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("{file}: {error}")]
    Unreadable { file: PathBuf, error: io::Error },
    #[error(transparent)]
    Gguf(#[from] BadGguf),
    #[error(transparent)]
    Tokenizer(#[from] BadTokenizer),
    #[error("the file has no chat template, so it cannot answer chats")]
    NoChatTemplate,
    #[error("another model is called {slug:?} already; give this one another name")]
    NameTaken { slug: String },
    #[error("the entry cannot be written: {0}")]
    Unwritable(#[source] io::Error),
}

/// Imports without watching the progress; see [`import_with`].
///
/// # Errors
/// As [`import_with`].
pub fn import(gguf: &Path, models: &Path, options: Options) -> Result<Entry, ImportError> {
    import_with(gguf, models, options, &mut |_| {})
}

/// Imports a GGUF file into the models' folder. Doing it again changes nothing.
///
/// # Errors
/// When the file is not a model that can be served, its tokenizer is unknown, or the folder cannot be written.
pub fn import_with(
    gguf: &Path,
    models: &Path,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Entry, ImportError> {
    let unreadable = |file: &Path, error| ImportError::Unreadable { file: file.to_owned(), error };
    let mut file = File::open(gguf).map_err(|error| unreadable(gguf, error))?;
    let header = Header::read(&mut file)?;
    let vocabulary = Vocabulary::read(&header)?;
    let shape = header.shape()?;
    let tokenizer_json = match &options.tokenizer {
        Some(path) => {
            let bytes = fs::read(path).map_err(|error| unreadable(path, error))?;
            tokenizer::check(&bytes, shape.vocabulary as usize)?;
            bytes
        }
        None => tokenizer::tokenizer_json(&header, &vocabulary)?,
    };
    let template = header.text("tokenizer.chat_template").ok_or(ImportError::NoChatTemplate)?;
    let eos_id = header.number("tokenizer.ggml.eos_token_id").filter(|id| *id < shape.vocabulary);
    let eos_id = eos_id.ok_or_else(|| BadGguf::Corrupt("it names no end token".to_owned()))?;
    let quantisation = header.quantisation();
    let name = options.name.unwrap_or_else(|| name_of(gguf, &quantisation));
    let weights_digest = digest(&mut file, header.file_bytes, progress).map_err(|e| unreadable(gguf, e))?;
    let mut entry = Entry {
        slug: slug_of(&name),
        name,
        digest: ModelDigest([0; 32]),
        weights_digest,
        weights_bytes: header.file_bytes,
        quantisation,
        stop_ids: stop_ids(&header, &vocabulary, eos_id),
        bos_id: header.number("tokenizer.ggml.bos_token_id").filter(|id| *id < shape.vocabulary),
        eos_id,
        tokenizer_digest: sha256(&tokenizer_json),
        template_digest: sha256(template.as_bytes()),
        architecture: shape.architecture,
        context: shape.context,
        vocabulary: shape.vocabulary,
        layers: shape.layers,
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        key_length: shape.key_length,
        value_length: shape.value_length,
    };
    entry.digest = entry.compute_digest();

    let dir = models.join(&entry.slug);
    if !dir.exists() {
        write_folder(models, &entry, &tokenizer_json, template).map_err(ImportError::Unwritable)?;
    }
    if Entry::load(&dir).ok().is_none_or(|there| there.digest != entry.digest) {
        return Err(ImportError::NameTaken { slug: entry.slug });
    }
    if options.weights == KeepWeights::KeepWeights {
        keep_weights(gguf, &mut file, &dir).map_err(ImportError::Unwritable)?;
    }
    Ok(entry)
}

/// The tokens that end an answer: the file's own end tokens, and the control tokens that llama.cpp takes for
/// ends of a turn by their names (`llama-vocab.cpp`).
fn stop_ids(header: &Header, vocabulary: &Vocabulary<'_>, eos_id: u32) -> Vec<u32> {
    const ENDS: &[&str] = &[
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end|>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<end_of_turn>",
    ];
    let mut ids = vocabulary.control_ids(|token| ENDS.contains(&token));
    ids.push(eos_id);
    ids.extend(
        ["eot", "eom"].iter().filter_map(|end| header.number(&format!("tokenizer.ggml.{end}_token_id"))),
    );
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The file's name without its ending and without the quantisation: `SmolLM2-135M-Instruct`.
fn name_of(gguf: &Path, quantisation: &str) -> String {
    let stem = gguf.file_stem().unwrap_or_default().to_string_lossy();
    let cut = stem.len().saturating_sub(quantisation.len());
    let ends_with_it = stem.get(cut..).is_some_and(|end| end.eq_ignore_ascii_case(quantisation));
    let name = if ends_with_it { stem[..cut].trim_end_matches(['.', '-', '_']) } else { &stem };
    if name.is_empty() { stem.into_owned() } else { name.to_owned() }
}

/// Lower-case letters, digits and single hyphens, 64 at most.
fn slug_of(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug: String = words.collect::<Vec<_>>().join("-").chars().take(64).collect();
    if slug.is_empty() { "model".to_owned() } else { slug }
}

fn digest(file: &mut File, of_bytes: u64, progress: &mut dyn FnMut(Progress)) -> io::Result<String> {
    file.rewind()?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hex::encode(hash.finalize()));
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
        progress(Progress { bytes, of_bytes });
    }
}

fn write_folder(models: &Path, entry: &Entry, tokenizer: &[u8], template: &str) -> io::Result<()> {
    fs::create_dir_all(models)?;
    let temporary = tempfile::Builder::new().prefix(".import-").tempdir_in(models)?;
    let entry_json = serde_json::to_vec_pretty(entry)?;
    let files = [
        (TOKENIZER_FILE, tokenizer),
        (TEMPLATE_FILE, template.as_bytes()),
        (ENTRY_FILE, entry_json.as_slice()),
    ];
    for (name, bytes) in files {
        let mut file = File::create(temporary.path().join(name))?;
        file.write_all(bytes)?;
        file.sync_all()?;
    }
    match fs::rename(temporary.path(), models.join(&entry.slug)) {
        Ok(()) => {
            // The folder has its name now; there is nothing left to remove.
            let _ = temporary.keep();
            Ok(())
        }
        // Somebody else imported the same model meanwhile; what lies there is checked next.
        Err(_) if models.join(&entry.slug).exists() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Links or copies the weights into the folder, whole or not at all.
fn keep_weights(gguf: &Path, file: &mut File, dir: &Path) -> io::Result<()> {
    let place = dir.join(WEIGHTS_FILE);
    if place.exists() || fs::hard_link(gguf, &place).is_ok() {
        return Ok(());
    }
    let mut copy = tempfile::NamedTempFile::new_in(dir)?;
    file.rewind()?;
    io::copy(file, &mut copy)?;
    copy.as_file().sync_all()?;
    copy.persist(&place)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_its_quantisation_and_becomes_a_slug() {
        for (file, quantisation, name, slug) in [
            ("/x/SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1", "SmolLM2-135M-Instruct", "smollm2-135m-instruct"),
            ("qwen2.5-7b-q4_k_m.gguf", "Q4_K_M", "qwen2.5-7b", "qwen2-5-7b"),
            ("Q8_0.gguf", "Q8_0", "Q8_0", "q8-0"),
            ("../../モデル.gguf", "F16", "モデル", "model"),
        ] {
            assert_eq!(name_of(Path::new(file), quantisation), name);
            assert_eq!(slug_of(name), slug);
        }
    }
}
