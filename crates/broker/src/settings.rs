//! The broker's settings: `broker.toml` in the data folder, every line of it optional.

use std::path::Path;
use std::time::Duration;

use toml::{Table, Value};
use wakati_protocol::money::{NanoUsd, Price, Prices};

/// The highest price that may be allowed, in dollars for a million tokens.
const MOST_DOLLARS: i64 = 1_000_000;

/// What an operator may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `first_token_seconds`: how long a node may read the prompt. 60.
    pub first_token: Duration,
    /// `token_gap_seconds`: how long a node may be silent between tokens. 20.
    pub token_gap: Duration,
    /// `queue_seconds`: how long a request waits for a free slot before it is told to try again. 5.
    pub queue: Duration,
    /// `replacement_seconds`: how long an interrupted answer waits for another node. 10.
    pub replacement: Duration,
    /// `migrations`: how often an answer may move to another node. 3.
    pub migrations: u32,
    /// `job_seconds`: how long a request may take in all, once it has a node. 3600.
    pub job: Duration,
    /// `highest_price_dollars`: dollars for a million tokens; what asks more for its prompt or its answer gets no
    /// work. 20, and up to nine decimals: `0.5`.
    pub highest_price: Price,
    /// `absorption_percent`: how much the platform may add to what a request pays when dearer nodes finish it or
    /// read it again, in percent of its hold. 200. An owner gets 70% for reading a prompt again, so at 200 an
    /// answer that has begun moves on at least twice at equal prices, however long its prompt is. An owner who is
    /// also the consumer would gain from what is above 30: lower it where owners are not known.
    pub absorption_percent: u32,
    /// `default_output_tokens`: the limit of a request that names none. 1024.
    pub default_output_tokens: u32,
    /// `credit_window_tokens`: how many tokens a node may be ahead of the consumer. 64.
    pub credit_window: u32,
    /// `stalled_consumer_seconds`: how long a consumer may leave text unread before its request ends. 60.
    pub stalled_consumer: Duration,
    /// `drain_seconds`: how long running answers may take when the broker ends. 20.
    pub drain: Duration,
    /// `beat_milliseconds`: how often nodes show that they live. 5000.
    pub beat: Duration,
    /// `receipt_resend_seconds`: how often receipts are sent again until acknowledged. 10.
    pub receipt_resend: Duration,
    /// `settle_again_seconds`: how often jobs are settled whose settlement failed. 10.
    pub settle_again: Duration,
    /// `body_kibibytes`: the largest request body. 4096.
    pub body_bytes: usize,
    /// `most_nodes`: nodes connected at the same time. 10000.
    pub most_nodes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            first_token: Duration::from_secs(60),
            token_gap: Duration::from_secs(20),
            queue: Duration::from_secs(5),
            replacement: Duration::from_secs(10),
            migrations: 3,
            job: Duration::from_secs(3600),
            highest_price: Price(20 * NanoUsd::DOLLAR.0),
            absorption_percent: 200,
            default_output_tokens: 1024,
            credit_window: 64,
            stalled_consumer: Duration::from_secs(60),
            drain: Duration::from_secs(20),
            beat: Duration::from_millis(5000),
            receipt_resend: Duration::from_secs(10),
            settle_again: Duration::from_secs(10),
            body_bytes: 4 << 20,
            most_nodes: 10_000,
        }
    }
}

