//! Which processes of a test are alive, told by a word in their environment.

/// A process that carries the test's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    pub id: u32,
    pub name: String,
}

/// All processes whose environment holds exactly this `NAME=value`. Processes of other users are not seen.
#[must_use]
pub fn with_environment(name: &str, value: &str) -> Vec<Marked> {
    let entry = format!("{name}={value}");
    let Ok(processes) = std::fs::read_dir("/proc") else { return vec![] };
    processes
        .filter_map(Result::ok)
        .filter_map(|process| {
            let id = process.file_name().to_str()?.parse().ok()?;
            let environment = std::fs::read(process.path().join("environ")).ok()?;
            let carries = environment.split(|byte| *byte == 0).any(|word| word == entry.as_bytes());
            let name = std::fs::read_to_string(process.path().join("comm")).ok()?.trim().to_owned();
            carries.then_some(Marked { id, name })
        })
        .collect()
}
