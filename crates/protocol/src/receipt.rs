//! Receipts: what an owner has earned with one attempt, signed by the broker and then by the node.
//!
//! The broker counts the tokens, so the broker writes the receipt when it settles a job.
//! The node stores it, signs it and acknowledges it; until then the broker sends it again.
//! `sequence` counts 1, 2, 3, ... for each node, so that a missing receipt is visible on both sides.

use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};

/// What one attempt earned.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Receipt {
    #[prost(uint64, tag = "1")]
    pub sequence: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub node: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub job: Vec<u8>,
    #[prost(uint32, tag = "4")]
    pub attempt: u32,
    #[prost(bytes = "vec", tag = "5")]
    pub model: Vec<u8>,
    /// The first position that this attempt served.
    #[prost(uint32, tag = "6")]
    pub first_position: u32,
    /// How many positions were accepted.
    #[prost(uint32, tag = "7")]
    pub positions: u32,
    /// Prompt tokens paid for; for a later attempt, the prompt and what was already emitted.
    #[prost(uint32, tag = "8")]
    pub input_tokens: u32,
    /// The owner's ask prices at the match, nano-USD per million tokens.
    #[prost(int64, tag = "9")]
    pub input_price: i64,
    #[prost(int64, tag = "10")]
    pub output_price: i64,
    /// The owner's share in thousandths.
    #[prost(uint32, tag = "11")]
    pub share: u32,
    /// The owner's earning in nano-USD.
    #[prost(int64, tag = "12")]
    pub pay: i64,
    /// When the job was settled, milliseconds since 1970-01-01 UTC.
    #[prost(int64, tag = "13")]
    pub settled_at: i64,
    /// The broker's 64 bytes over [`Receipt::signed_bytes`].
    #[prost(bytes = "vec", tag = "14")]
    pub broker_signature: Vec<u8>,
}

/// The node has stored the receipt.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReceiptAck {
    #[prost(uint64, tag = "1")]
    pub sequence: u64,
    /// The node's 64 bytes over [`Receipt::signed_bytes`].
    #[prost(bytes = "vec", tag = "2")]
    pub node_signature: Vec<u8>,
}

/// A signature that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the signature does not fit")]
pub struct BadSignature;

impl Receipt {
    /// The bytes that both sides sign: the message without the signature, behind a name of its own.
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        let unsigned = Self { broker_signature: Vec::new(), ..self.clone() };
        let mut bytes = b"wakati receipt 1\0".to_vec();
        bytes.extend(prost::Message::encode_to_vec(&unsigned));
        bytes
    }
}

/// The bytes that a node signs in its `Hello`.
#[must_use]
pub fn hello_bytes(nonce: &[u8], broker: &[u8]) -> Vec<u8> {
    [b"wakati hello 1\0".as_slice(), nonce, broker].concat()
}

/// Signs `bytes`: 64 bytes of ed25519.
#[must_use]
pub fn sign(key: &SigningKey, bytes: &[u8]) -> Vec<u8> {
    key.sign(bytes).to_bytes().to_vec()
}

/// Checks a signature of `bytes` by the holder of `public_key`.
///
/// # Errors
/// When the key or the signature is not one, or they do not fit.
pub fn verify(public_key: &[u8], bytes: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
    let key = public_key.try_into().map_err(|_| BadSignature)?;
    let key = VerifyingKey::from_bytes(key).map_err(|_| BadSignature)?;
    let signature = Signature::from_slice(signature).map_err(|_| BadSignature)?;
    key.verify(bytes, &signature).map_err(|_| BadSignature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_changed_by_one_unit_is_refused() {
        let key = SigningKey::from_bytes(&[3; 32]);
        let public = key.verifying_key().to_bytes();
        let mut receipt = Receipt { sequence: 1, pay: 595, ..Receipt::default() };
        receipt.broker_signature = sign(&key, &receipt.signed_bytes());
        assert!(verify(&public, &receipt.signed_bytes(), &receipt.broker_signature).is_ok());
        receipt.pay += 1;
        assert!(verify(&public, &receipt.signed_bytes(), &receipt.broker_signature).is_err());
    }
}
