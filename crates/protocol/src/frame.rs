//! Framing for byte streams: each message is preceded by its length as a protobuf varint.
//!
//! WebSocket messages need no framing of their own; [`MAX_FRAME_BYTES`] bounds both.

use prost::Message;
use prost::bytes::{Buf, Bytes, BytesMut};

/// The largest frame that either side accepts. A prompt of a million tokens is under 4 MiB.
pub const MAX_FRAME_BYTES: usize = 4 << 20;

/// A byte stream that does not speak this protocol.
#[derive(Debug, thiserror::Error)]
pub enum BadFrame {
    #[error("a frame of {0} bytes is over the limit of {MAX_FRAME_BYTES}")]
    TooLarge(u64),
    #[error("a frame could not be read: {0}")]
    Garbled(#[from] prost::DecodeError),
}

/// Appends one framed message to `out`.
pub fn put<M: Message>(message: &M, out: &mut BytesMut) {
    out.reserve(message.encoded_len() + 10);
    // Writing to a growing buffer cannot run out of room.
    let _ = message.encode_length_delimited(out);
}

/// Takes the next whole message from the front of `buffer`, or `None` when it has not all arrived.
///
/// # Errors
/// When the length is over [`MAX_FRAME_BYTES`] or the bytes are not such a message.
pub fn take<M: Message + Default>(buffer: &mut BytesMut) -> Result<Option<M>, BadFrame> {
    let mut peek = &buffer[..];
    let length = match prost::encoding::decode_varint(&mut peek) {
        Ok(length) => length,
        // A varint has at most ten bytes; with fewer here, the rest may still come.
        Err(_) if buffer.len() < 10 => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if length > MAX_FRAME_BYTES as u64 {
        return Err(BadFrame::TooLarge(length));
    }
    let header = buffer.len() - peek.len();
    if peek.len() < length as usize {
        return Ok(None);
    }
    buffer.advance(header);
    let body: Bytes = buffer.split_to(length as usize).freeze();
    Ok(Some(M::decode(body)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Cancel;

    #[test]
    fn a_message_arrives_whole_however_it_is_cut() {
        let message = Cancel { job: vec![1; 16], attempt: 300 };
        let mut wire = BytesMut::new();
        put(&message, &mut wire);
        for cut in 0..wire.len() {
            let mut buffer = BytesMut::from(&wire[..cut]);
            assert!(take::<Cancel>(&mut buffer).unwrap().is_none(), "cut at {cut}");
            buffer.extend_from_slice(&wire[cut..]);
            assert_eq!(take::<Cancel>(&mut buffer).unwrap(), Some(message.clone()));
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn an_oversized_frame_is_refused_before_it_arrives() {
        let mut buffer = BytesMut::new();
        prost::encoding::encode_varint(1 << 40, &mut buffer);
        assert!(matches!(take::<Cancel>(&mut buffer), Err(BadFrame::TooLarge(_))));
    }
}
