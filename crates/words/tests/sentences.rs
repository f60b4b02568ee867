//! Every sentence, in every language.

use wakati_agent::{
    Activity, BrokerRefusal, Fault, Hardware, Kind, LocalTime, Refused, Rest, SettingProblem, Status,
    WorkerRefusal,
};
use wakati_protocol::units::{Celsius, Percent};
use wakati_words::Language;

fn faults() -> Vec<Fault> {
    let (option, file) = (String::from("model.slots"), String::from("settings.toml"));
    let settings = [
        SettingProblem::BadValue { option: option.clone() },
        SettingProblem::UnknownOption { option },
        SettingProblem::SetAside { file: file.clone() },
        SettingProblem::Unreadable { file },
    ];
    let workers = [
        WorkerRefusal::NoFile,
        WorkerRefusal::CorruptFile,
        WorkerRefusal::UnknownArchitecture,
        WorkerRefusal::DoesNotFit { needed_mebibytes: 9000, free_mebibytes: 512 },
        WorkerRefusal::NoAvx2,
        WorkerRefusal::Engine,
    ];
    let mut faults = vec![
        Fault::ProcessesUnreadable,
        Fault::GpuUnreadable,
        Fault::WorkerKeepsEnding { times: 5, within_minutes: 15 },
        Fault::WorkerNotStarted,
        Fault::MemoryHeld { mebibytes: Some(300) },
        Fault::MemoryHeld { mebibytes: None },
        Fault::LogUnwritable,
        Fault::ReceiptDisagrees { sequence: 7 },
    ];
    faults.extend(settings.map(Fault::Setting));
    faults.extend(workers.map(Fault::WorkerRefused));
    faults
}

fn kinds() -> [Kind; 10] {
    [
        Kind::Launcher,
        Kind::OwnersList,
        Kind::GameMode,
        Kind::GameCompositor,
        Kind::RemotePlay,
        Kind::VirtualReality,
        Kind::GameFolder,
        Kind::Compatibility,
        Kind::FullScreen,
        Kind::Film,
    ]
}

fn rests() -> Vec<Rest> {
    let name = String::from("Elden Ring");
    let refusals = [
        BrokerRefusal::Version,
        BrokerRefusal::Signature,
        BrokerRefusal::NotInvited,
        BrokerRefusal::BadInvite,
        BrokerRefusal::Full,
        BrokerRefusal::AlreadyHere,
        BrokerRefusal::BrokerChanged,
        BrokerRefusal::BadAddress,
        BrokerRefusal::Unknown,
    ];
    let mut rests = vec![
        Rest::Quitting,
        Rest::Sleeping,
        Rest::Film { name: name.clone() },
        Rest::GpuBusy,
        Rest::GpuMemory,
        Rest::TooHot { limit: Celsius(83) },
        Rest::OnBattery,
        Rest::Closed { opens: None },
        Rest::Present { minutes: 15 },
        Rest::Paused { until: Some(LocalTime::constant(2026, 7, 1, 15, 5, 0, 0)) },
        Rest::Paused { until: None },
        Rest::Starting,
        Rest::QuietAfterGame { name, seconds: 30 },
        Rest::NoModel,
        Rest::NoRoom { needed_mebibytes: 4403, free_mebibytes: 900 },
        Rest::NotJoined,
        Rest::Connecting,
        Rest::NoGpu,
        Rest::WorkerEnded,
    ];
    rests.extend(kinds().map(|kind| Rest::Game { name: "Elden Ring".into(), because: vec![kind] }));
    // Every day of one week.
    rests.extend(
        (1..8).map(|day| Rest::Closed { opens: Some(LocalTime::constant(2026, 6, day, 22, 0, 0, 0)) }),
    );
    rests.extend(refusals.map(Rest::BrokerRefused));
    rests.extend(faults().into_iter().map(Rest::Fault));
    rests
}

fn activities() -> Vec<Activity> {
    let model = String::from("SmolLM2 135M");
    let mut all = vec![Activity::Off];
    for hardware in [Hardware::Gpu, Hardware::Processor] {
        let model = model.clone();
        all.push(Activity::Warming { model: model.clone(), hardware });
        all.push(Activity::Serving { model: model.clone(), hardware });
        all.push(Activity::Unreachable { model, hardware });
    }
    all.extend(
        rests().into_iter().flat_map(|rest| [Activity::Yielding(rest.clone()), Activity::Resting(rest)]),
    );
    all
}

