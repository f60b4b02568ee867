//! The settings file. A value that cannot be used keeps its default and becomes a [`Problem`] that the owner sees.

mod hours;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use toml_edit::{DocumentMut, Value};
use wakati_agent::Calendar;
use wakati_protocol::money::{NanoUsd, Price, Prices};
use wakati_protocol::units::{Celsius, MiB};

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
    /// `[serve]`, `[limits]` and `[hours]`: when not to serve.
    pub serve: ServeSettings,
    /// `[games]`: what the machine is given back to.
    pub games: GameSettings,
    /// `[worker] program`: the worker program; empty for the one installed beside this one. Default empty.
    pub worker: Option<PathBuf>,
}

/// `[broker]`.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokerSettings {
    /// `url`: the broker's address, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// `invite`: the token that the operator gave the owner; only the first greeting needs it.
    pub invite: String,
}

/// The invite lets a machine join, so it stands in no log.
impl std::fmt::Debug for BrokerSettings {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("BrokerSettings").field("url", &self.url).finish_non_exhaustive()
    }
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

/// `[serve]`, `[limits]` and `[hours]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeSettings {
    /// `[serve] on_processor`: serve without a supported GPU, on the processor. Default false.
    pub on_processor: bool,
    /// `[serve] on_battery`: serve while the machine runs on its battery. Default false.
    pub on_battery: bool,
    /// `[serve] beside_films`: serve while a film is shown in full screen. Default true.
    pub beside_films: bool,
    /// `[serve] away_minutes`: serve only when nobody has touched the machine for so long, 1 to 1440.
    /// Default: always.
    pub away: Option<Duration>,
    /// `[limits] hottest_celsius`: rest when the GPU is so hot, 50 to 100. Default 83.
    pub hottest: Celsius,
    /// `[limits] reserve_mebibytes`: GPU memory that stays free for others, 0 to 65,536. Default 512.
    pub reserve: MiB,
    /// `[hours] windows`: when to serve, such as `["mon-fri 22:00-06:00", "sat,sun 00:00-24:00"]`. Default: always.
    /// `[hours] except`: days with other windows, such as `["2026-12-24", "2026-12-31 10:00-12:00"]`.
    pub calendar: Calendar,
}

/// `[games]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GameSettings {
    /// `programs`: names of programs that count as games wherever they come from, such as `["factorio"]`.
    /// Default empty.
    pub programs: Vec<String>,
    /// `not`: names of programs, or of games as they are shown, that do not count. Default empty.
    pub not: Vec<String>,
    /// `quiet_seconds`: how long after a game has ended serving returns, 0 to 3600. Default 30, and 90 after a game
    /// that was only guessed from two of its traits.
    pub quiet: Option<Duration>,
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
            serve: ServeSettings {
                on_processor: false,
                on_battery: false,
                beside_films: true,
                away: None,
                hottest: Celsius(83),
                reserve: MiB(512),
                calendar: Calendar::default(),
            },
            games: GameSettings {
                programs: Vec::new(),
                not: Vec::new(),
                quiet: None,
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
const OPTIONS: [(&str, &[&str]); 9] = [
    ("", &["language"]),
    ("broker", &["url", "invite"]),
    ("model", &["slug", "context", "slots"]),
    ("prices", &["input", "output"]),
    ("serve", &["on_processor", "on_battery", "beside_films", "away_minutes"]),
    ("limits", &["hottest_celsius", "reserve_mebibytes"]),
    ("hours", &["windows", "except"]),
    ("games", &["programs", "not", "quiet_seconds", "poll_milliseconds"]),
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

/// Reads the settings file for somebody who only asks: it stays as it is, and values that cannot be used keep their
/// defaults.
///
/// # Errors
/// When the file cannot be read or is no TOML.
pub fn read_only(path: &Path) -> anyhow::Result<Settings> {
    Ok(read(&document(path)?).0)
}

/// Sets options in the settings file and leaves the owner's other options and comments as they are.
///
/// # Errors
/// When the file is no TOML or cannot be written; then it is as it was.
pub fn change(path: &Path, options: &[(&str, &str, &str)]) -> anyhow::Result<()> {
    let mut document = document(path)?;
    for (section, option, value) in options {
        let table = document.entry(section).or_insert_with(toml_edit::table);
        let table = table.as_table_like_mut().with_context(|| format!("[{section}] is not a section"))?;
        table.insert(option, toml_edit::value(*value));
    }
    write_private(path, document.to_string().as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// What the file says; nothing if there is none.
fn document(path: &Path) -> anyhow::Result<DocumentMut> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    text.parse().with_context(|| format!("{} is damaged; mend it first", path.display()))
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
        serve: serve(&mut from, default.serve),
        games: GameSettings {
            programs: from.list("games", "programs", |text| Some(text.to_owned())),
            not: from.list("games", "not", |text| Some(text.to_owned())),
            quiet: from
                .number("games", "quiet_seconds", 0, 3600)
                .map(|seconds| Duration::from_secs(seconds.into())),
            poll: from
                .number("games", "poll_milliseconds", 50, 10_000)
                .map_or(default.games.poll, |ms| Duration::from_millis(ms.into())),
        },
        worker: from.text("worker", "program", |_| true).map(PathBuf::from),
    };
    (settings, from.problems)
}

fn serve(from: &mut Reader<'_>, default: ServeSettings) -> ServeSettings {
    ServeSettings {
        on_processor: from.truth("serve", "on_processor").unwrap_or(default.on_processor),
        on_battery: from.truth("serve", "on_battery").unwrap_or(default.on_battery),
        beside_films: from.truth("serve", "beside_films").unwrap_or(default.beside_films),
        away: from
            .number("serve", "away_minutes", 1, 1440)
            .map(|minutes| Duration::from_secs(u64::from(minutes) * 60)),
        hottest: from
            .number("limits", "hottest_celsius", 50, 100)
            .map_or(default.hottest, |degrees| Celsius(degrees as i32)),
        reserve: from
            .number("limits", "reserve_mebibytes", 0, 65_536)
            .map_or(default.reserve, |reserve| MiB(reserve.into())),
        calendar: Calendar {
            windows: from.list("hours", "windows", hours::window),
            exceptions: from.list("hours", "except", hours::exception),
        },
    }
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

    fn truth(&mut self, section: &str, option: &str) -> Option<bool> {
        self.value(section, option, |value| value.as_bool())
    }

    /// Every entry that `read` understands; one that it does not is a problem, and the others hold.
    fn list<T>(&mut self, section: &str, option: &str, read: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let entries =
            self.value(section, option, |value| Some(value.as_array()?.clone())).unwrap_or_default();
        let read: Vec<_> = entries.iter().map(|entry| entry.as_str().and_then(&read)).collect();
        if read.iter().any(Option::is_none) {
            self.problems.push(Problem::BadValue(full_name(section, option)));
        }
        read.into_iter().flatten().collect()
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
mod tests;
