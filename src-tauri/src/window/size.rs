//! The window's size, kept from one time to the next.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tauri::WebviewWindow;

/// Width and height of the inside, in logical pixels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Size {
    pub width: f64,
    pub height: f64,
}

/// The first size.
const FIRST: Size = Size { width: 880.0, height: 600.0 };
/// The least: the page loses nothing down to 320 pixels.
pub const LEAST: Size = Size { width: 320.0, height: 320.0 };
/// More than any screen has.
const MOST: Size = Size { width: 16_384.0, height: 16_384.0 };

/// The size at the last closing, else the first size.
pub fn remembered(home: &Path) -> Size {
    let kept = std::fs::read(file(home)).ok().and_then(|json| serde_json::from_slice::<Size>(&json).ok());
    kept.map_or(FIRST, |size| Size {
        width: size.width.clamp(LEAST.width, MOST.width),
        height: size.height.clamp(LEAST.height, MOST.height),
    })
}

/// Keeps the window's size, unless it fills the screen.
pub fn remember(home: &Path, window: &WebviewWindow) {
    if window.is_maximized().unwrap_or(true) {
        return;
    }
    let (Ok(size), Ok(scale)) = (window.inner_size(), window.scale_factor()) else { return };
    let size = size.to_logical::<f64>(scale);
    let kept = serde_json::to_vec(&Size { width: size.width, height: size.height });
    if let Err(error) = kept.map_err(std::io::Error::from).and_then(|json| std::fs::write(file(home), json)) {
        tracing::warn!(%error, "cannot keep the window's size");
    }
}

fn file(home: &Path) -> PathBuf {
    home.join("window.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_cannot_be_read_is_the_first_size() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(remembered(home.path()), FIRST);
        std::fs::write(file(home.path()), "{\"width\": \"wide\"}").unwrap();
        assert_eq!(remembered(home.path()), FIRST);
    }

    #[test]
    fn an_absurd_size_is_held_within_bounds() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(file(home.path()), r#"{"width": 1, "height": 1e9}"#).unwrap();
        assert_eq!(remembered(home.path()), Size { width: LEAST.width, height: MOST.height });
    }
}
