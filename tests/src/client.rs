//! The unmodified openai package from PyPI, run by `clients/chat.py`.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A running client; it prints one JSON object a line.
pub struct Client {
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Client {
    /// Starts `clients/chat.py` with these arguments.
    ///
    /// # Errors
    /// When `WAKATI_PYTHON` does not name an interpreter that has the package.
    pub fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        let python = std::env::var_os("WAKATI_PYTHON")
            .context("WAKATI_PYTHON names no Python with openai; cargo xtask test sets it")?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/chat.py");
        let mut child = Command::new(python)
            .arg(script)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().context("no output")?;
        Ok(Self { lines: BufReader::new(output).lines(), _child: child })
    }

    /// The next object; `None` when the client has ended.
    ///
    /// # Errors
    /// When it prints something else.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        let Some(line) = self.lines.next_line().await? else { return Ok(None) };
        Ok(Some(serde_json::from_str(&line).with_context(|| format!("the client printed {line:?}"))?))
    }
}
