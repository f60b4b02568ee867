//! Putting together what is shown: the one place in which a snapshot is made.

use std::path::Path;

use wakati_agent::{Activity, Fault, Link, Rest, Status};
use wakati_protocol::desk::{Denied, Figures, HandOver, LinkState, Machine, ModelOnOffer, Snapshot};
use wakati_protocol::ids::NodeId;
use wakati_protocol::link::Beat;
use wakati_protocol::units::MiB;

use crate::sentences::Sentences;
use crate::station::Serving;

/// The most faults of one kind that are shown; the newest stay.
const MOST_FAULTS: usize = 3;

/// What is shown, apart from what the agent says.
#[derive(Debug)]
pub struct Scene {
    node: NodeId,
    pub sentences: Sentences,
    model: Option<ModelOnOffer>,
    pub link: Link,
    pub machine: Machine,
    pub figures: Option<Figures>,
    pub tokens_per_second: Vec<f32>,
    pub worker_resident: Option<u64>,
    /// What the newest worker's sandbox enforces.
    pub sandbox: Option<Vec<Denied>>,
    pub last_hand_over: Option<HandOver>,
    /// What went wrong in this program, oldest first.
    faults: Vec<Fault>,
    /// Where a damaged log was put.
    log_set_aside: Option<String>,
}

impl Scene {
    #[must_use]
    pub fn new(node: NodeId, sentences: Sentences, serving: Option<&Serving>, faults: Vec<Fault>) -> Self {
        let model = serving.map(|serving| ModelOnOffer {
            name: serving.model.entry.name.clone(),
            digest: serving.model.entry.digest,
            prices: serving.prices,
            slots: serving.slots,
            context: serving.context,
        });
        Self {
            node,
            sentences,
            model,
            link: Link::NotJoined,
            machine: Machine::default(),
            figures: None,
            tokens_per_second: Vec::new(),
            worker_resident: None,
            sandbox: None,
            last_hand_over: None,
            faults,
            log_set_aside: None,
        }
    }

    /// A damaged log was put here.
    pub fn log_was_set_aside(&mut self, file: &Path) {
        self.log_set_aside = file.file_name().map(|name| name.to_string_lossy().into_owned());
    }

    /// Something went wrong. It is shown until the program ends.
    pub fn fault(&mut self, fault: Fault) {
        if self.faults.contains(&fault) {
            return;
        }
        let kind = std::mem::discriminant(&fault);
        let same = |known: &&Fault| std::mem::discriminant(*known) == kind;
        if self.faults.iter().filter(same).count() >= MOST_FAULTS {
            let oldest = self.faults.iter().position(|known| std::mem::discriminant(known) == kind);
            oldest.map(|oldest| self.faults.remove(oldest));
        }
        self.faults.push(fault);
    }

    /// Everything that a person may see now.
    #[must_use]
    pub fn snapshot(&self, status: &Status, active_jobs: u32) -> Snapshot {
        let faults = status.faults.iter().chain(&self.faults);
        let mut faults: Vec<_> = faults.map(|fault| self.sentences.fault(fault)).collect();
        faults.extend(self.log_set_aside.as_deref().map(|file| self.sentences.log_set_aside(file)));
        Snapshot {
            language: self.sentences.tag().into(),
            game: game(&status.activity),
            shape: status.activity.shape(),
            sentence: self.sentences.status(status),
            reason: self.sentences.reason(status),
            primary: status.primary(),
            may_serve_anyway: status.may_serve_anyway(),
            node: self.node,
            link: match self.link {
                Link::NotJoined => LinkState::NotJoined,
                Link::Dialling => LinkState::Dialling,
                Link::Joined => LinkState::Joined,
                Link::Refused(_) => LinkState::Refused,
            },
            model: self.model.clone(),
            active_jobs,
            tokens_per_second: self.tokens_per_second.clone(),
            figures: self.figures,
            machine: Machine {
                worker_resident: self.worker_resident.map(MiB::holding),
                sandbox: self.sandbox.clone(),
                ..self.machine.clone()
            },
            last_hand_over: self.last_hand_over.clone(),
            faults,
        }
    }

    /// What the next beat says.
    #[must_use]
    pub fn beat(&self, active_jobs: u32) -> Beat {
        Beat {
            number: 0,
            active_jobs,
            free_vram_mib: self.machine.vram_free.and_then(|free| u32::try_from(free.0).ok()),
            temperature_celsius: self.machine.temperature.map(|temperature| temperature.0),
        }
    }
}

/// The game that has the machine, or is about to get it.
fn game(activity: &Activity) -> Option<String> {
    match activity {
        Activity::Resting(Rest::Game { name, .. }) | Activity::Yielding(Rest::Game { name, .. }) => {
            Some(name.clone())
        }
        Activity::Resting(_)
        | Activity::Yielding(_)
        | Activity::Warming { .. }
        | Activity::Serving { .. }
        | Activity::Unreachable { .. }
        | Activity::Off => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_faults_of_a_kind_are_kept() {
        let mut scene = Scene::new(NodeId([1; 32]), Sentences::new("en"), None, vec![Fault::LogUnwritable]);
        for sequence in [1, 2, 3, 3, 4] {
            scene.fault(Fault::ReceiptDisagrees { sequence });
        }
        let kept = [2, 3, 4].map(|sequence| Fault::ReceiptDisagrees { sequence });
        assert_eq!(scene.faults[1..], kept);
        assert_eq!(scene.faults[0], Fault::LogUnwritable);
    }
}
