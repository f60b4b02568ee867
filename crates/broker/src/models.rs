//! The models that this broker sells: the catalogue's entries with their text side loaded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::SystemTime;

use wakati_catalogue::{Entry, load_all};

use crate::text::Text;

/// One model.
pub struct Model {
    pub entry: Entry,
    pub text: Text,
    /// When the broker loaded it, in seconds since 1970-01-01 UTC.
    pub since: i64,
}

/// All models by slug. `model add` puts new ones into the folder while the broker runs.
pub struct Models {
    folder: PathBuf,
    loaded: RwLock<Loaded>,
}

#[derive(Default)]
struct Loaded {
    /// The folder's modification time at the last look.
    seen: Option<SystemTime>,
    models: BTreeMap<String, Arc<Model>>,
}

impl Models {
    /// Loads what is in the folder.
    #[must_use]
    pub fn open(folder: PathBuf) -> Self {
        let models = Self { folder, loaded: RwLock::default() };
        models.look_again();
        models
    }

    /// Loads what has come into the folder since the last look, and forgets what has gone. Reads files.
    pub fn look_again(&self) {
        let changed = changed_at(&self.folder);
        if changed.is_some() && self.read().seen == changed {
            return;
        }
        let mut models = BTreeMap::new();
        for entry in load_all(&self.folder) {
            let known = self.get(&entry.slug).filter(|model| model.entry == entry);
            let model = match known {
                Some(model) => model,
                None => match Text::load(&self.folder, &entry) {
                    Ok(text) => {
                        tracing::info!(model = entry.slug, digest = %entry.digest, "model loaded");
                        Arc::new(Model { entry, text, since: crate::clock::now().0 / 1000 })
                    }
                    Err(error) => {
                        tracing::warn!(model = entry.slug, %error, "model left out");
                        continue;
                    }
                },
            };
            models.insert(model.entry.slug.clone(), model);
        }
        let mut loaded = self.loaded.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        *loaded = Loaded { seen: changed, models };
    }

    /// The model with this name.
    #[must_use]
    pub fn get(&self, slug: &str) -> Option<Arc<Model>> {
        self.read().models.get(slug).cloned()
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Model>> {
        self.read().models.values().cloned().collect()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Loaded> {
        self.loaded.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn changed_at(folder: &Path) -> Option<SystemTime> {
    std::fs::metadata(folder).and_then(|folder| folder.modified()).ok()
}
