//! Names from the debug information of the files that are mapped into this process.
//!
//! Several times faster than `backtrace::resolve`, which also holds a lock that others wait for; and a file that
//! was replaced since the program started (by the next build, for example) is not mistaken for the one that runs.

use addr2line::Loader;
use holdup_core::snapshot::Site;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Libraries whose debug information is kept.
const MAX_MODULES: usize = 64;

/// One stretch of code of a mapped file.
struct Code {
    start: u64,
    end: u64,
    /// What an address of the file is moved by.
    base: u64,
    path: PathBuf,
}

#[derive(Default)]
struct Modules {
    code: Vec<Code>,
    /// `None`: there is nothing to read.
    loaded: HashMap<PathBuf, Option<Loader>>,
}

static MODULES: Mutex<Option<Modules>> = Mutex::new(None);

/// Calls `found` with the functions at a return address, innermost first, inlined ones included.
pub(super) fn read(address: u64, found: &mut dyn FnMut(&str, Option<Site>)) {
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    let modules = modules.get_or_insert_default();
    // A return address is behind the call; one byte before it lies inside the call.
    let call = address.saturating_sub(1);
    if let Some((loader, probe)) = modules.find(call) {
        frames(loader, probe, found);
    }
}

fn frames(loader: &Loader, probe: u64, found: &mut dyn FnMut(&str, Option<Site>)) {
    let mut any = false;
    if let Ok(mut frames) = loader.find_frames(probe) {
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let name = match &name {
                Some(name) => demangled(name),
                None => loader.find_symbol(probe).map(demangled).unwrap_or_default(),
            };
            let site = frame.location.and_then(|location| {
                Some(Site {
                    file: Arc::from(location.file?),
                    line: location.line.unwrap_or(0),
                    column: location.column.unwrap_or(0),
                })
            });
            found(&name, site);
            any = true;
        }
    }
    if !any && let Some(name) = loader.find_symbol(probe) {
        found(&demangled(name), None);
    }
}

fn demangled(name: &str) -> String {
    format!("{:#}", backtrace::SymbolName::new(name.as_bytes()))
}

impl Modules {
    /// The debug information for an address, and the address in terms of the file.
    fn find(&mut self, address: u64) -> Option<(&Loader, u64)> {
        let at = |code: &Code| (code.start..code.end).contains(&address);
        if !self.code.iter().any(at) {
            // A library that came later, or the first call.
            self.code = std::fs::read_to_string("/proc/self/maps").map(|maps| code(&maps)).unwrap_or_default();
        }
        let code = self.code.iter().find(|code| at(code))?;
        if !self.loaded.contains_key(&code.path) {
            if self.loaded.len() >= MAX_MODULES {
                return None;
            }
            self.loaded.insert(code.path.clone(), Loader::new(&code.path).ok());
        }
        let loader = self.loaded.get(&code.path)?.as_ref()?;
        Some((loader, address - code.base + loader.relative_address_base()))
    }
}

/// The executable stretches of a memory map whose file is still the one that was mapped.
fn code(maps: &str) -> Vec<Code> {
    let executable = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    let mut found = Vec::new();
    // Where the file that the lines are about was mapped first.
    let mut first = ("", 0);
    for line in maps.lines() {
        // start-end permissions offset device inode path
        let mut fields = line.splitn(6, ' ');
        let mut field = || fields.next().unwrap_or_default();
        let (range, permissions, offset, _device, inode, path) =
            (field(), field(), field(), field(), field(), field().trim_start());
        let Some((start, end)) = range.split_once('-') else { continue };
        let hex = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
        let (start, end) = (hex(start), hex(end));
        if !path.starts_with('/') {
            continue;
        }
        if first.0 != path || hex(offset) == 0 {
            first = (path, start);
        }
        if !permissions.contains('x') {
            continue;
        }
        // The link leads to the file that runs even if another one has its name now.
        let file = if Path::new(path) == executable { Path::new("/proc/self/exe") } else { Path::new(path) };
        if file.metadata().is_ok_and(|file| file.ino().to_string() == inode) {
            let base = if is_relocated(file) { first.1 } else { 0 };
            found.push(Code { start, end, base, path: file.to_owned() });
        }
    }
    found
}

/// Whether an ELF file can be loaded anywhere; others are where they say.
fn is_relocated(path: &Path) -> bool {
    use std::io::Read;
    const ET_EXEC: u16 = 2;
    let mut header = [0; 18];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_err() || u16::from_ne_bytes([header[16], header[17]]) != ET_EXEC
}
