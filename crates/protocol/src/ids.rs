//! Ids. Each is a newtype, so that a job is never taken for a node.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Text that is not the id it was taken for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {wanted}")]
pub struct BadId {
    /// Which kind of id was expected.
    pub what: &'static str,
    /// What it should have looked like.
    pub wanted: &'static str,
}

macro_rules! bytes32 {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(type = "string"))]
        pub struct $name(pub [u8; 32]);

        impl $name {
            /// Reads the id from raw bytes, as it travels in frames.
            ///
            /// # Errors
            /// When there are not exactly 32 bytes.
            pub fn from_slice(bytes: &[u8]) -> Result<Self, BadId> {
                bytes.try_into().map(Self).map_err(|_| BadId { what: $what, wanted: "32 bytes" })
            }

            /// The raw bytes, as they travel in frames.
            #[must_use]
            pub fn to_vec(self) -> Vec<u8> {
                self.0.to_vec()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), hex::encode(&self.0[..6]))
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                let mut bytes = [0; 32];
                hex::decode_to_slice(text, &mut bytes)
                    .map_err(|_| BadId { what: $what, wanted: "64 hexadecimal digits" })?;
                Ok(Self(bytes))
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;
            fn try_from(text: String) -> Result<Self, BadId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
    };
}

bytes32!(
    /// A node, which is its ed25519 public key.
    NodeId,
    "a node id"
);
bytes32!(
    /// A broker, which is its ed25519 public key.
    BrokerId,
    "a broker id"
);
bytes32!(
    /// A model's identity: the SHA-256 of its catalogue entry.
    /// Two machines that hold the same digest hold the same weights, tokenizer, template, stop ids and context.
    ModelDigest,
    "a model digest"
);

/// A job: one request being served. 16 random bytes, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS), ts(type = "string"))]
pub struct JobId(pub [u8; 16]);

impl JobId {
    /// Reads the id from raw bytes, as it travels in frames.
    ///
    /// # Errors
    /// When there are not exactly 16 bytes.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, BadId> {
        bytes.try_into().map(Self).map_err(|_| BadId { what: "a job id", wanted: "16 bytes" })
    }

    /// The raw bytes, as they travel in frames.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        self.0.to_vec()
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobId({self})")
    }
}

impl FromStr for JobId {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes)
            .map_err(|_| BadId { what: "a job id", wanted: "32 hexadecimal digits" })?;
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for JobId {
    type Error = BadId;
    fn try_from(text: String) -> Result<Self, BadId> {
        text.parse()
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> String {
        id.to_string()
    }
}

/// One node's try at a job: 1 for the first node, 2 for the one that continues, and so on.
pub type Attempt = u32;

/// The index of a generated token in its job: 0 is the first token after the prompt, on whatever node.
pub type Position = u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_text_and_json() {
        let id = JobId([7; 16]);
        assert_eq!(id.to_string().parse(), Ok(id));
        let node = NodeId([9; 32]);
        let json = serde_json::to_string(&node).unwrap();
        assert_eq!(json, format!("\"{}\"", "09".repeat(32)));
        assert_eq!(serde_json::from_str::<NodeId>(&json).unwrap(), node);
    }

    #[test]
    fn text_of_the_wrong_length_is_refused() {
        assert!("abcd".parse::<JobId>().is_err());
        assert!(NodeId::from_slice(&[0; 31]).is_err());
    }
}
