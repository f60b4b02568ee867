//! Importing a real GGUF file. `WAKATI_TEST_MODEL` names it: SmolLM2-135M-Instruct in any quantisation.

#![allow(clippy::unwrap_used, reason = "these helpers are parts of tests")]

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tokenizers::Tokenizer;
use wakati_catalogue::{
    Entry, ImportError, KeepWeights, Options, TEMPLATE_FILE, TOKENIZER_FILE, WEIGHTS_FILE, import,
    import_with, load_all,
};

/// Made with `transformers` by `fixtures/make_token_ids.py`.
const TOKEN_IDS: &str = include_str!("fixtures/smollm2_token_ids.json");

#[derive(Deserialize)]
struct Fixture {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    text: String,
    ids: Vec<u32>,
}

fn model() -> PathBuf {
    std::env::var_os("WAKATI_TEST_MODEL").expect("WAKATI_TEST_MODEL is not set").into()
}

fn imported(models: &Path) -> Entry {
    import(&model(), models, Options { weights: KeepWeights::EntryOnly, ..Options::default() }).unwrap()
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn token_ids_equal_those_of_transformers() {
    let models = tempfile::tempdir().unwrap();
    let entry = imported(models.path());
    let tokenizer = Tokenizer::from_file(models.path().join(&entry.slug).join(TOKENIZER_FILE)).unwrap();
    let fixture: Fixture = serde_json::from_str(TOKEN_IDS).unwrap();
    assert!(fixture.rows.len() > 30);
    for Row { text, ids } in fixture.rows {
        assert_eq!(tokenizer.encode(text.as_str(), false).unwrap().get_ids(), ids, "{text:?}");
        assert_eq!(tokenizer.encode(text.as_str(), true).unwrap().get_ids(), ids, "{text:?}");
        assert_eq!(tokenizer.decode(&ids, false).unwrap(), text);
    }
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn an_entry_says_what_the_model_is() {
    let models = tempfile::tempdir().unwrap();
    let entry = imported(models.path());
    assert_eq!((entry.architecture.as_str(), entry.context, entry.vocabulary), ("llama", 8192, 49152));
    assert_eq!((entry.bos_id, entry.eos_id), (Some(1), 2));
    // <|endoftext|> and <|im_end|>, as in the published generation_config.json and chat template.
    assert_eq!(entry.stop_ids, [0, 2]);
    // 30 layers, 3 heads, keys and values of 64 elements, 4 bytes each.
    assert_eq!(entry.kv_bytes_per_token(), 46_080);
    let template = fs::read_to_string(models.path().join(&entry.slug).join(TEMPLATE_FILE)).unwrap();
    assert!(template.contains("<|im_start|>"));
    assert_eq!(Entry::load(&models.path().join(&entry.slug)).unwrap(), entry);
    assert_eq!(load_all(models.path()), [entry]);
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn importing_twice_changes_nothing_and_broker_and_node_agree() {
    let (broker, node) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let theirs = imported(broker.path());
    let mut last = None;
    let ours = import_with(&model(), node.path(), Options::default(), &mut |told| last = Some(told)).unwrap();
    let told = last.unwrap();
    assert_eq!((told.bytes, told.of_bytes), (ours.weights_bytes, ours.weights_bytes));
    assert_eq!(ours, theirs);
    assert_eq!(import(&model(), node.path(), Options::default()).unwrap(), ours);
    let weights = node.path().join(&ours.slug).join(WEIGHTS_FILE);
    assert_eq!(fs::metadata(weights).unwrap().len(), ours.weights_bytes);
    assert!(!broker.path().join(&ours.slug).join(WEIGHTS_FILE).exists());
    let named = Options { name: Some("Another name".to_owned()), ..Options::default() };
    let renamed = import(&model(), node.path(), named).unwrap();
    assert_eq!((renamed.slug.as_str(), renamed.digest), ("another-name", ours.digest));
    assert_eq!(fs::read_dir(node.path()).unwrap().count(), 2, "nothing temporary is left");
}

#[test]
#[ignore = "needs WAKATI_TEST_MODEL"]
fn a_file_that_is_cut_or_cannot_be_read_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    let bytes = fs::read(model()).unwrap();
    let half = folder.path().join("half.gguf");
    fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
    assert!(matches!(import(&half, &models, Options::default()), Err(ImportError::Gguf(_))));
    let nowhere = folder.path().join("nowhere.gguf");
    assert!(matches!(import(&nowhere, &models, Options::default()), Err(ImportError::Unreadable { .. })));
    let foreign = bytes.windows(6).position(|window| window == b"smollm").map(|at| {
        let mut bytes = bytes.clone();
        // The pre-tokenizer's name stands behind its key.
        let key = b"tokenizer.ggml.pre";
        let at = bytes[at..].windows(key.len()).position(|w| w == key).unwrap() + at + key.len() + 12;
        bytes[at..at + 6].copy_from_slice(b"gibber");
        bytes
    });
    let foreign_file = folder.path().join("foreign.gguf");
    fs::write(&foreign_file, foreign.unwrap()).unwrap();
    let error = import(&foreign_file, &models, Options::default()).unwrap_err();
    assert!(error.to_string().contains("gibber") && error.to_string().contains("tokenizer.json"), "{error}");
    assert!(!models.exists());
}
