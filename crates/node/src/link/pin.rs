//! The broker's key, pinned when the owner joins.
//!
//! The pin holds for one address and one invite: joining again, with a new invite, is how an owner accepts a new key.

use sha2::{Digest, Sha256};
use wakati_protocol::ids::BrokerId;
use wakati_store::{Store, StoreError};

use super::LinkSpec;

const PIN: &str = "broker";

/// The key of the broker that this node joined with these settings, if it ever got in.
pub(super) async fn pinned(spec: &LinkSpec) -> Result<Option<BrokerId>, StoreError> {
    let stored = spec.store.meta(PIN).await?;
    let Some((joined, key)) = stored.as_deref().and_then(|pin| pin.split_once(' ')) else { return Ok(None) };
    if joined != joining(spec) {
        return Ok(None);
    }
    key.parse().map(Some).map_err(|_| StoreError::Unreadable("a broker's key"))
}

/// Pins the key of a broker that has let us in.
pub(super) async fn pin(store: &Store, spec: &LinkSpec, broker: BrokerId) -> Result<(), StoreError> {
    store.set_meta(PIN, &format!("{} {broker}", joining(spec))).await
}

/// Names the act of joining without holding the invite.
fn joining(spec: &LinkSpec) -> String {
    hex::encode(Sha256::digest(format!("{}\0{}", spec.url, spec.invite)))
}
