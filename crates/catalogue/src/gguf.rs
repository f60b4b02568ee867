//! The header of a GGUF file: metadata and the list of tensors, without their data.
//!
//! Layout: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>, versions 2 and 3, little-endian.
//! Every count and length is checked against the bytes that are left before anything is allocated for it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};

use crate::ggml::{file_type_name, tensor_type};

/// The architectures whose GGUF files mistral.rs 0.8.1 loads (its `gguf.rs`).
pub const ARCHITECTURES: &[&str] =
    &["llama", "mistral3", "phi2", "phi3", "qwen2", "qwen3", "qwen3moe", "starcoder2"];

/// Metadata and tensor list together, at most. A vocabulary of 256,000 tokens with merges takes about 20 MiB.
const MAX_HEADER_BYTES: u64 = 256 << 20;
/// Array elements in the whole header, at most.
const MAX_ELEMENTS: u64 = 8 << 20;
const MAX_KEYS: u64 = 1 << 16;
const MAX_TENSORS: u64 = 1 << 16;
const MAX_KEY_BYTES: u64 = 1 << 16;
const MAX_DIMENSIONS: u32 = 4;
const DEFAULT_ALIGNMENT: u64 = 32;
/// Bytes that the shortest metadata entry and the shortest tensor entry take in the file.
const SMALLEST_KEY: u64 = 8 + 4 + 1;
const SMALLEST_TENSOR: u64 = 8 + 4 + 4 + 8;

/// A file that is not a usable GGUF.
#[derive(Debug, thiserror::Error)]
pub enum BadGguf {
    #[error("the file cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("this is not a GGUF file")]
    NotGguf,
    #[error("GGUF version {0} is not supported (2 and 3 are)")]
    Version(u32),
    #[error("the file is cut short: it needs {needed} bytes and has {there}")]
    Truncated { needed: u64, there: u64 },
    #[error("the file is damaged: {0}")]
    Corrupt(String),
    #[error("models of the kind {0:?} are not supported (supported: {list})", list = ARCHITECTURES.join(", "))]
    UnknownArchitecture(String),
    #[error("tensor type {0} is not supported")]
    UnknownTensorType(u32),
}

/// One metadata value. Integers and floats are widened.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Array(Vec<Value>),
}

impl Value {
    /// The value as a count, where it is one.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Unsigned(n) => Some(*n),
            Self::Signed(n) => u64::try_from(*n).ok(),
            Self::Float(_) | Self::Bool(_) | Self::Text(_) | Self::Array(_) => None,
        }
    }

    /// The value as text, where it is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Unsigned(_) | Self::Signed(_) | Self::Float(_) | Self::Bool(_) | Self::Array(_) => None,
        }
    }

    /// The value as a list, where it is one.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            Self::Unsigned(_) | Self::Signed(_) | Self::Float(_) | Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

/// One tensor of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    pub name: String,
    /// Innermost first, as in the file.
    pub dimensions: Vec<u64>,
    /// The `ggml_type` number.
    pub kind: u32,
    pub bytes: u64,
}

/// A checked header: all tensor data lies inside the file.
#[derive(Debug, Clone)]
pub struct Header {
    pub metadata: BTreeMap<String, Value>,
    pub tensors: Vec<Tensor>,
    /// Size of the whole file.
    pub file_bytes: u64,
}

/// The numbers that decide how much memory a model takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    pub architecture: String,
    /// Tokens that the model was trained to look back on.
    pub context: u32,
    pub vocabulary: u32,
    pub layers: u32,
    pub heads: u32,
    pub kv_heads: u32,
    /// Elements of one key and of one value in one head.
    pub key_length: u32,
    pub value_length: u32,
}

impl Shape {
    /// Elements that the key-value cache holds for each token.
    #[must_use]
    pub fn kv_elements_per_token(&self) -> u64 {
        u64::from(self.layers)
            * u64::from(self.kv_heads)
            * (u64::from(self.key_length) + u64::from(self.value_length))
    }
}

impl Header {
    /// Reads and checks the header of an open file, from its start.
    ///
    /// # Errors
    /// When the file is not a GGUF, is damaged or cut short, or holds tensors that the engine cannot load.
    pub fn read(file: &mut File) -> Result<Self, BadGguf> {
        let file_bytes = file.metadata()?.len();
        file.rewind()?;
        Reader::new(BufReader::new(file), file_bytes).header()
    }

