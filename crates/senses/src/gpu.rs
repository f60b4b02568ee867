//! The GPU, through NVML, which is loaded when it is first asked for. No NVML means no supported GPU, not a fault.
//!
//! Numbers that make no sense are dropped: a reading is `None` rather than wrong.

use std::collections::BTreeMap;

use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::{ProcessInfo, ProcessUtilizationSample};
use nvml_wrapper::{Device, Nvml};
use wakati_protocol::units::{Celsius, MiB, Percent, Watts};

/// Older samples of how busy a process keeps the GPU say nothing about now.
const SAMPLE_AGE_MICROSECONDS: u64 = 2_000_000;

/// What the GPU says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuSeen {
    /// There is none that is supported.
    Absent,
    /// There is one, but it did not answer.
    Unreadable,
    Present(GpuReading),
}

/// One reading of one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuReading {
    pub name: String,
    pub vram_total: MiB,
    pub vram_free: MiB,
    /// Held by the processes that were asked about; `None` where the system does not tell (Windows).
    pub vram_ours: Option<MiB>,
    pub temperature: Option<Celsius>,
    pub power: Option<Watts>,
    pub utilisation: Option<Percent>,
    /// How busy other processes keep it; `None` where that cannot be told from what we do.
    pub others_busy: Option<Percent>,
    /// Other processes that hold memory on it; `None` where the system does not tell.
    pub others: Option<u32>,
}

/// Asks the GPU. Each call may wake it from sleep, and may hang as long as the driver does.
#[derive(Debug, Default)]
pub struct Gpus {
    nvml: Option<Nvml>,
}

impl Gpus {
    /// Reads the GPU with the most memory. `ours` are the processes whose memory counts as ours.
    ///
    /// When there is no GPU, this tries again from the start: a driver may be loaded later.
    pub fn look(&mut self, ours: &[u32]) -> GpuSeen {
        let seen = match self.nvml() {
            Ok(nvml) => read(nvml, ours),
            Err(error) => Err(error),
        };
        match seen {
            Ok(Some(reading)) => GpuSeen::Present(reading),
            Ok(None) => GpuSeen::Absent,
            Err(error) => {
                tracing::debug!(%error, "the GPU cannot be read");
                // A driver that was unloaded or updated needs a fresh start.
                let was_there = self.nvml.take().is_some();
                if was_there && !is_absence(&error) { GpuSeen::Unreadable } else { absent_or_not(&error) }
            }
        }
    }

    fn nvml(&mut self) -> Result<&Nvml, NvmlError> {
        match &mut self.nvml {
            Some(nvml) => Ok(nvml),
            empty => Ok(empty.insert(Nvml::init()?)),
        }
    }
}

/// Whether this error says that there is no NVIDIA driver or GPU, rather than that it failed.
fn is_absence(error: &NvmlError) -> bool {
    matches!(
        error,
        NvmlError::LibloadingError(_)
            | NvmlError::LibraryNotFound
            | NvmlError::DriverNotLoaded
            | NvmlError::NotFound
    )
}

fn absent_or_not(error: &NvmlError) -> GpuSeen {
    if is_absence(error) { GpuSeen::Absent } else { GpuSeen::Unreadable }
}

fn read(nvml: &Nvml, ours: &[u32]) -> Result<Option<GpuReading>, NvmlError> {
    let mut largest = None;
    for index in 0..nvml.device_count()? {
        let device = nvml.device_by_index(index)?;
        let memory = device.memory_info()?;
        if largest.as_ref().is_none_or(|(_, most)| memory.total > *most) {
            largest = Some((device, memory.total));
        }
    }
    let Some((device, _)) = largest else { return Ok(None) };
    let memory = device.memory_info()?;
    let utilisation = device.utilization_rates().ok().and_then(|rates| percent(rates.gpu));
    let share = processes(&device).and_then(|processes| share(&processes, ours));
    Ok(Some(GpuReading {
        name: device.name()?,
        vram_total: MiB::holding(memory.total),
        vram_free: MiB(memory.free >> 20),
        vram_ours: share.map(|share| MiB::holding(share.ours_bytes)),
        temperature: device.temperature(TemperatureSensor::Gpu).ok().and_then(celsius),
        power: device.power_usage().ok().and_then(watts),
        others_busy: if ours.is_empty() {
            utilisation
        } else {
            samples(&device).map(|all| others_busy(&all, ours))
        },
        utilisation,
        others: share.map(|share| share.others),
    }))
}

/// Every process on a GPU. An idle GPU answers "not found", which is an empty list.
fn processes(device: &Device<'_>) -> Option<Vec<ProcessInfo>> {
    let empty = |answer| match answer {
        Err(NvmlError::NotFound) => Some(Vec::new()),
        answer => answer.ok(),
    };
    let mut all = empty(device.running_compute_processes())?;
    all.extend(empty(device.running_graphics_processes())?);
    Some(all)
}

