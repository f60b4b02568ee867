//! The desk's messages as TypeScript, so that the window's page is checked against what the node really says.

use ts_rs::{Config, TS};

use crate::{desk, ids, money, units};

/// The whole of `ui/src/lib/backend/bindings.ts`.
///
/// Integers become `number`: the largest that a page meets is an amount in nano-USD, which a JavaScript number holds
/// exactly up to nine million dollars.
#[must_use]
pub fn typescript() -> String {
    let config = Config::new().with_large_int("number");
    let mut text =
        String::from("// Made by `cargo xtask bindings` from crates/protocol/src/desk.rs. Do not edit.\n");
    let mut add = |docs: Option<String>, declaration: String| {
        text.push('\n');
        if let Some(docs) = docs {
            text.push_str(docs.trim_end());
            text.push('\n');
        }
        text.push_str("export ");
        text.push_str(&declaration);
        text.push('\n');
    };
    macro_rules! types {
        ($($type:ty),* $(,)?) => { $(add(<$type as TS>::docs(), <$type as TS>::decl(&config));)* };
    }
    types![
        desk::Ask,
        desk::Answer,
        desk::Snapshot,
        desk::Shape,
        desk::Primary,
        desk::LinkState,
        desk::ModelOnOffer,
        desk::Figures,
        desk::Machine,
        desk::Denied,
        desk::HandOver,
        desk::Span,
        desk::Earning,
        money::NanoUsd,
        money::Price,
        money::Prices,
        ids::NodeId,
        ids::ModelDigest,
        ids::JobId,
        units::MiB,
        units::Celsius,
        units::Watts,
        units::Percent,
        units::UnixMillis,
    ];
    text
}
