//! The settings file as owners write it.

use super::*;

fn parsed(text: &str) -> (Settings, Vec<Problem>) {
    read(&text.parse().unwrap())
}

#[test]
fn every_option_is_read() {
    let (settings, problems) = parsed(
        "language = \"sw\"\n[broker]\nurl = \"http://127.0.0.1:9\"\ninvite = \"abc\"\n\
         [model]\nslug = \"small\"\ncontext = 1024\nslots = 3\n[prices]\ninput = \"0.07\"\noutput = 0.2\n\
         [serve]\non_processor = true\non_battery = true\nbeside_films = false\naway_minutes = 15\n\
         [limits]\nhottest_celsius = 75\nreserve_mebibytes = 1024\n\
         [hours]\nwindows = [\"mon-fri 22:00-06:00\"]\nexcept = [\"2026-12-24\"]\n\
         [games]\nprograms = [\"factorio\"]\nnot = [\"wallpaper\"]\nquiet_seconds = 5\n\
         poll_milliseconds = 100\n[worker]\nprogram = \"/opt/worker\"\n",
    );
    assert_eq!(problems, []);
    let expected = Settings {
        language: "sw".into(),
        broker: Some(BrokerSettings { url: "http://127.0.0.1:9".into(), invite: "abc".into() }),
        model: ModelSettings { slug: Some("small".into()), context: 1024, slots: 3 },
        prices: Prices { input: Price(70_000_000), output: Price(200_000_000) },
        serve: ServeSettings {
            on_processor: true,
            on_battery: true,
            beside_films: false,
            away: Some(Duration::from_secs(900)),
            hottest: Celsius(75),
            reserve: MiB(1024),
            calendar: Calendar {
                windows: vec![hours::window("mon-fri 22:00-06:00").unwrap()],
                exceptions: vec![hours::exception("2026-12-24").unwrap()],
            },
        },
        games: GameSettings {
            programs: vec!["factorio".into()],
            not: vec!["wallpaper".into()],
            quiet: Some(Duration::from_secs(5)),
            poll: Duration::from_millis(100),
        },
        worker: Some("/opt/worker".into()),
    };
    assert_eq!(settings, expected);
}

#[test]
fn a_bad_value_keeps_its_default_and_is_named() {
    for (text, name) in [
        ("language = \"xx\"", "language"),
        ("[model]\ncontext = 12", "model.context"),
        ("[model]\nslots = \"two\"", "model.slots"),
        ("[prices]\ninput = \"-1\"", "prices.input"),
        ("[prices]\noutput = 1e3", "prices.output"),
        ("[games]\nprograms = \"factorio\"", "games.programs"),
        ("[broker]\nurl = \"http://example.com\"", "broker.url"),
    ] {
        let (settings, problems) = parsed(text);
        assert_eq!(settings, Settings::default(), "{text}");
        assert_eq!(problems, [Problem::BadValue(name.into())], "{text}");
    }
}

#[test]
fn one_bad_entry_of_a_list_does_not_cost_the_others() {
    let (settings, problems) = parsed(
        "[games]\nprograms = [\"factorio\", 5]\n[hours]\nwindows = [\"x\", \"daily 1:00-2:00\", \"mon 01:00-02:00\"]\n",
    );
    assert_eq!(settings.games.programs, ["factorio"]);
    assert_eq!(settings.serve.calendar.windows, [hours::window("mon 01:00-02:00").unwrap()]);
    assert_eq!(problems, ["hours.windows", "games.programs"].map(|name| Problem::BadValue(name.into())));
}

#[test]
fn an_unknown_option_is_named() {
    let (_, problems) = parsed("colour = 1\n[games]\nquiet = 3\n[other]\na = 1\n");
    let names = ["colour", "games.quiet", "other"].map(|name| Problem::UnknownOption(name.into()));
    assert_eq!(problems, names);
}

#[test]
fn a_file_that_is_no_toml_is_kept_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.toml");
    std::fs::write(&path, "[[[").unwrap();
    let (settings, problems) = load(&path, "now");
    assert_eq!(settings, Settings::default());
    let [Problem::SetAside(aside)] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!(std::fs::read(aside).unwrap(), b"[[[");
    assert!(!path.exists());
}

#[test]
fn joining_keeps_the_owners_comments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.toml");
    std::fs::write(&path, "# mine\n[games]\nprograms = [\"a\"] # yes\n").unwrap();
    change(&path, &[("broker", "url", "http://127.0.0.1:9"), ("broker", "invite", "x")]).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("# mine") && text.contains("# yes"));
    let (settings, problems) = load(&path, "now");
    assert_eq!((settings.broker.unwrap().invite.as_str(), problems.len()), ("x", 0));
}

#[test]
fn the_invite_is_in_no_log() {
    let broker = BrokerSettings { url: "http://127.0.0.1:9".into(), invite: "a-secret".into() };
    let settings = Settings { broker: Some(broker), ..Settings::default() };
    let logged = format!("{settings:?}");
    assert!(logged.contains("127.0.0.1") && !logged.contains("a-secret"), "{logged}");
}
