//! The order of the house: who may use whom, what every package declares, and what no file may contain.

use holdup_tests::source;
use holdup_tests::workspace::{Metadata, Package, read, root, rust_files};
use std::path::{Path, PathBuf};

/// Fails with the whole list, if there is anything on it.
#[track_caller]
fn assert_none(what: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{what}:\n  {}", offences.join("\n  "));
}

/// Of our own packages, those that each may use.
const OURS: &[(&str, &[&str])] = &[
    ("holdup-core", &[]),
    ("holdup-proto", &["holdup-core"]),
    ("holdup", &["holdup-core", "holdup-proto"]),
    ("holdup-tui", &["holdup-core", "holdup-proto"]),
    ("holdup-examples", &["holdup"]),
    ("holdup-tests", &[]),
    ("holdup-corpus", &["holdup"]),
];

#[test]
fn packages_use_only_what_lies_below_them() {
    let metadata = Metadata::of_workspace();
    let names: Vec<&str> = metadata.members().map(Package::name).collect();
    let mut offences = Vec::new();
    for member in metadata.members() {
        let permitted = OURS.iter().find(|(name, _)| *name == member.name());
        let Some((_, permitted)) = permitted else {
            offences.push(format!("{} is not in the table", member.name()));
            continue;
        };
        for (dependency, _) in member.dependencies() {
            if names.contains(&dependency) && !permitted.contains(&dependency) {
                offences.push(format!("{} uses {dependency}", member.name()));
            }
        }
    }
    assert_none("directions between packages", &offences);
}

#[test]
fn the_pure_middle_knows_little_else() {
    let metadata = Metadata::of_workspace();
    let permitted = ["annotate-snippets", "serde", "serde_json", "unicode-width"];
    let core = metadata.package("holdup-core");
    let others = core.dependencies().map(|(name, _)| name).filter(|name| !permitted.contains(name));
    let offences: Vec<String> = others.map(str::to_owned).collect();
    assert_none("holdup-core uses", &offences);
}

#[test]
fn the_library_speaks_the_wire_format_only_where_it_is_asked_to() {
    let metadata = Metadata::of_workspace();
    for (name, is_optional) in metadata.package("holdup").dependencies() {
        let speaks = ["holdup-proto", "tonic"].contains(&name);
        assert!(is_optional || !speaks, "holdup uses {name} without being asked");
    }
}

/// What files may not name.
struct Wall {
    /// Files and folders.
    around: &'static [&'static str],
    /// See [`names`].
    against: &'static [&'static str],
    /// Why.
    because: &'static str,
}

const WALLS: &[Wall] = &[
    Wall {
        around: &["instrumented/core/src"],
        against: &[
            "tokio",
            "std::fs",
            "std::net",
            "std::thread",
            "std::process",
            "std::env",
            "std::sync::atomic",
            "std::sync::Mutex",
            "std::sync::RwLock",
            "std::sync::Condvar",
            "Instant",
            "SystemTime",
        ],
        because: "the middle is pure: no clock, lock, runtime or I/O, so that a file recorded yesterday is judged like \
                  a live program",
    },
    Wall {
        around: &["instrumented/src/registry/ledger.rs", "instrumented/src/registry/ledger"],
        against: &["tokio", "dashmap", "std::thread", "std::sync", "Instant"],
        because: "the ledger is a single-threaded state machine; whatever concurrency there is lies outside of it",
    },
    Wall {
        around: &["instrumented/src/registry"],
        against: &["crate::api", "crate::ext", "crate::sync", "crate::util", "crate::report"],
        because: "the books know nothing of who writes into them or reads them",
    },
    Wall {
        around: &["instrumented/src/stack", "instrumented/src/actor.rs"],
        against: &[
            "crate::api",
            "crate::ext",
            "crate::monitor",
            "crate::registry",
            "crate::report",
            "crate::server",
            "crate::sync",
            "crate::util",
        ],
        because: "who asks, and from where, is found out without knowing what for",
    },
    Wall {
        around: &["instrumented/src/sync"],
        against: &["crate::api", "crate::monitor", "crate::report", "crate::server"],
        because: "a door writes into the books and knows nobody who reads them",
    },
    Wall {
        around: &[
            "instrumented/src/monitor.rs",
            "instrumented/src/report.rs",
            "instrumented/src/server",
        ],
        against: &["crate::ext", "crate::sync", "crate::util"],
        because: "whoever reads the books does not care what wrote into them",
    },
    Wall {
        around: &[
            "instrumented/src/actor.rs",
            "instrumented/src/api",
            "instrumented/src/ext",
            "instrumented/src/monitor.rs",
            "instrumented/src/registry",
            "instrumented/src/report.rs",
            "instrumented/src/stack",
            "instrumented/src/sync",
        ],
        against: &["tokio::time"],
        because: "tests pause tokio's clock, and a timer of ours would move it; only the service has a runtime of its own",
    },
    Wall {
        around: &["instrumented/proto/src"],
        against: &["holdup", "holdup_tui"],
        because: "both sides of the wire speak the format, and the format knows neither",
    },
    Wall {
        around: &["tui/src/app"],
        against: &[
            "crate::runtime",
            "crate::source",
            "crate::terminal",
            "crate::view",
            "crossterm",
            "hyper_util",
            "ratatui",
            "std::net",
            "tokio",
            "tonic",
        ],
        because: "state and update are plain values: whatever draws, reads keys or speaks to a process is handed in",
    },
    Wall {
        around: &["tui/src/view"],
        against: &[
            "crate::runtime",
            "crate::source",
            "crate::terminal",
            "crossterm",
            "hyper_util",
            "std::net",
            "tokio",
            "tonic",
        ],
        because: "a view reads the state and draws it",
    },
    Wall {
        around: &["tui/src/headless"],
        against: &["crate::app", "crate::terminal", "crate::view", "ratatui"],
        because: "what is printed needs no screen",
    },
];

