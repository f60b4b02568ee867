//! Windows programs under Wine or Proton: the process is Wine's loader, and its first word names the program.

use std::path::Path;

/// The loaders' names: Wine starts every Windows program through one of them.
const LOADERS: [&str; 5] = ["wine", "wine64", "wine-preloader", "wine64-preloader", "wine-loader"];

/// The Windows program's file, as Wine names it, or on our own file system where Wine shows that as drive `Z:`.
pub(crate) fn program(program: Option<&Path>, argv: &[String]) -> Option<String> {
    let loader = program?.file_name()?.to_str()?;
    if !LOADERS.contains(&loader) {
        return None;
    }
    let file = argv.iter().find(|word| word.to_ascii_lowercase().ends_with(".exe"))?;
    let is_system = file.get(1..).is_some_and(|rest| rest.to_ascii_lowercase().starts_with(":\\windows\\"));
    (!is_system).then(|| file.clone())
}

/// The program's name without its path and `.exe`.
pub(crate) fn name(file: &str) -> Option<String> {
    let name = file.rsplit(['/', '\\']).next()?;
    let name = name.get(..name.len().checked_sub(".exe".len())?)?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_windows_program_is_the_first_exe_that_is_not_windows_itself() {
        let of = |loader: &str, words: &[&str]| {
            let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            program(Some(Path::new(loader)), &argv)
        };
        let loader = "/opt/proton/bin/wine64-preloader";
        assert_eq!(of(loader, &["D:\\G\\g.EXE", "-x"]), Some("D:\\G\\g.EXE".into()));
        assert_eq!(of(loader, &["wine64", "/home/o/g.exe"]), Some("/home/o/g.exe".into()));
        assert_eq!(of(loader, &["C:\\windows\\system32\\services.exe"]), None);
        assert_eq!(of("/usr/bin/vim", &["g.exe"]), None);
        assert_eq!(of(loader, &[]), None);
        assert_eq!(name("D:\\G\\g.EXE"), Some("g".into()));
        assert_eq!(name(".exe"), None);
        assert_eq!(name("é"), None);
    }
}
