//! Reads the window's configuration into the build, where the window is built.

fn main() {
    #[cfg(feature = "window")]
    tauri_build::build();
}
