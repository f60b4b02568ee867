//! The broker: sells the tokens that owners' nodes produce to consumers, through an API like OpenAI's.
//!
//! Text lives only here: chat templates, tokens, stop strings. Tokens are counted only here: what a node says about
//! money is never believed. One task relays one job from whichever node serves it to its consumer.
//!
//! This crate deliberately runs no model and knows nothing of GPUs, games or owners' machines; what a node may serve
//! is chosen by the market, and every amount is moved by the ledger.

mod api;
mod app;
mod checkpoints;
mod clock;
mod hub;
mod key;
mod link;
mod measures;
mod models;
mod open_jobs;
pub mod operator;
mod relay;
mod report;
mod server;
pub mod settings;
mod text;
mod wire;

pub use key::BadKey;
pub use server::{Running, ServeError, start};