#[test]
fn modules_use_only_what_lies_below_them() {
    let mut offences = Vec::new();
    for wall in WALLS {
        for file in wall.around.iter().flat_map(|place| rust_files(&root().join(place))) {
            offences.extend(breaches(wall, &file));
        }
    }
    assert_none("directions between modules", &offences);
}

fn breaches(wall: &Wall, file: &Path) -> Vec<String> {
    if is_for_tests(file) {
        return Vec::new();
    }
    let code = source::without_tests(&source::code(&read(file)));
    let shown = shown(file);
    let below_src = shown.split_once("src/").map_or("", |(_, below)| below);
    let paths = source::paths(&code, &source::module(Path::new(below_src)));
    let refused =
        paths.iter().filter(|path| wall.against.iter().any(|refused| names(path, refused)));
    refused.map(|path| format!("{shown} names `{path}`: {}", wall.because)).collect()
}

/// The module that the file belongs to says that it is there for tests only.
fn is_for_tests(file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_stem()) else { return false };
    let parents = [folder.join("lib.rs"), folder.join("mod.rs"), folder.with_extension("rs")];
    parents.iter().filter(|parent| parent.is_file()).any(|parent| {
        source::test_modules(&source::code(&read(parent))).iter().any(|module| *module == name)
    })
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// A path is refused with all that lies below it, a word with a capital wherever it stands.
fn names(path: &str, refused: &str) -> bool {
    if refused.starts_with(char::is_uppercase) {
        path.split("::").any(|word| word == refused)
    } else {
        path.strip_prefix(refused).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    }
}

#[test]
fn every_package_says_what_it_is() {
    let metadata = Metadata::of_workspace();
    let mut offences = Vec::new();
    for member in metadata.members() {
        let wanted = ["description", "license", "rust_version"].into_iter();
        let wanted = wanted.chain(member.is_published().then_some("repository"));
        for field in wanted.filter(|field| member.field(field).is_none()) {
            offences.push(format!("{} declares no {field}", member.name()));
        }
        let manifest = read(&member.folder().join("Cargo.toml"));
        if !manifest.contains("[lints]\nworkspace = true\n") {
            offences.push(format!("{} does not take the workspace's lints", member.name()));
        }
        let mut in_dependencies = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                in_dependencies = line.contains("dependencies");
            } else if in_dependencies && line.contains('=') && !line.contains("workspace = true") {
                offences.push(format!("{} declares a version of its own: {line}", member.name()));
            }
        }
    }
    assert_none("manifests", &offences);
}

#[test]
fn no_dependency_wants_a_newer_rust_than_we_promise() {
    let metadata = Metadata::of_workspace();
    let ours = metadata.package("holdup").field("rust_version").expect("a promised version");
    let offences: Vec<String> = metadata
        .packages()
        .filter_map(|package| {
            let theirs = package.field("rust_version")?;
            (minor(theirs) > minor(ours))
                .then(|| format!("{} {} wants {theirs}", package.name(), package.version()))
        })
        .collect();
    assert_none(&format!("we promise {ours}"), &offences);
}

/// The `88` of `1.88` and of `1.88.0`.
fn minor(version: &str) -> u32 {
    let mut parts = version.split('.');
    assert_eq!(parts.next(), Some("1"), "{version}");
    parts.next().and_then(|minor| minor.parse().ok()).expect("a minor version")
}

#[test]
fn no_file_leaves_work_behind() {
    // Put together here, or this file would find itself.
    let marks = ["TO\u{44}O", "FIX\u{4d}E", "XX\u{58}", "#[ig\u{6e}ore"];
    let mut offences = Vec::new();
    for member in Metadata::of_workspace().members() {
        for file in
            rust_files(&member.folder().join("src")).into_iter().chain(tests_of(member.folder()))
        {
            for (number, line) in read(&file).lines().enumerate() {
                if marks.iter().any(|mark| line.contains(mark)) {
                    offences.push(format!("{}:{}: {}", shown(&file), number + 1, line.trim()));
                }
            }
        }
    }
    assert_none("left behind", &offences);
}

fn tests_of(package: &Path) -> Vec<PathBuf> {
    let tests = package.join("tests");
    if tests.is_dir() { rust_files(&tests) } else { Vec::new() }
}
