//! The settings file. A value that cannot be used keeps its default and becomes a [`Problem`] that the owner sees.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml_edit::{DocumentMut, Value};
use wakati_protocol::money::{NanoUsd, Price, Prices};

use crate::home::write_private;

/// Everything that the owner can set, by the names in `settings.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `language`: of every sentence, `en` or `sw`. Default `en`.
    pub language: String,
    /// `[broker]`: whom to serve. Written by `wakati-node join`. Default: nobody.
    pub broker: Option<BrokerSettings>,
    /// `[model]`: what to serve.
    pub model: ModelSettings,
    /// `[prices] input`, `output`: what consumers pay, in dollars per million tokens, written as text ("0.05").
    /// Defaults 0.05 and 0.10.
    pub prices: Prices,
    /// `[serve] on_processor`: serve without a supported GPU, on the processor. Default false.
    pub on_processor: bool,
    /// `[games]`: what the machine is given back to.
    pub games: GameSettings,
    /// `[worker] program`: the worker program; empty for the one installed beside this one. Default empty.
    pub worker: Option<PathBuf>,
}

/// `[broker]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerSettings {
    /// `url`: the broker's address, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// `invite`: the token that the operator gave the owner; only the first greeting needs it.
    pub invite: String,
}

/// `[model]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// `slug`: the folder below `models/`. Written by the first `wakati-node import`. Default: none.
    pub slug: Option<String>,
    /// `context`: tokens of prompt and answer together, at most, 256 to 1,048,576. Default 4096, and never more than
    /// the model has.
    pub context: u32,
    /// `slots`: jobs at the same time, 1 to 64. Default 1: mistral.rs decodes only sequences of equal length
    /// together, and 2 jobs at once gave 0.66 of the tokens per second of the same jobs one after another
    /// (`cargo xtask bench engine`, 2 cores).
    pub slots: u32,
}

/// `[games]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GameSettings {
    /// `programs`: names of programs that count as games wherever they come from, such as `["factorio"]`.
    /// Default empty.
    pub programs: Vec<String>,
    /// `quiet_seconds`: how long after a game has ended serving returns, 0 to 3600. Default 30.
    pub quiet: Duration,
    /// `poll_milliseconds`: how often the machine is looked at, 50 to 10,000. Default 250.
    pub poll: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            language: "en".into(),
            broker: None,
            model: ModelSettings { slug: None, context: 4096, slots: 1 },
            prices: Prices { input: Price(50_000_000), output: Price(100_000_000) },
            on_processor: false,
            games: GameSettings {
                programs: Vec::new(),
                quiet: Duration::from_secs(30),
                poll: Duration::from_millis(250),
            },
            worker: None,
        }
    }
}

/// Something about the settings file that the owner should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// This option has a value that cannot be used; its default holds.
    BadValue(String),
    /// There is no such option.
    UnknownOption(String),
    /// The file was no TOML. It was put here, and defaults hold.
    SetAside(PathBuf),
    /// The file cannot be read; defaults hold.
    Unreadable(PathBuf),
}

/// Every section and its options; the empty section is the top of the file.
const OPTIONS: [(&str, &[&str]); 7] = [
    ("", &["language"]),
    ("broker", &["url", "invite"]),
    ("model", &["slug", "context", "slots"]),
    ("prices", &["input", "output"]),
    ("serve", &["on_processor"]),
    ("games", &["programs", "quiet_seconds", "poll_milliseconds"]),
    ("worker", &["program"]),
];

/// Reads the settings file. No file means defaults; a file that is no TOML is renamed to `*.damaged-STAMP`.
#[must_use]
pub fn load(path: &Path, stamp: &str) -> (Settings, Vec<Problem>) {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).unwrap_or_else(|_| "not text".into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (Settings::default(), Vec::new()),
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "settings cannot be read");
            return (Settings::default(), vec![Problem::Unreadable(path.to_owned())]);
        }
    };
    if let Ok(document) = text.parse::<DocumentMut>() {
        return read(&document);
    }
    let aside = path.with_extension(format!("toml.damaged-{stamp}"));
    let problem = match std::fs::rename(path, &aside) {
        Ok(()) => Problem::SetAside(aside),
        Err(_) => Problem::Unreadable(path.to_owned()),
    };
    (Settings::default(), vec![problem])
}

