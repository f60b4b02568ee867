//! The model files of this machine: `<models>/<slug>/` with its catalogue entry and its weights.

use std::path::{Path, PathBuf};

use wakati_catalogue::{Entry, WEIGHTS_FILE};

/// A model that is ready to load.
#[derive(Debug, Clone)]
pub struct Model {
    pub entry: Entry,
    pub weights: PathBuf,
}

/// A model that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ModelProblem {
    #[error("there is no model {slug} in {models}", models = .models.display())]
    NotHere { slug: String, models: PathBuf },
    #[error("the catalogue entry of {slug} cannot be used: {cause}")]
    BadEntry { slug: String, cause: String },
    #[error("the weights of {slug} are missing; import the model again")]
    NoWeights { slug: String },
    /// The digest is checked once, at import. A file of another size has surely changed since.
    #[error(
        "the weights of {slug} have {found} bytes where {expected} were imported; import the model again"
    )]
    Changed { slug: String, found: u64, expected: u64 },
}

/// Finds a model by its slug and checks that its weights still look as they did at import.
///
/// # Errors
/// When anything of it is missing or changed.
pub fn find_model(models: &Path, slug: &str) -> Result<Model, ModelProblem> {
    let folder = models.join(slug);
    // A slug is one plain folder name, whatever a settings file says.
    let plain = !slug.is_empty() && !slug.starts_with('.') && !slug.contains(['/', '\\']);
    if !plain || !folder.is_dir() {
        return Err(ModelProblem::NotHere { slug: slug.into(), models: models.into() });
    }
    let entry = Entry::load(&folder)
        .map_err(|cause| ModelProblem::BadEntry { slug: slug.into(), cause: cause.to_string() })?;
    let weights = folder.join(WEIGHTS_FILE);
    let found = std::fs::metadata(&weights).map_err(|_| ModelProblem::NoWeights { slug: slug.into() })?.len();
    if found != entry.weights_bytes {
        return Err(ModelProblem::Changed { slug: slug.into(), found, expected: entry.weights_bytes });
    }
    Ok(Model { entry, weights })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_that_leaves_the_folder_is_not_found() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("models")).unwrap();
        for slug in ["", "..", "../models", "/etc", "a/b", "absent"] {
            let found = find_model(&home.path().join("models"), slug);
            assert!(matches!(found, Err(ModelProblem::NotHere { .. })), "{slug}");
        }
    }
}
