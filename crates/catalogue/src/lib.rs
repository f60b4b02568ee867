//! The catalogue: what a model is, said once, so that broker, node and worker mean the same thing.
//!
//! A model enters as a GGUF file and becomes a folder with an *entry* (`entry.json`): digests of the weights,
//! of the exact `tokenizer.json` and of the chat template, with the stop ids and the context length.
//! The entry's own digest is the model's identity.
//!
//! The file is taken for hostile: no length in it is believed before it is checked against the file's size.
//! This crate deliberately downloads nothing, loads no weights, and trusts nothing that a node says.

mod ggml;
pub mod gguf;

#[cfg(feature = "import")]
mod entry;
#[cfg(feature = "import")]
mod import;
#[cfg(feature = "import")]
mod tokenizer;

#[cfg(feature = "import")]
pub use entry::{BadEntry, ENTRY_FILE, Entry, TEMPLATE_FILE, TOKENIZER_FILE, WEIGHTS_FILE, load_all};
#[cfg(feature = "import")]
pub use import::{ImportError, KeepWeights, Options, Progress, import, import_with};
