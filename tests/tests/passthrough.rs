//! Release builds get tokio's own types, and nothing of holdup is left where permits are acquired.

use holdup_tests::workspace::{Metadata, Scratch, run};
use std::fs;
use std::path::Path;

const MANIFEST: &str = r#"
[package]
name = "passthrough"
version = "0.0.0"
edition = "2024"
publish = false

[features]
always-on = ["holdup/always-on"]

[dependencies]
holdup = { HOLDUP, default-features = false }
tokio = { version = "1", features = ["rt", "sync"] }

# What is looked at is ours; the rest only has to be built soon.
[profile.release.package."*"]
opt-level = 0
[profile.release.package.holdup]
opt-level = 3
"#;

/// Acquires in every way, and says whether the types are tokio's.
const PROGRAM: &str = r#"
use holdup::ResourceExt as _;
use holdup::sync::{Mutex, RwLock, Semaphore, mpsc};
use std::any::TypeId;
use std::sync::Arc;

async fn acquire() {
    let semaphore = Arc::new(Semaphore::new(4).named("all"));
    let borrowed = semaphore.acquire().await;
    let many = semaphore.acquire_many(2).await;
    let owned = semaphore.clone().acquire_owned().await;
    let tried = semaphore.try_acquire();
    let mutex = Arc::new(Mutex::new(1).named("one"));
    let lock = Arc::new(RwLock::new(1).named("many"));
    assert_eq!(*mutex.lock().await + *lock.write().await, 2);
    assert_eq!(*mutex.lock_owned().await + *lock.read_owned().await, 2);
    let (sender, mut receiver) = mpsc::channel(1);
    let sender = sender.named("jobs");
    assert!(sender.send(1).await.is_ok() && sender.try_reserve().is_err());
    assert_eq!(receiver.recv().await, Some(1));
    assert!(borrowed.is_ok() && many.is_ok() && owned.is_ok() && tried.is_err());
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(acquire());
    let same = TypeId::of::<Semaphore>() == TypeId::of::<tokio::sync::Semaphore>()
        && TypeId::of::<Mutex<u8>>() == TypeId::of::<tokio::sync::Mutex<u8>>()
        && TypeId::of::<RwLock<u8>>() == TypeId::of::<tokio::sync::RwLock<u8>>()
        && TypeId::of::<mpsc::Sender<u8>>() == TypeId::of::<tokio::sync::mpsc::Sender<u8>>()
        && TypeId::of::<mpsc::Receiver<u8>>() == TypeId::of::<tokio::sync::mpsc::Receiver<u8>>();
    println!("{}", if same { "tokio's" } else { "holdup's" });
}
"#;

/// Compiles only if the types are tokio's.
const ONLY_TOKIOS: &str = "
pub fn same(ours: holdup::sync::SemaphorePermit<'_>) -> tokio::sync::SemaphorePermit<'_> {
    ours
}
";

fn package(name: &str) -> Scratch {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = Metadata::of_workspace().target_folder().join("passthrough");
    let package = Scratch::new(&folder.join(name), &target);
    package.manifest(MANIFEST);
    package.write("src/main.rs", PROGRAM);
    package
}

/// What the program says, and whether a function of holdup is linked into it.
fn build_and_run(package: &Scratch, arguments: &[&str]) -> (String, bool) {
    run(package.cargo(["build", "--release", "--offline"]).args(arguments));
    let program = package.built("release", "passthrough");
    let said = run(&mut std::process::Command::new(&program)).stdout;
    // Names are mangled with their length before them, which no path or message has.
    let image = fs::read(&program).expect("the program that just ran");
    let linked = image.windows(7).any(|bytes| bytes == b"6holdup");
    (String::from_utf8_lossy(&said).trim().to_owned(), linked)
}

#[test]
fn release_builds_get_tokios_own_types_and_no_code_of_ours() {
    let package = package("release");
    assert_eq!(build_and_run(&package, &[]), ("tokio's".to_owned(), false));
    // The same look finds our functions where they belong.
    let always_on = build_and_run(&package, &["--features", "always-on"]);
    assert_eq!(always_on, ("holdup's".to_owned(), true));
}

#[test]
fn holdup_off_wins_over_debug_and_always_on() {
    let package = package("off");
    package.write("src/lib.rs", ONLY_TOKIOS);
    let mut check = package.cargo(["check", "--lib", "--offline", "--features", "always-on"]);
    run(check.env("RUSTFLAGS", "--cfg holdup_off"));
}