fn status(activity: Activity) -> Status {
    let faults = Vec::new();
    Status { activity, jobs: 0, loaded: None, faults, resume_refused: None, pause_refused: None }
}

fn refusals() -> [Refused; 4] {
    [
        Refused::GameRunning { name: "Elden Ring".into() },
        Refused::NotPaused,
        Refused::NothingToOverride,
        Refused::Quitting,
    ]
}

/// Every sentence of a language, in the same order for each.
fn sentences(language: Language) -> Vec<String> {
    let mut all: Vec<String> = activities().iter().map(|activity| language.activity(activity)).collect();
    all.extend(activities().iter().map(|activity| language.evidence(activity)));
    all.extend(activities().into_iter().map(|activity| language.reason(&status(activity))));
    all.extend(faults().iter().map(|fault| language.fault(fault)));
    all.extend(refusals().iter().map(|refused| language.refused(refused)));
    all
}

#[test]
fn no_swahili_sentence_is_an_english_one() {
    let (english, swahili) = (sentences(Language::English), sentences(Language::Swahili));
    for (english, swahili) in english.iter().zip(&swahili) {
        assert!(english != swahili || english.is_empty(), "{english}");
        assert_eq!(english.is_empty(), swahili.is_empty(), "{english}{swahili}");
    }
}

#[test]
fn only_a_reason_may_be_missing_and_nothing_shouts() {
    for language in Language::ALL {
        for activity in activities() {
            assert!(!language.activity(&activity).is_empty(), "{activity:?}");
        }
        for sentence in sentences(language) {
            assert!(!sentence.contains(['!', '{', '}']), "{sentence}");
            assert_eq!(sentence.trim(), sentence);
        }
    }
}

#[test]
fn the_sentences_read_as_designed() {
    let english =
        |activity, jobs, loaded| Language::English.sentence(&Status { jobs, loaded, ..status(activity) });
    let serving = Activity::Serving { model: "SmolLM2 135M".into(), hardware: Hardware::Gpu };
    assert_eq!(english(serving.clone(), 2, None), "Serving SmolLM2 135M - 2 jobs");
    assert_eq!(english(serving.clone(), 1, None), "Serving SmolLM2 135M - 1 job");
    assert_eq!(english(serving, 0, None), "Serving SmolLM2 135M");
    let warming = Activity::Warming { model: "SmolLM2 135M".into(), hardware: Hardware::Processor };
    assert_eq!(english(warming.clone(), 0, Some(Percent(40))), "Loading SmolLM2 135M - 40%");
    assert_eq!(Language::English.reason(&status(warming)), "No supported GPU, serving on the processor.");
    let because = vec![Kind::GameFolder, Kind::FullScreen];
    let game = Activity::Resting(Rest::Game { name: "Elden Ring".into(), because });
    assert_eq!(english(game.clone(), 0, None), "Resting - Elden Ring is running");
    assert_eq!(
        Language::English.reason(&status(game)),
        "Serving returns by itself when it has ended. Seen: it lies in a game library, it covers the screen."
    );
    let closed = Rest::Closed { opens: Some(LocalTime::constant(2026, 6, 1, 22, 0, 0, 0)) };
    assert_eq!(
        Language::English.reason(&status(Activity::Resting(closed))),
        "Serving opens on Monday at 22:00."
    );
    let paused = Rest::Paused { until: Some(LocalTime::constant(2026, 7, 1, 15, 5, 0, 0)) };
    assert_eq!(english(Activity::Resting(paused), 0, None), "Paused until 15:05");
}

#[test]
fn a_model_that_does_not_fit_is_refused_with_the_numbers() {
    let refusal = WorkerRefusal::DoesNotFit { needed_mebibytes: 4403, free_mebibytes: 900 };
    for language in Language::ALL {
        let sentence = language.fault(&Fault::WorkerRefused(refusal));
        assert!(sentence.contains("4.2 GiB") && sentence.contains("900 MiB"), "{sentence}");
    }
}

#[test]
fn a_language_is_found_by_its_tag() {
    assert_eq!(Language::of("sw-KE"), Some(Language::Swahili));
    assert_eq!(Language::of("EN_us"), Some(Language::English));
    assert_eq!(Language::of("de"), None);
}
