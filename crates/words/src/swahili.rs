//! Kiswahili.

use wakati_agent::{
    Activity, BrokerRefusal, Fault, Hardware, Kind, LocalTime, Refused, Rest, SettingProblem, Weekday,
    WorkerRefusal,
};

use crate::{clock, list, memory};

pub(crate) fn jobs(jobs: u32) -> String {
    format!("kazi {jobs}")
}

pub(crate) fn activity(activity: &Activity) -> String {
    match activity {
        Activity::Serving { model, .. } => format!("Inahudumia {model}"),
        Activity::Warming { model, .. } => format!("Inapakia {model}"),
        Activity::Unreachable { .. } => "Dalali hapatikani".into(),
        Activity::Off => "Imezimwa".into(),
        Activity::Resting(rest) => resting(rest),
        Activity::Yielding(Rest::Game { name, .. }) => format!("Inaikabidhi {name} kompyuta"),
        Activity::Yielding(Rest::WorkerEnded) => resting(&Rest::WorkerEnded),
        Activity::Yielding(_) => "Inarudisha kompyuta".into(),
    }
}

fn resting(rest: &Rest) -> String {
    match rest {
        Rest::Quitting => "Inafunga".into(),
        Rest::Game { name, .. } => format!("Inapumzika - {name} inaendelea"),
        Rest::Sleeping => "Inapumzika - kompyuta inalala".into(),
        Rest::Paused { until: Some(until) } => format!("Imesitishwa hadi {}", clock(*until)),
        Rest::Paused { until: None } => "Imesitishwa hadi uendelee".into(),
        Rest::Starting => "Inaanza".into(),
        Rest::QuietAfterGame { name, .. } => format!("Inapumzika - {name} imeisha sasa hivi"),
        Rest::Film { name } => format!("Inapumzika - {name} inaonyesha filamu"),
        Rest::GpuBusy => "Inapumzika - programu nyingine inatumia GPU".into(),
        Rest::GpuMemory => "Inapumzika - programu nyingine inahitaji kumbukumbu ya GPU".into(),
        Rest::TooHot { .. } => "Inapumzika - GPU ina joto kupita kiasi".into(),
        Rest::OnBattery => "Inapumzika - inatumia betri".into(),
        Rest::Closed { .. } => "Inapumzika - nje ya saa zako".into(),
        Rest::Present { .. } => "Inapumzika - upo kwenye kompyuta".into(),
        Rest::Fault(_) => "Haihudumii - kuna jambo linalokuhitaji".into(),
        Rest::NoRoom { .. } => "Inapumzika - modeli haitoshei kwa sasa".into(),
        Rest::NoModel => "Haihudumii - hakuna modeli".into(),
        Rest::NotJoined => "Haihudumii - haijajiunga na dalali".into(),
        Rest::BrokerRefused(_) => "Haihudumii - dalali ameikataa kompyuta hii".into(),
        Rest::Connecting => "Inaunganisha na dalali".into(),
        Rest::NoGpu => "Haihudumii - hakuna GPU inayofaa".into(),
        Rest::WorkerEnded => "Inaanza tena - modeli ilisimama ghafla".into(),
    }
}

