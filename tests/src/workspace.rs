//! The workspace as cargo sees it, and packages made up outside of it.

use serde_json::Value;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The workspace's folder.
#[must_use]
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("this package lies in the workspace's folder").to_owned()
}

/// Cargo, the one that runs this program if cargo does.
#[must_use]
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Runs a command to its end.
///
/// # Panics
///
/// If the command cannot be started or fails, with all that it said.
pub fn run(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    output
}

/// What `cargo metadata` says, without what other platforms would need.
pub struct Metadata(Value);

impl Metadata {
    /// Of this workspace.
    #[must_use]
    pub fn of_workspace() -> Metadata {
        Metadata::read(cargo().arg("metadata").arg("--locked"))
    }

    fn read(metadata: &mut Command) -> Metadata {
        let version = run(Command::new("rustc").arg("-vV"));
        let version = String::from_utf8_lossy(&version.stdout);
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.expect("rustc names its host");
        let output = run(metadata.args(["--format-version", "1", "--filter-platform", host]));
        Metadata(serde_json::from_slice(&output.stdout).expect("cargo speaks JSON"))
    }

    /// Every package in the tree.
    pub fn packages(&self) -> impl Iterator<Item = Package<'_>> {
        array(&self.0["packages"]).map(Package)
    }

    /// The packages of the workspace.
    pub fn members(&self) -> impl Iterator<Item = Package<'_>> {
        self.packages()
            .filter(|package| array(&self.0["workspace_members"]).any(|id| *id == package.0["id"]))
    }

    /// The package of this name; the newest, if the tree has several.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn package(&self, name: &str) -> Package<'_> {
        let named = self.packages().filter(|package| package.name() == name);
        named.last().unwrap_or_else(|| panic!("no package `{name}` in the tree"))
    }

    /// Where cargo puts what it builds.
    #[must_use]
    pub fn target_folder(&self) -> &Path {
        Path::new(text(&self.0["target_directory"]))
    }
}

/// One package, as `cargo metadata` describes it.
#[derive(Clone, Copy)]
pub struct Package<'a>(&'a Value);

impl<'a> Package<'a> {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'a str {
        text(&self.0["name"])
    }

    /// Its version.
    #[must_use]
    pub fn version(self) -> &'a str {
        text(&self.0["version"])
    }

    /// Its folder.
    #[must_use]
    pub fn folder(self) -> &'a Path {
        let manifest = Path::new(text(&self.0["manifest_path"]));
        manifest.parent().expect("a manifest lies in a folder")
    }

    /// A field of its manifest, if it is there.
    #[must_use]
    pub fn field(self, name: &str) -> Option<&'a str> {
        self.0[name].as_str()
    }

    /// It can go to a registry.
    #[must_use]
    pub fn is_published(self) -> bool {
        // `publish = false` is an empty list of registries.
        self.0["publish"].is_null()
    }

    /// The names of what it depends on, and whether the dependency is optional. Not those of its tests.
    pub fn dependencies(self) -> impl Iterator<Item = (&'a str, bool)> {
        array(&self.0["dependencies"])
            .filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| (text(&dependency["name"]), dependency["optional"] == true))
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list in cargo's metadata").iter()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text in cargo's metadata")
}

/// A package outside of the workspace, built with the versions that the workspace has locked.
pub struct Scratch {
    folder: PathBuf,
    target: PathBuf,
}

impl Scratch {
    /// Begins in an empty folder; whatever lay there is removed. Cargo builds into `target`.
    ///
    /// # Panics
    ///
    /// If the folder cannot be written.
    #[must_use]
    pub fn new(folder: &Path, target: &Path) -> Scratch {
        if folder.exists() {
            fs::remove_dir_all(folder)
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        }
        let scratch = Scratch { folder: folder.to_owned(), target: target.to_owned() };
        scratch.write("Cargo.lock", read(&root().join("Cargo.lock")));
        scratch
    }

    /// Where it lies.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the files are that cargo built.
    #[must_use]
    pub fn built(&self, profile: &str, name: &str) -> PathBuf {
        self.target.join(profile).join(name)
    }

    /// Writes the manifest. A dependency on `holdup` finds it through `HOLDUP`, which is replaced by its path.
    pub fn manifest(&self, text: &str) {
        let holdup = root().join("instrumented");
        let holdup = format!("path = {:?}", holdup.display().to_string());
        // A workspace of its own, or cargo would ask why it is no member of ours.
        self.write("Cargo.toml", format!("{}\n[workspace]\n", text.replace("HOLDUP", &holdup)));
    }

    /// Writes one file.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        let written =
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Copies a folder with everything in it, each text changed on the way.
    ///
    /// # Panics
    ///
    /// If something cannot be read or written.
    pub fn copy(&self, from: &Path, to: &Path, change: &dyn Fn(String) -> String) {
        let entries =
            fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        for entry in entries {
            let entry = entry.expect("a folder's entry");
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            if from.is_dir() {
                self.copy(&from, &to, change);
            } else {
                self.write(&to, change(read(&from)));
            }
        }
    }

    /// Cargo, on this package.
    #[must_use]
    pub fn cargo(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut cargo = cargo();
        cargo.current_dir(&self.folder);
        cargo.env("CARGO_TARGET_DIR", &self.target);
        cargo.args(arguments);
        cargo
    }

    /// What `cargo metadata` says of it. Fetches what it depends on.
    #[must_use]
    pub fn metadata(&self) -> Metadata {
        Metadata::read(&mut self.cargo(["metadata"]))
    }
}

/// A text file's content.
///
/// # Panics
///
/// If it cannot be read.
#[must_use]
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file below a folder, or the file itself.
///
/// # Panics
///
/// If there is no such folder or file, so that a check of a place that has moved does not pass for nothing.
#[must_use]
pub fn rust_files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let entries =
        fs::read_dir(place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("a folder's entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}