/// Sets options in the settings file and leaves the owner's other options and comments as they are.
///
/// # Errors
/// When the file is no TOML or cannot be written; then it is as it was.
pub fn change(path: &Path, options: &[(&str, &str, &str)]) -> anyhow::Result<()> {
    use anyhow::Context;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    let mut document: DocumentMut =
        text.parse().with_context(|| format!("{} is damaged; mend it first", path.display()))?;
    for (section, option, value) in options {
        let table = document.entry(section).or_insert_with(toml_edit::table);
        let table = table.as_table_like_mut().with_context(|| format!("[{section}] is not a section"))?;
        table.insert(option, toml_edit::value(*value));
    }
    write_private(path, document.to_string().as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))
}

fn read(document: &DocumentMut) -> (Settings, Vec<Problem>) {
    let mut from = Reader { document, problems: unknown_options(document) };
    let default = Settings::default();
    let url = from.text("broker", "url", |url| crate::link::link_url(url).is_ok()).unwrap_or_default();
    let invite = from.text("broker", "invite", |_| true).unwrap_or_default();
    let settings = Settings {
        language: from
            .text("", "language", |code| wakati_words::Language::of(code).is_some())
            .unwrap_or(default.language),
        broker: (!url.is_empty()).then_some(BrokerSettings { url, invite }),
        model: ModelSettings {
            slug: from.text("model", "slug", |_| true),
            context: from.number("model", "context", 256, 1 << 20).unwrap_or(default.model.context),
            slots: from.number("model", "slots", 1, 64).unwrap_or(default.model.slots),
        },
        prices: Prices {
            input: from.price("input").unwrap_or(default.prices.input),
            output: from.price("output").unwrap_or(default.prices.output),
        },
        on_processor: from
            .value("serve", "on_processor", |value| value.as_bool())
            .unwrap_or(default.on_processor),
        games: GameSettings {
            programs: from.value("games", "programs", texts).unwrap_or_default(),
            quiet: from
                .number("games", "quiet_seconds", 0, 3600)
                .map_or(default.games.quiet, |seconds| Duration::from_secs(seconds.into())),
            poll: from
                .number("games", "poll_milliseconds", 50, 10_000)
                .map_or(default.games.poll, |ms| Duration::from_millis(ms.into())),
        },
        worker: from.text("worker", "program", |_| true).map(PathBuf::from),
    };
    (settings, from.problems)
}

