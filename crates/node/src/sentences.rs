//! The sentences of one language. What the machine is doing comes from `wakati-words`; here are only the desk's own
//! answers to its askers.

use wakati_agent::{Activity, Fault, Refused, Status};
use wakati_words::Language;

/// Sentences in the owner's language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sentences(Language);

impl Sentences {
    /// The language of this tag; English for one that is not there.
    #[must_use]
    pub fn new(tag: &str) -> Self {
        Self(Language::of(tag).unwrap_or(Language::English))
    }

    /// The language's tag.
    #[must_use]
    pub fn tag(self) -> &'static str {
        self.0.tag()
    }

    /// What the node does.
    #[must_use]
    pub fn status(self, status: &Status) -> String {
        self.0.sentence(status)
    }

    /// Why, in one more sentence.
    #[must_use]
    pub fn reason(self, status: &Status) -> String {
        self.0.reason(status)
    }

    /// What the owner must know.
    #[must_use]
    pub fn fault(self, fault: &Fault) -> String {
        self.0.fault(fault)
    }

    /// Why a wish is not granted.
    #[must_use]
    pub fn refused(self, refused: &Refused) -> String {
        self.0.refused(refused)
    }

    /// What the log says that the machine did (an activity as JSON), and by what a game was seen.
    #[must_use]
    pub fn of_span(self, logged: &str) -> (String, String) {
        match serde_json::from_str::<Activity>(logged) {
            Ok(activity) => (self.0.activity(&activity), self.0.evidence(&activity)),
            // Written by a version that knew other activities.
            Err(_) => (logged.into(), String::new()),
        }
    }

    /// A damaged log was kept under this name.
    #[must_use]
    pub fn log_set_aside(self, file: &str) -> String {
        match self.0 {
            Language::English => {
                format!(
                    "The earnings log was damaged. It is kept as {file}, and the broker sends the receipts again."
                )
            }
            Language::Swahili => {
                format!(
                    "Kumbukumbu ya mapato iliharibika. Imewekwa kama {file}, na dalali hutuma stakabadhi tena."
                )
            }
        }
    }

    /// There is no window to open.
    #[must_use]
    pub fn no_window(self) -> String {
        match self.0 {
            Language::English => "This node runs without a window.".into(),
            Language::Swahili => "Programu hii haina dirisha.".into(),
        }
    }

    /// The node ends or has ended.
    #[must_use]
    pub fn ended(self) -> String {
        match self.0 {
            Language::English => "The node is ending.".into(),
            Language::Swahili => "Programu inafunga.".into(),
        }
    }

    /// The day is not one.
    #[must_use]
    pub fn bad_day(self) -> String {
        match self.0 {
            Language::English => "A day is written like this: 2026-01-31.".into(),
            Language::Swahili => "Siku huandikwa hivi: 2026-01-31.".into(),
        }
    }

    /// The log cannot be read now.
    #[must_use]
    pub fn log_unreadable(self) -> String {
        match self.0 {
            Language::English => "The log cannot be read.".into(),
            Language::Swahili => "Kumbukumbu haiwezi kusomwa.".into(),
        }
    }
}
