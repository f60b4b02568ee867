//! The whole node against a scripted broker and a worker without a model: real link, real pipe, real log.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that is surprised ends")]

mod common;
mod program;
mod serving;