pub(crate) fn reason(activity: &Activity) -> String {
    match activity {
        Activity::Serving { hardware: Hardware::Processor, .. }
        | Activity::Warming { hardware: Hardware::Processor, .. } => {
            "Hakuna GPU inayofaa, inatumia prosesa.".into()
        }
        Activity::Unreachable { .. } => {
            "Modeli inabaki tayari, na huduma itaendelea mara dalali atakapojibu.".into()
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
            format!("Huduma itarudi yenyewe utakapoisha. Imeonekana: {}.", list(because, sign))
        }
        Rest::Film { .. } => "Huduma itarudi yenyewe itakapoisha.".into(),
        Rest::GpuBusy => "Huduma itarudi GPU ikitulia kwa sekunde 90.".into(),
        Rest::GpuMemory => "Huduma itarudi kumbukumbu ya kutosha ikiwa wazi kwa sekunde 90.".into(),
        Rest::TooHot { limit } => format!("Kikomo chako ni {} °C. Huduma itarudi ikipoa.", limit.0),
        Rest::OnBattery => "Huduma itarudi kompyuta ikichomekwa umeme.".into(),
        Rest::Closed { opens: Some(opens) } => {
            format!("Huduma itafunguka {} saa {}.", day(*opens), clock(*opens))
        }
        Rest::Closed { opens: None } => "Kalenda yako haina muda wa huduma katika wiki mbili zijazo.".into(),
        Rest::Present { minutes } => {
            format!("Huduma itarudi kompyuta isipoguswa kwa dakika {minutes}.")
        }
        Rest::QuietAfterGame { seconds, .. } => {
            format!("Huduma itarudi baada ya sekunde {seconds} bila mchezo.")
        }
        Rest::Fault(told) => fault(told),
        Rest::NoRoom { needed_mebibytes, free_mebibytes } => {
            format!(
                "Inahitaji {} za kumbukumbu, na {} ziko wazi. Itajaribiwa tena yenyewe.",
                memory(*needed_mebibytes),
                memory(*free_mebibytes)
            )
        }
        Rest::NoModel => "Ingiza faili la GGUF kwa wakati-node import, kisha anzisha upya.".into(),
        Rest::NotJoined => "Jiunge na dalali kwa wakati-node join na mwaliko, kisha anzisha upya.".into(),
        Rest::BrokerRefused(refusal) => broker_refusal(*refusal).into(),
        Rest::NoGpu => "Ili kutumia prosesa, weka on_processor kuwa true kwenye mipangilio.".into(),
        Rest::Connecting => "Modeli itapakiwa mara dalali atakapojibu.".into(),
        Rest::Quitting | Rest::Sleeping | Rest::Paused { .. } | Rest::Starting | Rest::WorkerEnded => {
            String::new()
        }
    }
}

pub(crate) fn sign(kind: Kind) -> &'static str {
    match kind {
        Kind::Launcher => "umeanzishwa na kizinduzi",
        Kind::OwnersList => "upo kwenye orodha yako",
        Kind::GameMode => "umeuambia mfumo kuwa ni mchezo",
        Kind::GameCompositor => "unaendeshwa na programu ya kuonyesha michezo",
        Kind::RemotePlay => "unachezwa kutoka kompyuta nyingine",
        Kind::VirtualReality => "miwani ya VR inatumika",
        Kind::GameFolder => "upo kwenye maktaba ya michezo",
        Kind::Compatibility => "unaendeshwa na Wine au Proton",
        Kind::FullScreen => "umejaza skrini",
        Kind::Film => "inaonyesha filamu",
    }
}

fn day(time: LocalTime) -> &'static str {
    match time.weekday() {
        Weekday::Monday => "Jumatatu",
        Weekday::Tuesday => "Jumanne",
        Weekday::Wednesday => "Jumatano",
        Weekday::Thursday => "Alhamisi",
        Weekday::Friday => "Ijumaa",
        Weekday::Saturday => "Jumamosi",
        Weekday::Sunday => "Jumapili",
    }
}

fn broker_refusal(refusal: BrokerRefusal) -> &'static str {
    match refusal {
        BrokerRefusal::Version => "Dalali anatumia toleo lingine: sasisha Wakati.",
        BrokerRefusal::Signature => "Dalali hakubali ufunguo wa kompyuta hii.",
        BrokerRefusal::NotInvited => "Dalali haijui kompyuta hii: jiunge kwa mwaliko.",
        BrokerRefusal::BadInvite => "Mwaliko si halali, umeshatumika au umeisha muda: omba mwingine.",
        BrokerRefusal::Full => "Dalali ana kompyuta nyingi mno kwa sasa.",
        BrokerRefusal::AlreadyHere => "Ufunguo wa kompyuta hii tayari umeunganishwa kutoka mahali pengine.",
        BrokerRefusal::BrokerChanged => {
            "Dalali mwingine anajibu kwenye anwani hii. Ikiwa ndivyo ulivyotaka, jiunge tena."
        }
        BrokerRefusal::BadAddress => "Anwani ya dalali kwenye mipangilio haiwezi kutumika.",
        BrokerRefusal::Unknown => "Dalali ametoa sababu ambayo toleo hili haliijui.",
    }
}

