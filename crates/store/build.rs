//! Rebuilds the crate when a migration is added: the list of files is read by a macro, which cargo does not watch.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
