//! The market: who serves the next job.
//!
//! A [`Book`] holds the standing offers of the nodes that are connected, and how many slots of each are taken.
//! [`Book::claim`] takes a slot on the cheapest node that can serve a job, so that no slot is taken twice.
//!
//! This crate is deliberately pure: no clock, no sockets, no files. Time, chance and news come in as arguments.

mod book;
mod conduct;

pub use book::{Book, Budget, Claim, Match, NoMatch, Offer, Request, Session, Standing};
pub use conduct::Conduct;