/// How busy each process keeps the GPU. An idle GPU answers "not found", which is an empty list.
fn samples(device: &Device<'_>) -> Option<Vec<ProcessUtilizationSample>> {
    match device.process_utilization_stats(None) {
        Err(NvmlError::NotFound) => Some(Vec::new()),
        samples => samples.ok(),
    }
}

/// What the processes that are not ours add up to, by the newest sample of each. The driver keeps samples for
/// seconds after a process has fallen idle, so old ones are dropped, and so are those that make no sense.
fn others_busy(samples: &[ProcessUtilizationSample], ours: &[u32]) -> Percent {
    let newest = samples.iter().map(|sample| sample.timestamp).max().unwrap_or(0);
    let fresh = samples.iter().filter(|sample| newest - sample.timestamp <= SAMPLE_AGE_MICROSECONDS);
    let mut busy = BTreeMap::new();
    for sample in fresh.filter(|sample| !ours.contains(&sample.pid)) {
        let Some(share) = percent(sample.sm_util) else { continue };
        let known = busy.entry(sample.pid).or_insert((sample.timestamp, share));
        if known.0 <= sample.timestamp {
            *known = (sample.timestamp, share);
        }
    }
    let sum: u32 = busy.values().map(|(_, share)| u32::from(share.0)).sum();
    Percent(sum.min(100) as u8)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    ours_bytes: u64,
    others: u32,
}

/// A process that computes and draws is listed twice, with its whole memory each time.
fn share(processes: &[ProcessInfo], ours: &[u32]) -> Option<Held> {
    let mut held = Held { ours_bytes: 0, others: 0 };
    let mut counted = Vec::new();
    for process in processes {
        if counted.contains(&process.pid) {
            continue;
        }
        counted.push(process.pid);
        if !ours.contains(&process.pid) {
            held.others += 1;
            continue;
        }
        match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => held.ours_bytes += bytes,
            UsedGpuMemory::Unavailable => return None,
        }
    }
    Some(held)
}

/// The driver has been seen to report four thousand million per cent.
fn percent(raw: u32) -> Option<Percent> {
    u8::try_from(raw).ok().filter(|percent| *percent <= 100).map(Percent)
}

/// No GPU that works is hotter than water boils by half, or draws ten kilowatts.
fn celsius(raw: u32) -> Option<Celsius> {
    i32::try_from(raw).ok().filter(|degrees| (1..=150).contains(degrees)).map(Celsius)
}

fn watts(milliwatts: u32) -> Option<Watts> {
    (milliwatts < 10_000_000).then_some(Watts(milliwatts / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, used_gpu_memory: UsedGpuMemory) -> ProcessInfo {
        ProcessInfo { pid, used_gpu_memory, gpu_instance_id: None, compute_instance_id: None }
    }

    #[test]
    fn numbers_that_make_no_sense_are_dropped() {
        assert_eq!(percent(4_000_000_000), None);
        assert_eq!(percent(101), None);
        assert_eq!(percent(100), Some(Percent(100)));
        assert_eq!(celsius(0), None);
        assert_eq!(celsius(4_000_000_000), None);
        assert_eq!(celsius(71), Some(Celsius(71)));
        assert_eq!(watts(u32::MAX), None);
        assert_eq!(watts(312_700), Some(Watts(312)));
    }

    #[test]
    fn others_are_as_busy_as_their_newest_fresh_samples_say() {
        let sample = |pid, timestamp, sm_util| ProcessUtilizationSample {
            pid,
            timestamp,
            sm_util,
            mem_util: 0,
            enc_util: 0,
            dec_util: 0,
        };
        let second = 1_000_000;
        let samples = [
            sample(1, 20 * second, 90),
            sample(2, 20 * second, 30),
            sample(2, 19 * second, 80),
            sample(3, 20 * second, 25),
            // Eight seconds old.
            sample(4, 12 * second, 70),
            sample(5, 20 * second, 4_000_000_000),
        ];
        assert_eq!(others_busy(&samples, &[1]), Percent(55));
        assert_eq!(others_busy(&samples, &[]), Percent(100));
        assert_eq!(others_busy(&[], &[1]), Percent(0));
    }

    #[test]
    fn a_process_that_draws_and_computes_is_counted_once() {
        let used = UsedGpuMemory::Used(5 << 20);
        let list = [process(1, used.clone()), process(2, used.clone()), process(1, used)];
        assert_eq!(share(&list, &[1]), Some(Held { ours_bytes: 5 << 20, others: 1 }));
        assert_eq!(share(&[], &[1]), Some(Held { ours_bytes: 0, others: 0 }));
    }

    #[test]
    fn memory_that_the_system_does_not_tell_is_unknown_and_not_zero() {
        let list = [process(1, UsedGpuMemory::Unavailable), process(2, UsedGpuMemory::Unavailable)];
        assert_eq!(share(&list, &[1]), None);
        assert_eq!(share(&list, &[9]), Some(Held { ours_bytes: 0, others: 2 }));
    }
}
