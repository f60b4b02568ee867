//! Benches: figures, their bars, and what the machine was doing beside.

use std::process::ExitCode;

use serde_json::json;

/// One figure; it must stay under its bar, when it has one.
#[derive(Debug, Clone)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub bar: Option<f64>,
    pub unit: &'static str,
}

impl Figure {
    fn verdict(&self) -> &'static str {
        match self.bar {
            None => "",
            Some(bar) if self.value < bar => "ok",
            Some(_) => "short",
        }
    }
}

/// The value under which this share of the values lies; the nearest rank (NIST Handbook 148, 7.2.6.2, without
/// interpolation). 0 when there are none.
#[must_use]
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// Prints the figures as a table or as JSON, and fails when a bar is missed.
#[must_use]
pub fn report(bench: &str, figures: &[Figure], as_json: bool) -> ExitCode {
    let beside = beside();
    if as_json {
        let rows: Vec<_> = figures
            .iter()
            .map(|figure| {
                json!({
                    "figure": figure.name, "value": figure.value, "bar": figure.bar,
                    "unit": figure.unit, "verdict": figure.verdict(),
                })
            })
            .collect();
        println!("{}", json!({"bench": bench, "beside": beside, "figures": rows}));
    } else {
        println!("{bench}, beside {beside}");
        println!("{:<58} {:>18} {:>20}", "figure", "value", "bar");
        for figure in figures {
            let told = |value: f64| match value {
                small if small < 10.0 => format!("{small:.3} {}", figure.unit),
                large => format!("{large:.0} {}", figure.unit),
            };
            let bar = figure.bar.map_or_else(String::new, |bar| format!("< {}", told(bar)));
            let value = told(figure.value);
            println!("{:<58} {value:>18} {bar:>20}  {}", figure.name, figure.verdict());
        }
    }
    let missed = figures.iter().any(|figure| figure.verdict() == "short");
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Cores and load, in words.
fn beside() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores, load {load} over the last minute")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_value_at_the_nearest_rank() {
        // The example of the nearest-rank method: ordered list 15, 20, 35, 40, 50.
        let values = [35.0, 20.0, 15.0, 50.0, 40.0];
        for (share, value) in [(0.05, 15.0), (0.3, 20.0), (0.4, 20.0), (0.5, 35.0), (1.0, 50.0)] {
            assert!((percentile(&values, share) - value).abs() < f64::EPSILON, "{share}");
        }
    }

    #[test]
    fn a_figure_at_its_bar_is_short() {
        let figure = |value| Figure { name: String::new(), value, bar: Some(10.0), unit: "ms" };
        assert_eq!(figure(9.9).verdict(), "ok");
        assert_eq!(figure(10.0).verdict(), "short");
    }
}
