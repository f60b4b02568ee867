//! English.

use wakati_agent::{
    Activity, BrokerRefusal, Fault, Hardware, Kind, LocalTime, Refused, Rest, SettingProblem, Weekday,
    WorkerRefusal,
};

use crate::{clock, list, memory};

pub(crate) fn jobs(jobs: u32) -> String {
    match jobs {
        1 => "1 job".into(),
        _ => format!("{jobs} jobs"),
    }
}

pub(crate) fn activity(activity: &Activity) -> String {
    match activity {
        Activity::Serving { model, .. } => format!("Serving {model}"),
        Activity::Warming { model, .. } => format!("Loading {model}"),
        Activity::Unreachable { .. } => "Cannot reach the broker".into(),
        Activity::Off => "Off".into(),
        Activity::Resting(rest) => resting(rest),
        Activity::Yielding(Rest::Game { name, .. }) => format!("Handing the machine to {name}"),
        Activity::Yielding(Rest::WorkerEnded) => resting(&Rest::WorkerEnded),
        Activity::Yielding(_) => "Handing the machine back".into(),
    }
}

fn resting(rest: &Rest) -> String {
    match rest {
        Rest::Quitting => "Ending".into(),
        Rest::Game { name, .. } => format!("Resting - {name} is running"),
        Rest::Sleeping => "Resting - the machine goes to sleep".into(),
        Rest::Paused { until: Some(until) } => format!("Paused until {}", clock(*until)),
        Rest::Paused { until: None } => "Paused until you resume".into(),
        Rest::Starting => "Starting".into(),
        Rest::QuietAfterGame { name, .. } => format!("Resting - {name} has just ended"),
        Rest::Film { name } => format!("Resting - {name} shows a film"),
        Rest::GpuBusy => "Resting - another program keeps the GPU busy".into(),
        Rest::GpuMemory => "Resting - another program needs the GPU's memory".into(),
        Rest::TooHot { .. } => "Resting - the GPU is too hot".into(),
        Rest::OnBattery => "Resting - on battery".into(),
        Rest::Closed { .. } => "Resting - outside your hours".into(),
        Rest::Present { .. } => "Resting - you are here".into(),
        Rest::Fault(_) => "Not serving - something needs you".into(),
        Rest::NoRoom { .. } => "Resting - the model does not fit right now".into(),
        Rest::NoModel => "Not serving - no model".into(),
        Rest::NotJoined => "Not serving - no broker joined".into(),
        Rest::BrokerRefused(_) => "Not serving - the broker refused this machine".into(),
        Rest::Connecting => "Connecting to the broker".into(),
        Rest::NoGpu => "Not serving - no supported GPU".into(),
        Rest::WorkerEnded => "Starting again - the model stopped unexpectedly".into(),
    }
}

pub(crate) fn reason(activity: &Activity) -> String {
    match activity {
        Activity::Serving { hardware: Hardware::Processor, .. }
        | Activity::Warming { hardware: Hardware::Processor, .. } => {
            "No supported GPU, serving on the processor.".into()
        }
        Activity::Unreachable { .. } => {
            "The model stays loaded, and serving goes on as soon as the broker answers.".into()
        }
        Activity::Resting(rest) | Activity::Yielding(rest) => rest_reason(rest),
        Activity::Serving { hardware: Hardware::Gpu, .. }
        | Activity::Warming { hardware: Hardware::Gpu, .. }
        | Activity::Off => String::new(),
    }
}

fn rest_reason(rest: &Rest) -> String {
    match rest {
        Rest::Game { because, .. } => {
            format!("Serving returns by itself when it has ended. Seen: {}.", list(because, sign))
        }
        Rest::Film { .. } => "Serving returns by itself when it has ended.".into(),
        Rest::GpuBusy => "Serving returns when the GPU has been calm for 90 s.".into(),
        Rest::GpuMemory => "Serving returns when enough of it has been free for 90 s.".into(),
        Rest::TooHot { limit } => {
            format!("Your limit is {} °C. Serving returns when it has cooled down.", limit.0)
        }
        Rest::OnBattery => "Serving returns when the machine is plugged in.".into(),
        Rest::Closed { opens: Some(opens) } => {
            format!("Serving opens on {} at {}.", day(*opens), clock(*opens))
        }
        Rest::Closed { opens: None } => "Your calendar opens no window in the next two weeks.".into(),
        Rest::Present { minutes } => {
            format!("Serving returns when nobody has touched the machine for {minutes} min.")
        }
        Rest::QuietAfterGame { seconds, .. } => {
            format!("Serving returns when no game has run for {seconds} s.")
        }
        Rest::Fault(told) => fault(told),
        Rest::NoRoom { needed_mebibytes, free_mebibytes } => {
            format!(
                "It needs {} of memory, and {} is free. It is tried again by itself.",
                memory(*needed_mebibytes),
                memory(*free_mebibytes)
            )
        }
        Rest::NoModel => "Import a GGUF file with wakati-node import, then restart.".into(),
        Rest::NotJoined => "Join a broker with wakati-node join and an invite, then restart.".into(),
        Rest::BrokerRefused(refusal) => broker_refusal(*refusal).into(),
        Rest::NoGpu => "To serve on the processor, set on_processor to true in the settings.".into(),
        Rest::Connecting => "The model is loaded as soon as the broker answers.".into(),
        Rest::Quitting | Rest::Sleeping | Rest::Paused { .. } | Rest::Starting | Rest::WorkerEnded => {
            String::new()
        }
    }
}

