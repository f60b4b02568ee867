//! The rasters of the icons, drawn from their SVG masters.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// The masters of the tray's shapes, without `.svg`. The tray embeds each in every size of [`TRAY_SIZES`].
const TRAY: [&str; 5] = ["serving", "resting", "off", "changing", "needs-you"];
/// What panels ask for, in pixels: 16 to 24 at 100%, 32 and 48 at 200%.
const TRAY_SIZES: [u32; 4] = [16, 22, 32, 48];
/// The window's and the menu entry's icon, in pixels.
const APP_SIZES: [u32; 4] = [32, 128, 256, 512];

/// Draws every raster again.
///
/// # Errors
/// When a master cannot be read or a raster cannot be written.
pub fn run() -> anyhow::Result<()> {
    for (file, png) in rasters()? {
        std::fs::write(&file, png).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

fn rasters() -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let icons = Path::new(env!("CARGO_MANIFEST_DIR")).join("../icons");
    let mut drawn = Vec::new();
    for name in TRAY {
        let tree = master(&icons.join(format!("tray/{name}.svg")))?;
        for size in TRAY_SIZES {
            drawn.push((icons.join(format!("tray/{name}-{size}.png")), png(&tree, size)?));
        }
    }
    let tree = master(&icons.join("app/wakati.svg"))?;
    for size in APP_SIZES {
        drawn.push((icons.join(format!("app/wakati-{size}.png")), png(&tree, size)?));
    }
    Ok(drawn)
}

fn master(file: &Path) -> anyhow::Result<Tree> {
    let svg = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Tree::from_data(&svg, &Options::default()).with_context(|| format!("cannot draw {}", file.display()))
}

fn png(tree: &Tree, size: u32) -> anyhow::Result<Vec<u8>> {
    let mut pixels = Pixmap::new(size, size).context("an icon of no size")?;
    let scale = size as f32 / tree.size().width();
    resvg::render(tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    Ok(pixels.encode_png()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_rasters_are_those_of_the_masters() {
        for (file, png) in rasters().unwrap() {
            let committed = std::fs::read(&file).unwrap();
            assert!(committed == png, "{} is stale: run `cargo xtask icons`", file.display());
        }
    }
}
