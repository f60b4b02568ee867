//! The window's page, read and clicked through WebKitWebDriver, which starts the window's program itself.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use serde_json::json;
use thirtyfour::{By, Capabilities, WebDriver, WebElement};
use tokio::process::Child;

use super::{Desktop, PATIENCE, until};

/// The system's look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Dark,
    Light,
}

/// A window that is open.
pub struct Page {
    driver: WebDriver,
    _server: Child,
}

impl Page {
    /// Opens a window of this program on the Wakati that runs in `home`.
    ///
    /// # Errors
    /// When WebKitWebDriver is not installed or no window opens.
    pub async fn open(desktop: &Desktop, look: Look, program: &Path, home: &Path) -> anyhow::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = desktop
            .command(Path::new("WebKitWebDriver"), home)
            .arg(format!("--port={port}"))
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .env("GTK_THEME", if look == Look::Dark { "Adwaita:dark" } else { "Adwaita" })
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("WebKitWebDriver is not installed")?;
        let mut capabilities = Capabilities::new();
        let options = json!({ "binary": program, "args": ["--home", home] });
        capabilities.set("webkitgtk:browserOptions", options)?;
        let address = format!("http://127.0.0.1:{port}");
        let driver =
            until("a window", PATIENCE, async || WebDriver::new(&address, capabilities.clone()).await.ok())
                .await?;
        Ok(Self { driver, _server: server })
    }

    /// Waits until the page's title is one that fits.
    ///
    /// # Errors
    /// When it is not in time; the message has the title.
    pub async fn title(&self, what: &str, fits: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        let mut seen = String::new();
        let found = until(what, PATIENCE, async || {
            seen = self.driver.find(By::Css("h1")).await.ok()?.text().await.ok()?;
            fits(&seen).then(|| seen.clone())
        })
        .await;
        found.with_context(|| format!("the title is {seen:?}"))
    }

    /// All text on the page.
    ///
    /// # Errors
    /// When the window has gone.
    pub async fn text(&self) -> anyhow::Result<String> {
        Ok(self.driver.find(By::Css("main")).await?.text().await?)
    }

    /// Clicks the button with this label.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn click(&self, label: &str) -> anyhow::Result<()> {
        Ok(self.button(label).await?.click().await?)
    }

    /// Waits for the button with this label.
    ///
    /// # Errors
    /// When there is none in time.
    pub async fn button(&self, label: &str) -> anyhow::Result<WebElement> {
        let path = format!("//button[normalize-space()='{label}']");
        until(label, PATIENCE, async || self.driver.find(By::XPath(&path)).await.ok()).await
    }

    /// Closes the window.
    ///
    /// # Errors
    /// When the driver has gone.
    pub async fn close(self) -> anyhow::Result<()> {
        Ok(self.driver.quit().await?)
    }
}
