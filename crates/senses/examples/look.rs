//! Looks at this machine and says what was seen and what a look costs.
//!
//! `cargo run --release -p wakati-senses --example look -- LOOKS PROGRAM...`

use std::time::Instant;

use wakati_senses::{Gpus, OwnersList, ProcessTable, Processes, SystemTable};

fn main() {
    let mut words = std::env::args().skip(1);
    let looks: u32 = words.next().and_then(|word| word.parse().ok()).unwrap_or(200);
    let count = SystemTable::new().pids().map(|pids| pids.len());
    let mut processes =
        Processes::new(SystemTable::new(), OwnersList::new(words, [""; 0]), std::process::id());
    println!("processes: {count:?}");
    println!("first look: {:?}", processes.look());
    let began = Instant::now();
    for _ in 1..looks {
        processes.look();
    }
    println!("{looks} looks, the last: {:?}", processes.look());
    println!("one look: {:?}", began.elapsed() / looks.max(1));
    println!("gpu: {:?}", Gpus::default().look(&[std::process::id()]));
    #[cfg(any(target_os = "linux", windows))]
    println!("screen: {:?}\nsupply: {:?}", wakati_senses::Screen::default().look(), wakati_senses::supply());
}
