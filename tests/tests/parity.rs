//! `holdup::sync` stands in for `tokio::sync`: the same names, the same methods, the same arguments. Compared with the
//! source of the locked tokio, so that a new tokio shows what is missing.

use holdup_tests::source::{self, Function};
use holdup_tests::workspace::{Metadata, read, root};
use std::any::TypeId;

fn code_of_tokio(file: &str) -> String {
    let metadata = Metadata::of_workspace();
    source::code(&read(&metadata.package("tokio").folder().join("src/sync").join(file)))
}

/// That these exist is for the compiler to say, and that they are all for the test.
macro_rules! exported {
    ($($name:ident)*) => {
        mod exist {
            $(#[expect(unused_imports, reason = "it is there: that is all")] use holdup::sync::$name as _;)*
        }
        const EXPORTED: &[&str] = &[$(stringify!($name)),*];
    };
}

exported! {
    AcquireError Barrier BarrierWaitResult MappedMutexGuard Mutex MutexGuard Notify OnceCell OwnedMappedMutexGuard
    OwnedMutexGuard OwnedRwLockMappedWriteGuard OwnedRwLockReadGuard OwnedRwLockWriteGuard OwnedSemaphorePermit RwLock
    RwLockMappedWriteGuard RwLockReadGuard RwLockWriteGuard Semaphore SemaphorePermit SetError SetOnce SetOnceError
    TryAcquireError TryLockError broadcast futures mpsc oneshot watch
}

#[test]
fn every_name_is_there() {
    let mut theirs = public_names(&code_of_tokio("mod.rs"));
    // What the module `futures` holds is not named one level up.
    theirs.retain(|name| !["Notified", "OwnedNotified"].contains(&name.as_str()));
    assert_eq!(theirs, EXPORTED);
}

/// What a module of tokio's makes public, by name.
fn public_names(code: &str) -> Vec<String> {
    let mut theirs = Vec::new();
    for statement in code.split(';').map(str::trim_start) {
        if let Some(paths) = public(statement, "use ") {
            theirs.extend(source::paths(paths, &[]).into_iter().filter_map(|path| {
                let name = path.rsplit("::").next()?;
                (!["super", "self"].contains(&name)).then(|| name.to_owned())
            }));
        }
        if let Some(module) = public(statement, "mod ") {
            let name = module.split(|c: char| c.is_whitespace() || c == '{').next();
            theirs.extend(name.map(str::to_owned));
        }
    }
    theirs.sort();
    theirs.dedup();
    theirs
}

/// The rest of `pub use …` or `pub mod …`, wherever in the statement it begins.
fn public<'a>(statement: &'a str, what: &str) -> Option<&'a str> {
    statement.split_once(&format!("pub {what}")).map(|(_, rest)| rest)
}

/// The type `of` has the same methods in our `file` as in tokio's `their_file`.
#[track_caller]
fn check_methods(of: &str, file: &str, their_file: &str) {
    let theirs = source::methods(&code_of_tokio(their_file), of);
    let ours = read(&root().join("instrumented/src/sync").join(file));
    let ours = source::methods(&source::code(&ours), of);
    assert!(theirs.len() > 1, "{of} was not found in tokio: {theirs:?}");
    assert_eq!(shown(&ours), shown(&theirs), "{of}: ours, theirs");
}

fn shown(functions: &[Function]) -> Vec<String> {
    functions.iter().map(|function| format!("{}({})", function.name, function.arguments)).collect()
}

#[test]
fn semaphore_and_permits_have_the_same_methods() {
    for of in ["Semaphore", "SemaphorePermit", "OwnedSemaphorePermit"] {
        check_methods(of, "semaphore.rs", "semaphore.rs");
    }
}

#[test]
fn mutex_and_guards_have_the_same_methods() {
    let types =
        ["Mutex", "MutexGuard", "MappedMutexGuard", "OwnedMutexGuard", "OwnedMappedMutexGuard"];
    for of in types {
        check_methods(of, "mutex.rs", "mutex.rs");
    }
}

#[test]
fn rwlock_and_guards_have_the_same_methods() {
    for (of, their_file) in [
        ("RwLock", "rwlock.rs"),
        ("RwLockReadGuard", "rwlock/read_guard.rs"),
        ("RwLockWriteGuard", "rwlock/write_guard.rs"),
        ("RwLockMappedWriteGuard", "rwlock/write_guard_mapped.rs"),
        ("OwnedRwLockReadGuard", "rwlock/owned_read_guard.rs"),
        ("OwnedRwLockWriteGuard", "rwlock/owned_write_guard.rs"),
        ("OwnedRwLockMappedWriteGuard", "rwlock/owned_write_guard_mapped.rs"),
    ] {
        check_methods(of, "rwlock.rs", their_file);
    }
}

#[test]
fn both_halves_of_a_channel_and_permits_have_the_same_methods() {
    for (of, file) in [
        ("Sender", "mpsc/sender.rs"),
        ("WeakSender", "mpsc/sender.rs"),
        ("OwnedPermit", "mpsc/permit.rs"),
        ("Receiver", "mpsc/receiver.rs"),
    ] {
        check_methods(of, file, "mpsc/bounded.rs");
    }
}

/// As [`exported`], one level below.
macro_rules! exported_by_mpsc {
    ($($name:ident)*) => {
        mod exist_in_mpsc {
            $(#[expect(unused_imports, reason = "it is there: that is all")] use holdup::sync::mpsc::$name as _;)*
        }
        const EXPORTED_BY_MPSC: &[&str] = &[$(stringify!($name)),*];
    };
}

exported_by_mpsc! {
    OwnedPermit Permit PermitIterator Receiver Sender UnboundedReceiver UnboundedSender WeakSender WeakUnboundedSender
    channel error unbounded_channel
}

#[test]
fn every_name_of_mpsc_is_there() {
    assert_eq!(public_names(&code_of_tokio("mpsc/mod.rs")), EXPORTED_BY_MPSC);
}

#[test]
fn what_is_not_instrumented_is_tokios_own() {
    fn same<Ours: 'static, Theirs: 'static>() {
        assert_eq!(TypeId::of::<Ours>(), TypeId::of::<Theirs>());
    }
    same::<holdup::sync::TryLockError, tokio::sync::TryLockError>();
    same::<holdup::sync::AcquireError, tokio::sync::AcquireError>();
    same::<holdup::sync::Notify, tokio::sync::Notify>();
    same::<holdup::sync::mpsc::UnboundedSender<()>, tokio::sync::mpsc::UnboundedSender<()>>();
    same::<holdup::sync::mpsc::error::SendError<()>, tokio::sync::mpsc::error::SendError<()>>();
    same::<holdup::sync::oneshot::Sender<()>, tokio::sync::oneshot::Sender<()>>();
}