    /// Text under a key.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.metadata.get(key)?.as_text()
    }

    /// A count under a key, if it is there and fits.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u32> {
        u32::try_from(self.metadata.get(key)?.as_u64()?).ok()
    }

    /// The model's architecture and sizes.
    ///
    /// # Errors
    /// When the architecture is not supported or a size is missing or absurd.
    pub fn shape(&self) -> Result<Shape, BadGguf> {
        let architecture =
            self.text("general.architecture").ok_or_else(|| missing("general.architecture"))?;
        if !ARCHITECTURES.contains(&architecture) {
            return Err(BadGguf::UnknownArchitecture(architecture.chars().take(64).collect()));
        }
        let own = |key: &str| self.number(&format!("{architecture}.{key}"));
        let need = |key: &str| own(key).filter(|n| (1..=1 << 24).contains(n)).ok_or_else(|| missing(key));
        let heads = need("attention.head_count")?;
        let head_length = need("embedding_length")? / heads;
        let tokens = self.metadata.get("tokenizer.ggml.tokens").and_then(Value::as_array);
        let tokens = tokens.ok_or_else(|| missing("tokenizer.ggml.tokens"))?;
        Ok(Shape {
            architecture: architecture.to_owned(),
            context: need("context_length")?,
            vocabulary: u32::try_from(tokens.len()).map_err(|_| missing("tokenizer.ggml.tokens"))?,
            layers: need("block_count")?,
            heads,
            kv_heads: own("attention.head_count_kv").unwrap_or(heads),
            key_length: own("attention.key_length").unwrap_or(head_length),
            value_length: own("attention.value_length").unwrap_or(head_length),
        })
    }

    /// The quantisation as people write it: `Q4_1`, `Q4_K_M`. From `general.file_type` (llama.cpp's `llama_ftype`),
    /// else the type that most bytes of the file have.
    #[must_use]
    pub fn quantisation(&self) -> String {
        let named = self.number("general.file_type").and_then(file_type_name);
        if let Some(name) = named {
            return name.to_owned();
        }
        let mut bytes_by_kind = BTreeMap::new();
        for tensor in &self.tensors {
            *bytes_by_kind.entry(tensor.kind).or_insert(0_u64) += tensor.bytes;
        }
        let most = bytes_by_kind.into_iter().max_by_key(|(_, bytes)| *bytes);
        most.and_then(|(kind, _)| tensor_type(kind)).map_or("unknown", |(name, ..)| name).to_owned()
    }
}

fn missing(key: &str) -> BadGguf {
    BadGguf::Corrupt(format!("{key} is missing or makes no sense"))
}

/// Reads forwards and knows how much is left.
struct Reader<R> {
    input: R,
    position: u64,
    /// Where reading must end: the file's size or the header limit.
    end: u64,
    file_bytes: u64,
    elements: u64,
}

impl<R: Read> Reader<R> {
    fn new(input: R, file_bytes: u64) -> Self {
        Self { input, position: 0, end: file_bytes.min(MAX_HEADER_BYTES), file_bytes, elements: 0 }
    }

    fn header(mut self) -> Result<Header, BadGguf> {
        if self.file_bytes < 4 || self.take::<4>()? != *b"GGUF" {
            return Err(BadGguf::NotGguf);
        }
        let version = self.u32()?;
        if !(2..=3).contains(&version) {
            return Err(BadGguf::Version(version));
        }
        let tensor_count = self.count(MAX_TENSORS, SMALLEST_TENSOR, "tensors")?;
        let key_count = self.count(MAX_KEYS, SMALLEST_KEY, "metadata entries")?;
        let mut metadata = BTreeMap::new();
        for _ in 0..key_count {
            let key = self.text(MAX_KEY_BYTES)?;
            let kind = self.u32()?;
            let value = self.value(kind)?;
            if metadata.insert(key, value).is_some() {
                return Err(BadGguf::Corrupt("a metadata key appears twice".to_owned()));
            }
        }
        let mut placed = Vec::new();
        for _ in 0..tensor_count {
            placed.push(self.tensor()?);
        }
        let alignment =
            metadata.get("general.alignment").and_then(Value::as_u64).unwrap_or(DEFAULT_ALIGNMENT);
        if !alignment.is_power_of_two() || alignment > 1 << 20 {
            return Err(missing("general.alignment"));
        }
        let data = self.position.next_multiple_of(alignment);
        let mut tensors = Vec::with_capacity(placed.len());
        for (tensor, offset) in placed {
            let needed = data.saturating_add(offset).saturating_add(tensor.bytes);
            if needed > self.file_bytes {
                return Err(BadGguf::Truncated { needed, there: self.file_bytes });
            }
            tensors.push(tensor);
        }
        Ok(Header { metadata, tensors, file_bytes: self.file_bytes })
    }

