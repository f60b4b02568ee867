//! The five shapes as pixels, in the sizes that panels ask for.

use std::io::Cursor;

use wakati_protocol::desk::Shape;

/// One raster, 8-bit RGBA, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    pub width: u32,
    pub height: u32,
    pub rgba: Vec<u8>,
}

macro_rules! sizes {
    ($shape:literal) => {
        [
            include_bytes!(concat!("../../../icons/tray/", $shape, "-16.png")).as_slice(),
            include_bytes!(concat!("../../../icons/tray/", $shape, "-22.png")).as_slice(),
            include_bytes!(concat!("../../../icons/tray/", $shape, "-32.png")).as_slice(),
            include_bytes!(concat!("../../../icons/tray/", $shape, "-48.png")).as_slice(),
        ]
    };
}

/// The shape in every size, smallest first.
pub fn rasters(shape: Shape) -> Vec<Raster> {
    let files = match shape {
        Shape::Serving => sizes!("serving"),
        Shape::Resting => sizes!("resting"),
        Shape::Off => sizes!("off"),
        Shape::Changing => sizes!("changing"),
        Shape::NeedsYou => sizes!("needs-you"),
    };
    // The files are part of this program, and a test reads each.
    files.iter().filter_map(|png| decode(png)).collect()
}

fn decode(file: &[u8]) -> Option<Raster> {
    let mut reader = png::Decoder::new(Cursor::new(file)).read_info().ok()?;
    let mut rgba = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut rgba).ok()?;
    (frame.color_type == png::ColorType::Rgba && frame.bit_depth == png::BitDepth::Eight).then_some(Raster {
        width: frame.width,
        height: frame.height,
        rgba,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [Shape; 5] = [Shape::Serving, Shape::Resting, Shape::Off, Shape::Changing, Shape::NeedsYou];

    #[test]
    fn every_shape_has_every_size() {
        for shape in SHAPES {
            let sizes: Vec<_> = rasters(shape).iter().map(|raster| raster.width).collect();
            assert_eq!(sizes, [16, 22, 32, 48], "{shape:?}");
        }
    }

    #[test]
    fn shapes_differ_without_their_colour() {
        let inked =
            |shape| -> Vec<bool> { rasters(shape)[1].rgba.chunks(4).map(|pixel| pixel[3] > 127).collect() };
        for (place, one) in SHAPES.iter().enumerate() {
            for other in &SHAPES[place + 1..] {
                let differing = inked(*one).iter().zip(inked(*other)).filter(|(a, b)| **a != *b).count();
                assert!(differing > 22, "{one:?} and {other:?} differ in {differing} pixels of 484");
            }
        }
    }
}
