//! Start with the computer.
//!
//! On Linux the entry is written here and not by `auto-launch`: that crate (0.6) writes `Exec` without quotes, so that a
//! path with a space does not start, and always into `~/.config`, whatever `XDG_CONFIG_HOME` says.

use std::path::Path;

use crate::arguments::Switch;

/// Starts this program, hidden, with the computer from now on, or no longer.
///
/// # Errors
/// When the entry cannot be written or removed.
pub fn set(switch: Switch, home: &Path) -> anyhow::Result<()> {
    system::set(switch, &std::env::current_exe()?, home)
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::path::{Path, PathBuf};

    use anyhow::Context as _;

    use super::Switch;

    pub fn set(switch: Switch, program: &Path, home: &Path) -> anyhow::Result<()> {
        let file = folder(std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from), std::env::home_dir())
            .context("this system names no home folder")?
            .join("wakati.desktop");
        let done = match switch {
            Switch::On => write(&file, &entry(program, home)?),
            Switch::Off => remove(&file),
        };
        done.with_context(|| format!("cannot change {}", file.display()))
    }

    /// `$XDG_CONFIG_HOME/autostart`; relative values are ignored (XDG Base Directory Specification 0.8).
    pub fn folder(config: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
        let config = config.filter(|path| path.is_absolute()).or_else(|| Some(home?.join(".config")))?;
        Some(config.join("autostart"))
    }

    /// The entry (Desktop Entry Specification 1.5, Desktop Application Autostart Specification 0.5).
    pub fn entry(program: &Path, home: &Path) -> anyhow::Result<String> {
        let words = [program.as_os_str(), "--hidden".as_ref(), "--home".as_ref(), home.as_os_str()];
        let quoted = words
            .iter()
            .map(|word| word.to_str().map(quote).context("a path is not valid UTF-8"))
            .collect::<anyhow::Result<Vec<_>>>()?;
        Ok(format!(
            "[Desktop Entry]\nType=Application\nName=Wakati\nExec={}\nIcon=wakati\nTerminal=false\n\
             X-GNOME-Autostart-enabled=true\n",
            quoted.join(" ")
        ))
    }

    /// One argument of `Exec`: quoted as an argument, `%` doubled, and then escaped as a string of the file.
    fn quote(word: &str) -> String {
        let mut argument = String::from("\"");
        for letter in word.chars() {
            match letter {
                '"' | '`' | '$' | '\\' => argument.extend(['\\', letter]),
                '%' => argument.push_str("%%"),
                _ => argument.push(letter),
            }
        }
        argument.push('"');
        argument.replace('\\', "\\\\").replace('\n', "\\n")
    }

    fn write(file: &Path, entry: &str) -> io::Result<()> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(file, entry)
    }

    fn remove(file: &Path) -> io::Result<()> {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    use anyhow::Context as _;
    use auto_launch::AutoLaunchBuilder;

    use super::Switch;

    pub fn set(switch: Switch, program: &Path, home: &Path) -> anyhow::Result<()> {
        let entry = AutoLaunchBuilder::new()
            .set_app_name("Wakati")
            .set_app_path(program.to_str().context("the program's path is not valid text")?)
            .set_args(&["--hidden", "--home", home.to_str().context("the home's path is not valid text")?])
            .build()?;
        match switch {
            Switch::On => entry.enable()?,
            Switch::Off if entry.is_enabled()? => entry.disable()?,
            Switch::Off => {}
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::path::PathBuf;

    use super::system::{entry, folder};
    use super::*;

    fn exec(program: &str) -> String {
        let entry = entry(Path::new(program), Path::new("/h")).unwrap();
        entry.lines().find_map(|line| line.strip_prefix("Exec=")).unwrap().to_owned()
    }

    #[test]
    fn a_path_with_a_space_is_one_argument() {
        assert_eq!(exec("/opt/My Games/wakati"), r#""/opt/My Games/wakati" "--hidden" "--home" "/h""#);
    }

    #[test]
    fn signs_that_mean_something_to_a_launcher_are_escaped() {
        // The doubled backslashes are the specification's own example: an argument's escape inside a string's.
        assert_eq!(exec("/a$b"), r#""/a\\$b" "--hidden" "--home" "/h""#);
        assert_eq!(exec("/a`b\"c"), r#""/a\\`b\\"c" "--hidden" "--home" "/h""#);
        assert_eq!(exec("/a\\b"), r#""/a\\\\b" "--hidden" "--home" "/h""#);
        assert_eq!(exec("/100%"), r#""/100%%" "--hidden" "--home" "/h""#);
    }

    #[test]
    fn the_folder_for_settings_is_honoured() {
        let home = || Some(PathBuf::from("/home/a"));
        assert_eq!(folder(Some("/x".into()), home()), Some("/x/autostart".into()));
        assert_eq!(folder(None, home()), Some("/home/a/.config/autostart".into()));
        assert_eq!(folder(Some("relative".into()), home()), Some("/home/a/.config/autostart".into()));
        assert_eq!(folder(None, None), None);
    }
}