pub(crate) fn fault(fault: &Fault) -> String {
    match fault {
        Fault::ProcessesUnreadable => {
            "Programu zinazoendelea haziwezi kusomwa, hivyo mchezo unaoanza huenda usionekane.".into()
        }
        Fault::GpuUnreadable => "GPU haijibu.".into(),
        Fault::WorkerKeepsEnding { times, within_minutes } => {
            format!("Modeli imesimama mara {times} ndani ya dakika {within_minutes}. Endelea hujaribu tena.")
        }
        Fault::WorkerRefused(refusal) => worker_refusal(*refusal),
        Fault::WorkerNotStarted => {
            "Programu ya mfanyakazi haipo au haiwezi kuanza. Sakinisha Wakati upya, kisha endelea.".into()
        }
        Fault::MemoryHeld { mebibytes: Some(mebibytes) } => {
            format!("Kumbukumbu ya {} bado haijaachiwa.", memory(*mebibytes))
        }
        Fault::MemoryHeld { mebibytes: None } => "Mfanyakazi bado hajamaliza.".into(),
        Fault::Setting(problem) => setting(problem),
        Fault::LogUnwritable => "Kumbukumbu ya mapato haiwezi kuandikwa. Je, diski imejaa?".into(),
        Fault::ReceiptDisagrees { sequence } => {
            format!("Stakabadhi {sequence} ya dalali inatofautiana na kumbukumbu ya kompyuta hii.")
        }
    }
}

fn worker_refusal(refusal: WorkerRefusal) -> String {
    match refusal {
        WorkerRefusal::NoFile => "Faili la modeli halipo au haliwezi kusomwa.".into(),
        WorkerRefusal::CorruptFile => "Faili la modeli limeharibika. Liingize tena.".into(),
        WorkerRefusal::UnknownArchitecture => "Wakati haiwezi kuendesha modeli ya aina hii.".into(),
        WorkerRefusal::DoesNotFit { needed_mebibytes, free_mebibytes } => format!(
            "Modeli inahitaji kumbukumbu ya {}, na iliyo wazi ni {}. Endelea hujaribu tena.",
            memory(needed_mebibytes),
            memory(free_mebibytes)
        ),
        WorkerRefusal::NoAvx2 => "Prosesa hii haina AVX2, ambayo inahitajika ili kuitumia.".into(),
        WorkerRefusal::Engine => "Modeli haikuweza kupakiwa. Endelea hujaribu tena.".into(),
    }
}

fn setting(problem: &SettingProblem) -> String {
    match problem {
        SettingProblem::BadValue { option } => {
            format!("Mpangilio {option} una thamani isiyoweza kutumika; thamani ya kawaida inatumika.")
        }
        SettingProblem::UnknownOption { option } => format!("Hakuna mpangilio {option}."),
        SettingProblem::SetAside { file } => {
            format!("Mipangilio haikueleweka na imewekwa kama {file}; thamani za kawaida zinatumika.")
        }
        SettingProblem::Unreadable { file } => {
            format!("Faili la mipangilio {file} haliwezi kusomwa; thamani za kawaida zinatumika.")
        }
    }
}

pub(crate) fn refused(refused: &Refused) -> String {
    match refused {
        Refused::GameRunning { name } => format!("Si wakati {name} inaendelea."),
        Refused::NotPaused => "Hakuna cha kuendeleza.".into(),
        Refused::NothingToOverride => "Hakuna kizuizi unachoweza kukipuuza.".into(),
        Refused::Quitting => "Wakati inafunga.".into(),
    }
}
