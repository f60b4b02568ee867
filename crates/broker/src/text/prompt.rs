//! From messages to token ids.

use std::path::Path;

use serde::Serialize;
use tokenizers::Tokenizer;
use wakati_catalogue::{Entry, TEMPLATE_FILE, TOKENIZER_FILE};

use super::template::{BadTemplate, Template};

/// One message, as chat templates read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    pub role: String,
    pub content: String,
}

/// Why there are no ids.
#[derive(Debug, thiserror::Error)]
pub enum BadPrompt {
    #[error(transparent)]
    Template(#[from] BadTemplate),
    #[error("the model's tokenizer failed: {0}")]
    Tokenizer(String),
    #[error("the model's files cannot be read: {0}")]
    Files(#[from] std::io::Error),
    #[error("the text uses every character that could mark it apart")]
    NoMark,
    #[error("There are {messages} messages; this model takes {context} tokens, prompt and answer together.")]
    TooMany { messages: usize, context: u32 },
}

/// A model's tokenizer and chat template.
pub struct Text {
    template: Template,
    /// Special tokens in the text become their ids.
    plain: Tokenizer,
    /// Special tokens in the text stay text.
    literal: Tokenizer,
    /// The special tokens' texts, longest first.
    specials: Vec<String>,
    /// The model's context.
    context: u32,
}

impl Text {
    /// Loads a catalogue entry's tokenizer and template.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn load(models: &Path, entry: &Entry) -> Result<Self, BadPrompt> {
        let dir = models.join(&entry.slug);
        let bytes = std::fs::read(dir.join(TOKENIZER_FILE))?;
        let source = std::fs::read_to_string(dir.join(TEMPLATE_FILE))?;
        Self::new(&bytes, source, entry.bos_id, entry.eos_id, entry.context)
    }

    /// The same from memory.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn new(
        tokenizer: &[u8],
        template: String,
        bos: Option<u32>,
        eos: u32,
        context: u32,
    ) -> Result<Self, BadPrompt> {
        let mut plain = Tokenizer::from_bytes(tokenizer).map_err(|e| BadPrompt::Tokenizer(e.to_string()))?;
        // A tokenizer.json may carry training-time settings that cut or pad the text.
        plain.with_truncation(None).map_err(|e| BadPrompt::Tokenizer(e.to_string()))?;
        plain.with_padding(None);
        let mut literal = plain.clone();
        literal.set_encode_special_tokens(true);
        let mut specials: Vec<String> = plain
            .get_added_tokens_decoder()
            .into_values()
            .filter(|token| token.special && token.content.chars().count() > 1)
            .map(|token| token.content)
            .collect();
        specials.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let name = |id: Option<u32>| id.and_then(|id| plain.id_to_token(id)).unwrap_or_default();
        let template = Template::new(template, name(bos), name(Some(eos)))?;
        Ok(Self { template, plain, literal, specials, context })
    }

    /// The prompt's ids. The template adds the special tokens; what a consumer wrote never becomes one.
    ///
    /// Special tokens in a message are broken by a mark before the template sees them. In the rendered text an
    /// unbroken special token is thus the template's own. Without marks the text is encoded as any other, so the
    /// ids are those of `transformers`. With marks it is cut at the template's special tokens, as the tokenizer
    /// does itself, and the pieces are encoded without their marks by the tokenizer that takes specials for text.
    ///
    /// # Errors
    /// When the template refuses the messages, or there are more of them than the model takes tokens.
    pub fn prompt(&self, messages: &[Message]) -> Result<Vec<u32>, BadPrompt> {
        // Every message is at least a token, so nothing needs to be rendered or read to know that they do not fit.
        if messages.len() > self.context as usize {
            return Err(BadPrompt::TooMany { messages: messages.len(), context: self.context });
        }
        let mark = unused_mark(messages)?;
        let marked: Vec<Message> = messages
            .iter()
            .map(|m| Message { role: m.role.clone(), content: self.broken(&m.content, mark) })
            .collect();
        let text = self.template.render(&marked)?;
        if !text.contains(mark) {
            return encode(&self.plain, &text);
        }
        let mut ids = Vec::new();
        let mut done = 0;
        for (at, special) in self.specials_in(&text) {
            // It begins within the one before.
            if at < done {
                continue;
            }
            ids.extend(encode(&self.literal, &text[done..at].replace(mark, ""))?);
            ids.extend(self.plain.token_to_id(special));
            done = at + special.len();
        }
        ids.extend(encode(&self.literal, &text[done..].replace(mark, ""))?);
        Ok(ids)
    }

    /// The text of these ids, without special tokens.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> String {
        // Ids out of the vocabulary decode to nothing; they are refused before they come here.
        self.plain.decode(ids, true).unwrap_or_default()
    }

    fn broken(&self, content: &str, mark: char) -> String {
        let mut content = content.to_owned();
        for special in &self.specials {
            if content.contains(special) {
                let mut letters = special.chars();
                let broken: String = letters.next().into_iter().chain([mark]).chain(letters).collect();
                content = content.replace(special, &broken);
            }
        }
        content
    }

    /// Where special tokens are in the text, in its order; the longest first where two begin at the same place.
    /// Each special token is looked for once from the beginning to the end, so a long text costs no more than its length.
    fn specials_in<'a>(&'a self, text: &'a str) -> Vec<(usize, &'a str)> {
        let mut found: Vec<(usize, &str)> =
            self.specials.iter().flat_map(|special| text.match_indices(special.as_str())).collect();
        found.sort_by_key(|(at, special)| (*at, std::cmp::Reverse(special.len())));
        found
    }
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, BadPrompt> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let encoding = tokenizer.encode_fast(text, false).map_err(|e| BadPrompt::Tokenizer(e.to_string()))?;
    Ok(encoding.get_ids().to_vec())
}

/// A Unicode noncharacter that none of the messages contains.
fn unused_mark(messages: &[Message]) -> Result<char, BadPrompt> {
    ('\u{FDD0}'..='\u{FDEF}')
        .find(|mark| messages.iter().all(|m| !m.content.contains(*mark)))
        .ok_or(BadPrompt::NoMark)
}
