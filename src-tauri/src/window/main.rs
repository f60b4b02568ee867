//! `wakati-window`: the window, a process of its own so that no WebView and none of its libraries are in memory while
//! it is closed. It shows what the running Wakati says at its desk and passes the owner's wishes on. It decides nothing.

#![cfg_attr(windows, windows_subsystem = "windows")]

mod news;
mod size;

use std::path::PathBuf;
use std::process::Command;

use clap::Parser as _;
use tauri::{AppHandle, State, WebviewUrl, WebviewWindow, WebviewWindowBuilder, WindowEvent};
use tracing_subscriber::EnvFilter;
use wakati_desktop::arguments::WindowArguments;
use wakati_desktop::window_process::words;
use wakati_node::desk;
use wakati_protocol::desk::{Answer, Ask};

use news::{Latest, News};

/// The window's name, which `capabilities/home.json` gives its rights.
const LABEL: &str = "home";

/// The folder of the Wakati that this window shows.
struct Home(PathBuf);

fn main() -> anyhow::Result<()> {
    let arguments = WindowArguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let home = wakati_node::home::place(arguments.home)?;
    tauri::Builder::default()
        .manage(Home(home.clone()))
        .manage(Latest::default())
        .invoke_handler(tauri::generate_handler![latest, ask, start])
        .setup(move |app| {
            let window = open(app.handle(), home.clone())?;
            let handle = app.handle().clone();
            tauri::async_runtime::spawn(news::watch(handle, home));
            // It ends with the process: a read of standard input cannot be called off.
            std::thread::spawn(move || obey(&window));
            Ok(())
        })
        .run(tauri::generate_context!())?;
    Ok(())
}

/// Opens the one window, as large as it was when it was last closed.
fn open(app: &AppHandle, home: PathBuf) -> tauri::Result<WebviewWindow> {
    let size = size::remembered(&home);
    let window = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::default())
        .title("Wakati")
        .inner_size(size.width, size.height)
        .min_inner_size(size::LEAST.width, size::LEAST.height)
        .on_navigation(|url| url.scheme() == "tauri" || url.host_str() == Some("tauri.localhost"))
        .build()?;
    let watched = window.clone();
    window.on_window_event(move |event| {
        if let WindowEvent::CloseRequested { .. } = event {
            size::remember(&home, &watched);
        }
    });
    Ok(window)
}

/// Does what the shell says on standard input. When the shell is gone the window stays, and says so.
fn obey(window: &WebviewWindow) {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let done = match line.as_str() {
            words::PRESENT => window.unminimize().and_then(|()| window.set_focus()),
            words::CLOSE => window.close(),
            _ => Ok(()),
        };
        if let Err(error) = done {
            tracing::warn!(%error, "the window does not obey");
        }
    }
}

/// What the page shows before the first change.
#[tauri::command]
fn latest(latest: State<'_, Latest>) -> News {
    latest.get()
}

/// Passes a wish of the page to the node.
#[tauri::command]
async fn ask(home: State<'_, Home>, ask: Ask) -> Result<Answer, String> {
    desk::ask(&home.0, &ask).await.map_err(|error| error.to_string())
}

/// Starts Wakati again, without a second window.
#[tauri::command]
fn start(home: State<'_, Home>) -> Result<(), String> {
    let program = std::env::current_exe()
        .map(|own| own.with_file_name(format!("wakati{}", std::env::consts::EXE_SUFFIX)))
        .map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(["--hidden".as_ref(), "--home".as_ref(), home.0.as_os_str()])
        .spawn()
        .map_err(|error| error.to_string())?;
    // Reaps it, should it end before the window does.
    std::thread::spawn(move || child.wait());
    Ok(())
}