impl Settings {
    /// Reads the file if there is one. What cannot be read keeps its default and is told in one sentence each.
    #[must_use]
    pub fn load(file: &Path) -> (Self, Vec<String>) {
        match std::fs::read_to_string(file) {
            Ok(text) => Self::read(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (Self::default(), Vec::new()),
            Err(error) => (Self::default(), vec![format!("{} cannot be read: {error}", file.display())]),
        }
    }

    /// Reads the text of a settings file.
    #[must_use]
    pub fn read(text: &str) -> (Self, Vec<String>) {
        let mut settings = Self::default();
        let table: Table = match text.parse() {
            Ok(table) => table,
            Err(error) => {
                return (settings, vec![format!("broker.toml is not TOML, so it is left alone: {error}")]);
            }
        };
        let notices = table.iter().filter_map(|(name, value)| settings.set(name, value).err()).collect();
        (settings, notices)
    }

    /// The most that a node may ask.
    #[must_use]
    pub fn ceiling(&self) -> Prices {
        Prices { input: self.highest_price, output: self.highest_price }
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let number = |low: u64, high: u64| {
            let given = value.as_integer().and_then(|n| u64::try_from(n).ok());
            given
                .filter(|n| (low..=high).contains(n))
                .ok_or(format!("{name} must be a whole number from {low} to {high}; its default holds"))
        };
        let seconds = |low| number(low, 86_400).map(Duration::from_secs);
        // Every upper bound is within `u32`.
        let count = |low, high: u32| number(low, high.into()).map(|n| n as u32);
        match name {
            "first_token_seconds" => self.first_token = seconds(1)?,
            "token_gap_seconds" => self.token_gap = seconds(1)?,
            "queue_seconds" => self.queue = seconds(0)?,
            "replacement_seconds" => self.replacement = seconds(0)?,
            "migrations" => self.migrations = count(0, 100)?,
            "job_seconds" => self.job = seconds(1)?,
            "highest_price_dollars" => self.highest_price = dollars(name, value)?,
            "absorption_percent" => self.absorption_percent = count(0, 1000)?,
            "default_output_tokens" => self.default_output_tokens = count(1, 1 << 20)?,
            "credit_window_tokens" => self.credit_window = count(1, 4096)?,
            "stalled_consumer_seconds" => self.stalled_consumer = seconds(1)?,
            "drain_seconds" => self.drain = seconds(0)?,
            "beat_milliseconds" => self.beat = Duration::from_millis(number(50, 60_000)?),
            "receipt_resend_seconds" => self.receipt_resend = seconds(1)?,
            "settle_again_seconds" => self.settle_again = seconds(1)?,
            "body_kibibytes" => self.body_bytes = count(1, 1 << 20)? as usize * 1024,
            "most_nodes" => self.most_nodes = count(1, 1 << 20)? as usize,
            _ => return Err(format!("{name} is not a setting of the broker")),
        }
        Ok(())
    }
}

/// Exact dollars: what TOML writes without an exponent has all its decimals.
fn dollars(name: &str, value: &Value) -> Result<Price, String> {
    let amount = match value {
        Value::Integer(_) | Value::Float(_) => value.to_string().parse().ok(),
        Value::String(_) | Value::Boolean(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    };
    amount
        .filter(|NanoUsd(nano)| (0..=MOST_DOLLARS * NanoUsd::DOLLAR.0).contains(nano))
        .map(|NanoUsd(nano)| Price(nano))
        .ok_or(format!("{name} must be dollars from 0 to {MOST_DOLLARS}; its default holds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_value_keeps_its_default_and_is_told() {
        let (settings, notices) = Settings::read(
            "token_gap_seconds = 7\nmigrations = -1\ncredit_window_tokens = \"many\"\nspeed = 9",
        );
        assert_eq!(settings, Settings { token_gap: Duration::from_secs(7), ..Settings::default() });
        assert_eq!(notices.len(), 3);
    }

    #[test]
    fn a_price_is_read_exactly() {
        for (text, nano) in [("20", 20_000_000_000), ("0.5", 500_000_000), ("0", 0), ("0.000000001", 1)] {
            let (settings, notices) = Settings::read(&format!("highest_price_dollars = {text}"));
            assert_eq!((settings.highest_price, notices.len()), (Price(nano), 0), "{text}: {notices:?}");
        }
        for bad in ["-1", "1e300", "nan", "\"5\"", "2000000", "true"] {
            let (settings, notices) = Settings::read(&format!("highest_price_dollars = {bad}"));
            assert_eq!((settings, notices.len()), (Settings::default(), 1), "{bad}");
        }
    }

    #[test]
    fn what_is_not_toml_changes_nothing() {
        let (settings, notices) = Settings::read("= = =");
        assert_eq!(settings, Settings::default());
        assert_eq!(notices.len(), 1);
    }
}
