//! The tray's labels and the notices' texts. Sentences about the node's state are not here: they come from the node.

use wakati_protocol::desk::HandOver;

/// The labels of one language.
#[derive(Debug)]
pub struct Labels {
    pub pause_hour: &'static str,
    pub pause_tomorrow: &'static str,
    pub pause_until: &'static str,
    pub resume: &'static str,
    pub serve_anyway: &'static str,
    pub open: &'static str,
    pub quit: &'static str,
    today: fn(&str, u32, u32) -> String,
    handed_over: fn(&str, &str) -> String,
}

impl Labels {
    /// The labels of a language, by its tag; English for one that has none.
    pub fn of(language: &str) -> &'static Self {
        if language.split('-').next() == Some("sw") { &SWAHILI } else { &ENGLISH }
    }

    /// "Today: $1.84 - 3 h 12 min".
    pub fn today(&self, money: &str, served_minutes: u32) -> String {
        (self.today)(money, served_minutes / 60, served_minutes % 60)
    }

    /// "Your machine went to Elden Ring in 0.6 s", rounded up so that nothing reads faster than it was.
    pub fn handed_over(&self, hand_over: &HandOver) -> String {
        let tenths = hand_over.memory_back_ms.div_ceil(100).max(1);
        (self.handed_over)(&hand_over.to, &format!("{}.{}", tenths / 10, tenths % 10))
    }
}

static ENGLISH: Labels = Labels {
    pause_hour: "Pause for 1 hour",
    pause_tomorrow: "Pause until tomorrow morning",
    pause_until: "Pause until I resume",
    resume: "Resume",
    serve_anyway: "Serve anyway...",
    open: "Open Wakati",
    quit: "Quit",
    today: |money, hours, minutes| match hours {
        0 => format!("Today: {money} - {minutes} min"),
        _ => format!("Today: {money} - {hours} h {minutes} min"),
    },
    handed_over: |to, seconds| format!("Your machine went to {to} in {seconds} s"),
};

static SWAHILI: Labels = Labels {
    pause_hour: "Sitisha kwa saa 1",
    pause_tomorrow: "Sitisha hadi kesho asubuhi",
    pause_until: "Sitisha hadi niendelee",
    resume: "Endelea",
    serve_anyway: "Hudumu hata hivyo...",
    open: "Fungua Wakati",
    quit: "Funga programu",
    today: |money, hours, minutes| match hours {
        0 => format!("Leo: {money} - dakika {minutes}"),
        _ => format!("Leo: {money} - saa {hours} dakika {minutes}"),
    },
    handed_over: |to, seconds| format!("Kompyuta yako ilikabidhiwa {to} kwa sekunde {seconds}"),
};
