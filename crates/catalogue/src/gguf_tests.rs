use std::io::Cursor;

use super::*;

/// A GGUF with one F32 tensor of four elements, written by hand after the specification.
fn tiny() -> Vec<u8> {
    let mut out = b"GGUF".to_vec();
    out.extend(3_u32.to_le_bytes());
    out.extend(1_u64.to_le_bytes());
    out.extend(8_u64.to_le_bytes());
    put_text(&mut out, "general.architecture", "llama");
    for (key, number) in [
        ("llama.context_length", 64_u32),
        ("llama.embedding_length", 8),
        ("llama.block_count", 2),
        ("llama.attention.head_count", 4),
        ("llama.attention.head_count_kv", 2),
        ("general.file_type", 3),
    ] {
        put_bytes(&mut out, key);
        out.extend(4_u32.to_le_bytes());
        out.extend(number.to_le_bytes());
    }
    put_bytes(&mut out, "tokenizer.ggml.tokens");
    out.extend(9_u32.to_le_bytes());
    out.extend(8_u32.to_le_bytes());
    out.extend(3_u64.to_le_bytes());
    for token in ["a", "b", "ab"] {
        put_bytes(&mut out, token);
    }
    put_bytes(&mut out, "token_embd.weight");
    out.extend(1_u32.to_le_bytes());
    out.extend(4_u64.to_le_bytes());
    out.extend(0_u32.to_le_bytes());
    out.extend(0_u64.to_le_bytes());
    out.resize(out.len().next_multiple_of(32) + 16, 0);
    out
}

fn put_bytes(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_text(out: &mut Vec<u8>, key: &str, text: &str) {
    put_bytes(out, key);
    out.extend(8_u32.to_le_bytes());
    put_bytes(out, text);
}

fn read(bytes: &[u8]) -> Result<Header, BadGguf> {
    Reader::new(Cursor::new(bytes), bytes.len() as u64).header()
}

#[test]
fn a_whole_header_is_read() {
    let header = read(&tiny()).unwrap();
    let shape = header.shape().unwrap();
    assert_eq!((shape.context, shape.vocabulary, shape.layers), (64, 3, 2));
    // Two layers, two heads, keys and values of 8 / 4 = 2 elements.
    assert_eq!(shape.kv_elements_per_token(), 16);
    assert_eq!(header.quantisation(), "Q4_1");
    assert_eq!(header.tensors[0].bytes, 16);
}

#[test]
fn a_file_cut_anywhere_is_truncated_and_never_half_read() {
    let whole = tiny();
    for cut in 4..whole.len() {
        let result = read(&whole[..cut]);
        assert!(matches!(result, Err(BadGguf::Truncated { .. })), "cut at {cut}: {result:?}");
    }
}

#[test]
fn a_file_of_another_kind_is_named_as_such() {
    assert!(matches!(read(b""), Err(BadGguf::NotGguf)));
    assert!(matches!(read(b"PK\x03\x04 something else"), Err(BadGguf::NotGguf)));
    let mut old = tiny();
    old[4] = 1;
    assert!(matches!(read(&old), Err(BadGguf::Version(1))));
}

#[test]
fn a_lie_about_a_length_costs_no_memory() {
    // Every eight bytes in turn become a huge number: each must be refused or harmless, none may allocate it.
    let whole = tiny();
    for at in 8..whole.len() - 8 {
        for lie in [u64::MAX, 1 << 62, 1 << 40, 1 << 32] {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&lie.to_le_bytes());
            let _ = read(&bytes).and_then(|header| header.shape());
        }
    }
    // Believed, the smallest lie takes 4 GiB. Address space is counted: memory that is not touched shows nowhere else.
    assert!(most_memory() < 1 << 32, "{} bytes", most_memory());
}

/// The most address space that this process ever had, in bytes; 0 where the system does not tell.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:")?.trim().strip_suffix(" kB"));
    peak.map_or(0, |kib| kib.parse::<u64>().unwrap() * 1024)
}

#[test]
fn an_unknown_architecture_is_named() {
    let bytes = String::from_utf8_lossy(&tiny()).replace("llama", "blimp").into_bytes();
    let error = read(&bytes).unwrap().shape().unwrap_err();
    assert!(matches!(error, BadGguf::UnknownArchitecture(name) if name == "blimp"));
}
