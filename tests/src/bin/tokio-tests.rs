//! Runs tokio's own tests of its semaphore, its locks and its channel on ours, with nothing changed but the import.
//!
//! They come from the cargo registry's copy of the locked tokio, go into the target folder, and stay there.

use holdup_tests::workspace::{Metadata, Scratch, read};
use std::process::ExitCode;

/// Those of what is instrumented, and those that look at all of `tokio::sync`.
const TESTS: [&str; 9] = [
    "sync_semaphore.rs",
    "sync_semaphore_owned.rs",
    "sync_mutex.rs",
    "sync_mutex_owned.rs",
    "sync_rwlock.rs",
    "sync_mpsc.rs",
    "sync_mpsc_weak.rs",
    "sync_panic.rs",
    "async_send_sync.rs",
];

const MANIFEST: &str = r#"
[package]
name = "tokio-tests"
version = "0.0.0"
edition = "2021"
publish = false

# The files ask for tokio's features as if they were their own.
[features]
default = ["full", "sync"]
full = []
sync = []

[dependencies]
holdup = { HOLDUP, default-features = false }

[dev-dependencies]
bytes = "1"
futures = "0.3"
tokio = { version = "1", features = ["full", "test-util"] }
tokio-stream = "0.1"
tokio-test = "0.4"
"#;

fn main() -> ExitCode {
    let metadata = Metadata::of_workspace();
    let tokio = metadata.package("tokio");
    println!("the tests of tokio {}", tokio.version());

    let target = metadata.target_folder();
    let package = Scratch::new(&target.join("tokio-tests"), target);
    package.manifest(MANIFEST);
    package.write("src/lib.rs", "");
    let theirs = tokio.folder().join("tests");
    for test in TESTS {
        package.write(format!("tests/{test}"), import_ours(&read(&theirs.join(test))));
    }
    for support in ["support/panic.rs", "support/mpsc_stream.rs"] {
        package.write(format!("tests/{support}"), import_ours(&read(&theirs.join(support))));
    }

    let status = package.cargo(["test", "--tests"]).status();
    let passed = status.expect("cargo can be started").success();
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn import_ours(test: &str) -> String {
    // A group is closed before its line with `sync`, and opened again from holdup.
    test.replace("\n    sync::{", "\n};\nuse holdup::{\n    sync::{")
        .replace("tokio::sync", "holdup::sync")
}
