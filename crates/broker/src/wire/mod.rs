//! OpenAI's words: what a request says, how an answer and an error are written.
//!
//! The types are written here because they are few, and because `openai-protocol` and `async-openai` accept fields
//! that this broker has to refuse or to leave alone.

mod error;
mod reply;
mod request;

pub use error::ApiError;
pub use reply::{Reply, TokenProbability, Usage};
pub use request::{ChatRequest, OutputLimit, read_request};
