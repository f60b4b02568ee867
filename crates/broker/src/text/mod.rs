//! Text lives here and nowhere else: chat templates, tokens, stop strings.

mod answer;
mod prompt;
mod template;

pub use answer::Answer;
pub use prompt::{BadPrompt, Message, Text};