/// Reads options one by one and collects what cannot be used.
struct Reader<'a> {
    document: &'a DocumentMut,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    /// The option as `read` understands it; `None` when it is absent, or (with a problem) not understood.
    fn value<T>(&mut self, section: &str, option: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let item = match section {
            "" => self.document.get(option)?,
            section => self.document.get(section)?.get(option)?,
        };
        let value = item.as_value().and_then(read);
        if value.is_none() {
            self.problems.push(Problem::BadValue(full_name(section, option)));
        }
        value
    }

    /// Text that passes the check. Empty text is an absent option.
    fn text(&mut self, section: &str, option: &str, check: impl Fn(&str) -> bool) -> Option<String> {
        let text = self.value(section, option, |value| {
            let text = value.as_str()?;
            (text.is_empty() || check(text)).then(|| text.to_owned())
        });
        text.filter(|text| !text.is_empty())
    }

    fn number(&mut self, section: &str, option: &str, least: u32, most: u32) -> Option<u32> {
        self.value(section, option, |value| {
            let number = u32::try_from(value.as_integer()?).ok()?;
            (least..=most).contains(&number).then_some(number)
        })
    }

    /// Dollars per million tokens, from 0 to 1000. A bare number is read by its digits, never as floating point.
    fn price(&mut self, option: &str) -> Option<Price> {
        self.value("prices", option, |value| {
            let digits = match value {
                Value::String(text) => text.value().clone(),
                Value::Integer(number) => number.display_repr().into_owned(),
                Value::Float(number) => number.display_repr().into_owned(),
                Value::Boolean(_) | Value::Datetime(_) | Value::Array(_) | Value::InlineTable(_) => {
                    return None;
                }
            };
            let dollars: NanoUsd = digits.trim().parse().ok()?;
            (NanoUsd::ZERO..=NanoUsd(1_000 * NanoUsd::DOLLAR.0))
                .contains(&dollars)
                .then_some(Price(dollars.0))
        })
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn unknown_options(document: &DocumentMut) -> Vec<Problem> {
    let known = |section: &str, option: &str| {
        OPTIONS.iter().any(|(name, options)| *name == section && options.contains(&option))
    };
    let mut unknown = Vec::new();
    for (name, item) in document.iter() {
        let section = OPTIONS.iter().any(|(section, _)| !section.is_empty() && *section == name);
        match item.as_table_like() {
            Some(table) if section => unknown.extend(
                table
                    .iter()
                    .filter(|(option, _)| !known(name, option))
                    .map(|(option, _)| full_name(name, option)),
            ),
            Some(_) | None if !known("", name) => unknown.push(name.to_owned()),
            Some(_) | None => {}
        }
    }
    unknown.into_iter().map(Problem::UnknownOption).collect()
}

fn full_name(section: &str, option: &str) -> String {
    if section.is_empty() { option.to_owned() } else { format!("{section}.{option}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Settings, Vec<Problem>) {
        read(&text.parse().unwrap())
    }

    #[test]
    fn every_option_is_read() {
        let (settings, problems) = parsed(
            "language = \"sw\"\n[broker]\nurl = \"http://127.0.0.1:9\"\ninvite = \"abc\"\n\
             [model]\nslug = \"small\"\ncontext = 1024\nslots = 3\n[prices]\ninput = \"0.07\"\noutput = 0.2\n\
             [serve]\non_processor = true\n[games]\nprograms = [\"factorio\"]\nquiet_seconds = 5\n\
             poll_milliseconds = 100\n[worker]\nprogram = \"/opt/worker\"\n",
        );
        assert_eq!(problems, []);
        let expected = Settings {
            language: "sw".into(),
            broker: Some(BrokerSettings { url: "http://127.0.0.1:9".into(), invite: "abc".into() }),
            model: ModelSettings { slug: Some("small".into()), context: 1024, slots: 3 },
            prices: Prices { input: Price(70_000_000), output: Price(200_000_000) },
            on_processor: true,
            games: GameSettings {
                programs: vec!["factorio".into()],
                quiet: Duration::from_secs(5),
                poll: Duration::from_millis(100),
            },
            worker: Some("/opt/worker".into()),
        };
        assert_eq!(settings, expected);
    }

    #[test]
    fn a_bad_value_keeps_its_default_and_is_named() {
        for (text, name) in [
            ("language = \"xx\"", "language"),
            ("[model]\ncontext = 12", "model.context"),
            ("[model]\nslots = \"two\"", "model.slots"),
            ("[prices]\ninput = \"-1\"", "prices.input"),
            ("[prices]\noutput = 1e3", "prices.output"),
            ("[games]\nprograms = \"factorio\"", "games.programs"),
            ("[broker]\nurl = \"http://example.com\"", "broker.url"),
        ] {
            let (settings, problems) = parsed(text);
            assert_eq!(settings, Settings::default(), "{text}");
            assert_eq!(problems, [Problem::BadValue(name.into())], "{text}");
        }
    }

    #[test]
    fn an_unknown_option_is_named() {
        let (_, problems) = parsed("colour = 1\n[games]\nquiet = 3\n[other]\na = 1\n");
        let names = ["colour", "games.quiet", "other"].map(|name| Problem::UnknownOption(name.into()));
        assert_eq!(problems, names);
    }

    #[test]
    fn a_file_that_is_no_toml_is_kept_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(&path, "[[[").unwrap();
        let (settings, problems) = load(&path, "now");
        assert_eq!(settings, Settings::default());
        let [Problem::SetAside(aside)] = &problems[..] else { panic!("{problems:?}") };
        assert_eq!(std::fs::read(aside).unwrap(), b"[[[");
        assert!(!path.exists());
    }

    #[test]
    fn joining_keeps_the_owners_comments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(&path, "# mine\n[games]\nprograms = [\"a\"] # yes\n").unwrap();
        change(&path, &[("broker", "url", "http://127.0.0.1:9"), ("broker", "invite", "x")]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("# mine") && text.contains("# yes"));
        let (settings, problems) = load(&path, "now");
        assert_eq!((settings.broker.unwrap().invite.as_str(), problems.len()), ("x", 0));
    }
}