    fn tensor(&mut self) -> Result<(Tensor, u64), BadGguf> {
        let name = self.text(MAX_KEY_BYTES)?;
        let count = self.u32()?;
        if count > MAX_DIMENSIONS {
            return Err(BadGguf::Corrupt(format!("a tensor has {count} dimensions")));
        }
        let dimensions = (0..count).map(|_| self.u64()).collect::<Result<Vec<_>, _>>()?;
        let kind = self.u32()?;
        let offset = self.u64()?;
        let (_, block, block_bytes) = tensor_type(kind).ok_or(BadGguf::UnknownTensorType(kind))?;
        let elements = dimensions.iter().try_fold(1_u64, |product, n| product.checked_mul(*n));
        let bytes = elements.filter(|n| n % block == 0).and_then(|n| (n / block).checked_mul(block_bytes));
        let bytes = bytes.ok_or_else(|| BadGguf::Corrupt("a tensor's size makes no sense".to_owned()))?;
        Ok((Tensor { name, dimensions, kind, bytes }, offset))
    }

    fn value(&mut self, kind: u32) -> Result<Value, BadGguf> {
        if kind != 9 {
            return self.scalar(kind);
        }
        let item_kind = self.u32()?;
        let smallest = match item_kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 | 10..=12 => 8,
            other => return Err(BadGguf::Corrupt(format!("an array of values of type {other}"))),
        };
        let count = self.count(MAX_ELEMENTS - self.elements, smallest, "array elements")?;
        self.elements += count;
        (0..count).map(|_| self.scalar(item_kind)).collect::<Result<_, _>>().map(Value::Array)
    }

    fn scalar(&mut self, kind: u32) -> Result<Value, BadGguf> {
        Ok(match kind {
            0 => Value::Unsigned(self.take::<1>()?[0].into()),
            1 => Value::Signed(i8::from_le_bytes(self.take()?).into()),
            2 => Value::Unsigned(u16::from_le_bytes(self.take()?).into()),
            3 => Value::Signed(i16::from_le_bytes(self.take()?).into()),
            4 => Value::Unsigned(self.u32()?.into()),
            5 => Value::Signed(i32::from_le_bytes(self.take()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.take()?).into()),
            7 => Value::Bool(self.take::<1>()?[0] != 0),
            8 => Value::Text(self.text(MAX_HEADER_BYTES)?),
            10 => Value::Unsigned(self.u64()?),
            11 => Value::Signed(i64::from_le_bytes(self.take()?)),
            12 => Value::Float(f64::from_le_bytes(self.take()?)),
            other => return Err(BadGguf::Corrupt(format!("a value of unknown type {other}"))),
        })
    }

    /// A count of things that take at least `smallest` bytes each.
    fn count(&mut self, limit: u64, smallest: u64, what: &str) -> Result<u64, BadGguf> {
        let count = self.u64()?;
        if count > limit {
            return Err(BadGguf::Corrupt(format!("it claims {count} {what}")));
        }
        self.must_have(count * smallest)?;
        Ok(count)
    }

    fn text(&mut self, limit: u64) -> Result<String, BadGguf> {
        let length = self.u64()?;
        if length > limit {
            return Err(BadGguf::Corrupt(format!("it claims a text of {length} bytes")));
        }
        self.must_have(length)?;
        let mut bytes = vec![0; length as usize];
        self.input.read_exact(&mut bytes)?;
        self.position += length;
        String::from_utf8(bytes).map_err(|_| BadGguf::Corrupt("a text is not UTF-8".to_owned()))
    }

    fn u32(&mut self) -> Result<u32, BadGguf> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, BadGguf> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadGguf> {
        self.must_have(N as u64)?;
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.position += N as u64;
        Ok(bytes)
    }

    fn must_have(&self, bytes: u64) -> Result<(), BadGguf> {
        let needed = self.position.saturating_add(bytes);
        if needed <= self.end {
            Ok(())
        } else if self.end < self.file_bytes {
            Err(BadGguf::Corrupt(format!("its header is over {MAX_HEADER_BYTES} bytes")))
        } else {
            Err(BadGguf::Truncated { needed, there: self.file_bytes })
        }
    }
}

#[cfg(test)]
#[path = "gguf_tests.rs"]
mod tests;
