//! Adding up what the test runners report.

use std::path::Path;

use anyhow::Context as _;

/// How many tests passed, failed and were skipped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Tally {
    /// Adds a line of libtest's when it is a summary: `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
    pub fn add_libtest(&mut self, line: &str) {
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split("; ") {
            match count.split_once(' ').map(|(number, what)| (number.parse::<u64>(), what)) {
                Some((Ok(number), "passed")) => self.passed += number,
                Some((Ok(number), "failed")) => self.failed += number,
                // Libtest's "filtered out" are the tests that this run was told to leave alone.
                Some((Ok(number), "ignored" | "filtered out")) => self.skipped += number,
                _ => {}
            }
        }
    }

    /// Adds the report that vitest wrote with `--reporter=json`.
    ///
    /// # Errors
    /// When the report is not there or lacks its counts.
    pub fn add_vitest(&mut self, report: &Path) -> anyhow::Result<()> {
        let report = std::fs::read_to_string(report).context("vitest wrote no report")?;
        let report: serde_json::Value = serde_json::from_str(&report)?;
        let count =
            |name: &str| report[name].as_u64().with_context(|| format!("vitest's report lacks {name}"));
        self.passed += count("numPassedTests")?;
        self.failed += count("numFailedTests")?;
        self.skipped += count("numPendingTests")? + count("numTodoTests")?;
        Ok(())
    }

    /// Adds a step that either worked or did not.
    pub fn add_step(&mut self, worked: bool) {
        if worked { self.passed += 1 } else { self.failed += 1 }
    }

    /// `N passed, N failed, N skipped`.
    pub fn line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_add_up_and_other_lines_do_not_count() {
        let mut tally = Tally::default();
        for line in [
            "running 4 tests",
            "test money::tests::a_cost_is_rounded_down_once ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s",
        ] {
            tally.add_libtest(line);
        }
        assert_eq!(tally, Tally { passed: 4, failed: 2, skipped: 3 });
        assert_eq!(tally.line(), "4 passed, 2 failed, 3 skipped");
    }

    #[test]
    fn a_report_of_vitest_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let report = r#"{"numTotalTests":6,"numPassedTests":4,"numFailedTests":1,"numPendingTests":1,"numTodoTests":0}"#;
        std::fs::write(file.path(), report).unwrap();
        let mut tally = Tally::default();
        tally.add_vitest(file.path()).unwrap();
        assert_eq!(tally, Tally { passed: 4, failed: 1, skipped: 1 });
    }
}
