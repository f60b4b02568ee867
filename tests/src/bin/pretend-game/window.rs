//! The game's window.

#[cfg(target_os = "linux")]
pub use x11::open;

/// There is none to open.
#[cfg(not(target_os = "linux"))]
pub fn open() -> anyhow::Result<()> {
    anyhow::bail!("a window is drawn on Linux only")
}

#[cfg(target_os = "linux")]
mod x11 {
    use anyhow::Context as _;
    use x11rb::connection::Connection as _;
    use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, CreateWindowAux, PropMode, WindowClass};
    use x11rb::rust_connection::RustConnection;
    use x11rb::wrapper::ConnectionExt as _;

    /// Opens a window that asks for the whole screen before it is shown (EWMH 1.5, `_NET_WM_STATE`). It closes with
    /// the connection.
    pub fn open() -> anyhow::Result<RustConnection> {
        let (server, screen) = x11rb::connect(None)?;
        let screen = server.setup().roots.get(screen).context("no screen")?.clone();
        let window = server.generate_id()?;
        let look = CreateWindowAux::new().background_pixel(screen.black_pixel);
        let (depth, class) = (x11rb::COPY_DEPTH_FROM_PARENT, WindowClass::INPUT_OUTPUT);
        server.create_window(
            depth,
            window,
            screen.root,
            0,
            0,
            320,
            200,
            0,
            class,
            x11rb::COPY_FROM_PARENT,
            &look,
        )?;
        let atom = |name: &str| anyhow::Ok(server.intern_atom(false, name.as_bytes())?.reply()?.atom);
        let (state, full) = (atom("_NET_WM_STATE")?, atom("_NET_WM_STATE_FULLSCREEN")?);
        server.change_property32(PropMode::REPLACE, window, state, AtomEnum::ATOM, &[full])?;
        let class = b"pretend-game\0Pretend Game\0";
        server.change_property8(PropMode::REPLACE, window, AtomEnum::WM_CLASS, AtomEnum::STRING, class)?;
        server.map_window(window)?;
        server.flush()?;
        Ok(server)
    }
}
