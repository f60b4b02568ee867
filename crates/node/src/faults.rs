//! What is wrong here, as the agent's faults.

use std::path::Path;

use wakati_agent::{BrokerRefusal, Fault, SettingProblem};
use wakati_protocol::link::RefuseReason;

use crate::link::Refusal;
use crate::settings::Problem;

/// A problem of the settings file.
#[must_use]
pub fn of_setting(problem: Problem) -> Fault {
    Fault::Setting(problem_of_setting(problem))
}

/// The same, without being a fault yet.
#[must_use]
pub fn problem_of_setting(problem: Problem) -> SettingProblem {
    match problem {
        Problem::BadValue(option) => SettingProblem::BadValue { option },
        Problem::UnknownOption(option) => SettingProblem::UnknownOption { option },
        Problem::SetAside(file) => SettingProblem::SetAside { file: name(&file) },
        Problem::Unreadable(file) => SettingProblem::Unreadable { file: name(&file) },
    }
}

/// Why there is no session.
#[must_use]
pub fn of_refusal(refusal: &Refusal) -> BrokerRefusal {
    match refusal {
        Refusal::Broker(reason) => match reason {
            RefuseReason::Unknown => BrokerRefusal::Unknown,
            RefuseReason::Version => BrokerRefusal::Version,
            RefuseReason::Signature => BrokerRefusal::Signature,
            RefuseReason::NotInvited => BrokerRefusal::NotInvited,
            RefuseReason::BadInvite => BrokerRefusal::BadInvite,
            RefuseReason::Full => BrokerRefusal::Full,
            RefuseReason::AlreadyHere => BrokerRefusal::AlreadyHere,
        },
        Refusal::BrokerChanged { .. } => BrokerRefusal::BrokerChanged,
        Refusal::Url(_) => BrokerRefusal::BadAddress,
    }
}

fn name(file: &Path) -> String {
    file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned())
}