pub(crate) fn sign(kind: Kind) -> &'static str {
    match kind {
        Kind::Launcher => "a launcher started it",
        Kind::OwnersList => "it is on your list",
        Kind::GameMode => "it told the system that it is a game",
        Kind::GameCompositor => "it runs in a compositor for games",
        Kind::RemotePlay => "it plays from another machine",
        Kind::VirtualReality => "a VR headset is in use",
        Kind::GameFolder => "it lies in a game library",
        Kind::Compatibility => "it runs under Wine or Proton",
        Kind::FullScreen => "it covers the screen",
        Kind::Film => "it shows a film",
    }
}

fn day(time: LocalTime) -> &'static str {
    match time.weekday() {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

fn broker_refusal(refusal: BrokerRefusal) -> &'static str {
    match refusal {
        BrokerRefusal::Version => "The broker speaks another version: update Wakati.",
        BrokerRefusal::Signature => "The broker does not accept this machine's key.",
        BrokerRefusal::NotInvited => "The broker does not know this machine: join with an invite.",
        BrokerRefusal::BadInvite => "The invite is not valid, already used or expired: ask for a new one.",
        BrokerRefusal::Full => "The broker has too many machines at the moment.",
        BrokerRefusal::AlreadyHere => "This machine's key is already connected from somewhere else.",
        BrokerRefusal::BrokerChanged => {
            "Another broker answers at this address. If that is meant, join again."
        }
        BrokerRefusal::BadAddress => "The broker's address in the settings cannot be used.",
        BrokerRefusal::Unknown => "The broker gave a reason that this version does not know.",
    }
}

pub(crate) fn fault(fault: &Fault) -> String {
    match fault {
        Fault::ProcessesUnreadable => {
            "The running programs cannot be read, so a game that starts may be missed.".into()
        }
        Fault::GpuUnreadable => "The GPU does not answer.".into(),
        Fault::WorkerKeepsEnding { times, within_minutes } => {
            format!("The model stopped {times} times within {within_minutes} minutes. Resume tries again.")
        }
        Fault::WorkerRefused(refusal) => worker_refusal(*refusal),
        Fault::WorkerNotStarted => {
            "The worker program is missing or cannot be started. Reinstall Wakati, then resume.".into()
        }
        Fault::MemoryHeld { mebibytes: Some(mebibytes) } => {
            format!("{} of memory is not free yet.", memory(*mebibytes))
        }
        Fault::MemoryHeld { mebibytes: None } => "The worker has not ended yet.".into(),
        Fault::Setting(problem) => setting(problem),
        Fault::LogUnwritable => "The earnings log cannot be written. Is the disk full?".into(),
        Fault::ReceiptDisagrees { sequence } => {
            format!("Receipt {sequence} from the broker differs from this machine's own record.")
        }
    }
}

fn worker_refusal(refusal: WorkerRefusal) -> String {
    match refusal {
        WorkerRefusal::NoFile => "The model's file is missing or cannot be read.".into(),
        WorkerRefusal::CorruptFile => "The model's file is damaged. Import it again.".into(),
        WorkerRefusal::UnknownArchitecture => "Wakati cannot run this kind of model.".into(),
        WorkerRefusal::DoesNotFit { needed_mebibytes, free_mebibytes } => format!(
            "The model needs {} of memory, and {} is free. Resume tries again.",
            memory(needed_mebibytes),
            memory(free_mebibytes)
        ),
        WorkerRefusal::NoAvx2 => "This processor lacks AVX2, which serving on the processor needs.".into(),
        WorkerRefusal::Engine => "The model could not be loaded. Resume tries again.".into(),
    }
}

fn setting(problem: &SettingProblem) -> String {
    match problem {
        SettingProblem::BadValue { option } => {
            format!("The setting {option} has a value that cannot be used; the default holds.")
        }
        SettingProblem::UnknownOption { option } => format!("There is no setting {option}."),
        SettingProblem::SetAside { file } => {
            format!("The settings could not be understood and are kept as {file}; the defaults hold.")
        }
        SettingProblem::Unreadable { file } => {
            format!("The settings file {file} cannot be read; the defaults hold.")
        }
    }
}

pub(crate) fn refused(refused: &Refused) -> String {
    match refused {
        Refused::GameRunning { name } => format!("Not while {name} is running."),
        Refused::NotPaused => "There is nothing to resume.".into(),
        Refused::NothingToOverride => "Nothing is in the way that you could override.".into(),
        Refused::Quitting => "Wakati is ending.".into(),
    }
}
