//! The committed code is what `holdup.proto` generates.
//!
//! With `UPDATE_GENERATED=1` it is written anew instead.

use std::fs;
use std::path::Path;

#[test]
fn committed_code_is_up_to_date() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let committed = package.join("src/generated/holdup.v1.rs");
    let descriptors = protox::compile(["holdup.proto"], [package.join("proto")])
        .expect("the proto file is valid");
    let fresh = tempfile::tempdir().expect("a folder for the fresh code");
    tonic_prost_build::configure()
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .out_dir(fresh.path())
        .compile_fds(descriptors)
        .expect("code is generated");
    let fresh = fs::read_to_string(fresh.path().join("holdup.v1.rs")).expect("the fresh code");
    if std::env::var_os("UPDATE_GENERATED").is_some_and(|value| value == "1") {
        fs::write(&committed, fresh).expect("the committed code is writable");
        return;
    }
    let committed = fs::read_to_string(&committed).unwrap_or_default();
    assert!(
        committed == fresh,
        "src/generated is out of date: run `UPDATE_GENERATED=1 cargo test -p holdup-proto`"
    );
}
