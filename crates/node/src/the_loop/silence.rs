//! Which senses have been heard of lately. One that is silent for too long knows nothing, which is not a game.

use std::time::{Duration, Instant};

use wakati_agent::{Activity, Gpu, Observation, Seen, Sense};

use crate::look::Attention;

/// A sense that looks every five seconds or more often has failed when it has told nothing for this long.
const PATIENCE: Duration = Duration::from_secs(10);
/// A GPU that is not there is asked every ten seconds.
const GPU_PATIENCE: Duration = Duration::from_secs(15);

/// When each sense was last heard of, or said to be silent.
#[derive(Debug)]
pub struct Heard {
    processes: Instant,
    /// Not every system has this sense, so it is missed only once it has been heard of.
    screen: Option<Instant>,
    gpu: Instant,
}

impl Heard {
    pub fn new(now: Instant) -> Self {
        Self { processes: now, screen: None, gpu: now }
    }

    pub fn signs(&mut self, from: Sense, now: Instant) {
        match from {
            Sense::Processes => self.processes = now,
            Sense::Screen => self.screen = Some(now),
            // It tells changes alone.
            Sense::GameMode => {}
        }
    }

    pub fn gpu(&mut self, now: Instant) {
        self.gpu = now;
    }

    /// What the silent senses say. Each is told once in a while as long as it stays silent.
    pub fn silent(&mut self, now: Instant, activity: &Activity) -> Vec<Observation> {
        let mut all = Vec::new();
        let watched = [(Some(&mut self.processes), Sense::Processes), (self.screen.as_mut(), Sense::Screen)];
        for (heard, sense) in watched {
            if let Some(heard) = heard
                && now.duration_since(*heard) > PATIENCE
            {
                *heard = now;
                all.push(Observation::Signs(sense, Seen::Unreadable));
            }
        }
        if Attention::of(activity) == Attention::GpuLeftAlone {
            self.gpu = now;
        } else if now.duration_since(self.gpu) > GPU_PATIENCE {
            self.gpu = now;
            all.push(Observation::Gpu(Gpu::Unreadable));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakati_agent::{Hardware, Rest};

    #[test]
    fn a_gpu_that_is_left_alone_is_not_missed() {
        let began = Instant::now();
        let later = began + Duration::from_secs(60);
        let resting = Activity::Resting(Rest::OnBattery);
        let blind = |sense| Observation::Signs(sense, Seen::Unreadable);
        let mut heard = Heard::new(began);
        assert_eq!(heard.silent(later, &resting), [blind(Sense::Processes)]);
        let mut heard = Heard::new(began);
        heard.signs(Sense::Screen, began);
        assert_eq!(heard.silent(later, &resting), [Sense::Processes, Sense::Screen].map(blind));
        let serving = Activity::Serving { model: "m".into(), hardware: Hardware::Gpu };
        let mut heard = Heard::new(began);
        heard.signs(Sense::Processes, later);
        heard.signs(Sense::Screen, later);
        assert_eq!(heard.silent(later, &serving), [Observation::Gpu(Gpu::Unreadable)]);
        assert_eq!(heard.silent(later, &serving), []);
    }
}
