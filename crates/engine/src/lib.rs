//! Owns the worker process: starts it, speaks the pipe with it, watches it and kills it.
//!
//! A model runs in a process of its own because a killed process always gives its memory back.
//! This crate deliberately knows nothing of games, money or brokers: it is told which model to run and reports
//! what the worker says.

mod models;
mod pipe;
mod resident;
mod worker;

pub use models::{Model, ModelProblem, find_model};
pub use resident::resident_bytes;
pub use worker::{Exit, Hardware, NotStarted, Spec, Stuck, Worker, WorkerEvent, find_program};
