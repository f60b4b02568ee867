//! How much memory the worker holds, and how much a model will take.

use mistralrs::Device;
use mistralrs::core::MemoryUsage;
use wakati_catalogue::gguf::{Header, Shape};

/// Bytes of one element of the key-value cache, at most: 32-bit floats.
const KV_ELEMENT_BYTES: u64 = 4;
/// Activations, logits, the runtime and rounding of allocations: a tenth of the weights and 256 MiB.
/// Measured on the processor: `SmolLM2` 135M, a file of 94 MiB, 337 MiB resident after loading.
const OVERHEAD_BYTES: u64 = 256 << 20;

/// Resident memory of this process in bytes; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    std::fs::read_to_string("/proc/self/status").ok().and_then(|text| line_in(&text, "VmRSS:")).unwrap_or(0)
}

/// Bytes that this process has read from files so far; `None` where the system does not say.
pub fn bytes_read() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok())
}

/// Free memory of the device that will hold the model: of the GPU, or what the system could give without swapping.
///
/// # Errors
/// When the device does not say.
pub fn free_bytes(device: &Device) -> mistralrs::Result<u64> {
    let available = || line_in(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:");
    match device.is_cpu().then(available).flatten() {
        Some(bytes) => Ok(bytes),
        None => Ok(MemoryUsage.get_memory_available(device)? as u64),
    }
}

/// Bytes that loading a model and serving `slots` jobs of `context` tokens takes, estimated from the file.
pub fn needed_bytes(header: &Header, shape: &Shape, context: u32, slots: u32) -> u64 {
    let cache = shape
        .kv_elements_per_token()
        .saturating_mul(KV_ELEMENT_BYTES)
        .saturating_mul(u64::from(context))
        .saturating_mul(u64::from(slots));
    // The engine unpacks the embedding to 32-bit floats beside the packed one.
    let embedding: u64 = header
        .tensors
        .iter()
        .filter(|tensor| tensor.name == "token_embd.weight")
        .map(|tensor| tensor.dimensions.iter().fold(4, |bytes: u64, n| bytes.saturating_mul(*n)))
        .sum();
    let weights = header.file_bytes + header.file_bytes / 10;
    weights.saturating_add(embedding).saturating_add(cache).saturating_add(OVERHEAD_BYTES)
}

/// The bytes in a line of `/proc` such as `VmRSS:   2048 kB`.
fn line_in(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_line_is_found_and_read() {
        let status = "Name:\twakati-worker\nVmPeak:\t  999 kB\nVmRSS:\t   2048 kB\nThreads:\t3\n";
        assert_eq!(line_in(status, "VmRSS:"), Some(2 << 20));
        assert_eq!(line_in("Name:\tx\n", "VmRSS:"), None);
    }

    #[test]
    fn more_slots_and_more_context_need_more_memory() {
        let shape = Shape {
            architecture: "llama".to_owned(),
            context: 8192,
            vocabulary: 100,
            layers: 30,
            heads: 9,
            kv_heads: 3,
            key_length: 64,
            value_length: 64,
        };
        let header = Header { metadata: Default::default(), tensors: Vec::new(), file_bytes: 1000 };
        let one = needed_bytes(&header, &shape, 1024, 1);
        // 30 layers, 3 heads, 128 elements of 4 bytes, 1,024 tokens.
        assert_eq!(one, 1100 + 47_185_920 + (256 << 20));
        assert_eq!(needed_bytes(&header, &shape, 2048, 2) - one, 3 * 47_185_920);
        assert_eq!(needed_bytes(&header, &shape, u32::MAX, u32::MAX), u64::MAX);
    }
}
