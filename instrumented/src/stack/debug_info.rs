//! Names from the debug information of the files that are mapped into this process.
//!
//! Several times faster than `backtrace::resolve`, which also holds a lock that others wait for; and a file that
//! was replaced since the program started (by the next build, for example) is not mistaken for the one that runs.

use super::Effort;
use addr2line::gimli::{self, EndianSlice, NativeEndian};
use addr2line::{Context, Loader, LookupResult};
use holdup_core::snapshot::Site;
use memmap2::Mmap;
use object::{Object, ObjectSection, SymbolMap, SymbolMapName};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files whose debug information is kept.
const MAX_FILES: usize = 64;

/// What runs here has this machine's byte order.
type Slice = EndianSlice<'static, NativeEndian>;
/// Called with the functions at an address, innermost first.
type Found<'a> = &'a mut dyn FnMut(&str, Option<Site>);

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
    files: HashMap<PathBuf, Option<Debug>>,
}

static MODULES: Mutex<Option<Modules>> = Mutex::new(None);

/// Calls `found` with the functions at a return address, innermost first, inlined ones included.
pub(super) fn read(address: u64, effort: Effort, found: Found<'_>) {
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    let modules = modules.get_or_insert_default();
    // A return address is behind the call; one byte before it lies inside the call.
    let call = address.saturating_sub(1);
    if let Some((debug, probe)) = modules.find(call) {
        debug.frames(probe, effort, found);
    }
}

impl Modules {
    /// The debug information for an address, and the address in terms of the file.
    fn find(&mut self, address: u64) -> Option<(&Debug, u64)> {
        let at = |code: &Code| (code.start..code.end).contains(&address);
        if !self.code.iter().any(at) {
            // A library that came later, or the first call.
            let maps = std::fs::read_to_string("/proc/self/maps");
            self.code = maps.map(|maps| code(&maps)).unwrap_or_default();
        }
        let code = self.code.iter().find(|code| at(code))?;
        if !self.files.contains_key(&code.path) {
            if self.files.len() >= MAX_FILES {
                return None;
            }
            self.files.insert(code.path.clone(), Debug::load(&code.path));
        }
        Some((self.files.get(&code.path)?.as_ref()?, address.checked_sub(code.base)?))
    }
}

/// The debug information of one file, kept for as long as the process lives.
struct Debug {
    path: PathBuf,
    object: object::File<'static>,
    /// `None`: the file has no debug information, only symbols.
    context: Option<Context<Slice>>,
    /// Made when asked for: sorting the symbols of a large debug build takes as long as all the rest.
    symbols: OnceCell<SymbolMap<SymbolMapName<'static>>>,
    /// For a file whose debug information is spread over further files.
    split: OnceCell<Option<Loader>>,
}

impl Debug {
    fn load(path: &Path) -> Option<Debug> {
        let map = map(path)?;
        let object = object::File::parse(map).ok()?;
        let context = object.section_by_name(".debug_info").and_then(|_| context(&object).ok());
        let path = path.to_owned();
        Some(Debug { path, object, context, symbols: OnceCell::new(), split: OnceCell::new() })
    }

    fn frames(&self, probe: u64, effort: Effort, found: Found<'_>) {
        let mut any = false;
        if let Some(context) = &self.context {
            match context.find_frames(probe) {
                LookupResult::Output(frames) => any = report(frames.ok(), found),
                LookupResult::Load { .. } => {
                    let split = self.split.get_or_init(|| Loader::new(&self.path).ok());
                    any = report(
                        split.as_ref().and_then(|split| split.find_frames(probe).ok()),
                        found,
                    );
                }
            }
        }
        if !any && (effort == Effort::Everything || self.context.is_none()) {
            let symbols = self.symbols.get_or_init(|| self.object.symbol_map());
            if let Some(symbol) = symbols.containing(probe) {
                found(&demangled(symbol.name()), None);
            }
        }
    }
}

/// Reports the frames; false if there are none.
fn report<R: gimli::Reader>(frames: Option<addr2line::FrameIter<'_, R>>, found: Found<'_>) -> bool {
    let Some(mut frames) = frames else { return false };
    let mut any = false;
    while let Ok(Some(frame)) = frames.next() {
        let function = frame.function.as_ref().and_then(|function| function.raw_name().ok());
        let site = frame.location.and_then(|location| {
            Some(Site {
                file: Arc::from(location.file?),
                line: location.line.unwrap_or(0),
                column: location.column.unwrap_or(0),
            })
        });
        found(&function.map(|name| demangled(&name)).unwrap_or_default(), site);
        any = true;
    }
    any
}

fn demangled(name: &str) -> String {
    format!("{:#}", backtrace::SymbolName::new(name.as_bytes()))
}

/// The file's contents, for the rest of the process's life.
#[expect(unsafe_code, reason = "reading hundreds of megabytes into memory would cost them")]
fn map(path: &Path) -> Option<&'static [u8]> {
    let file = File::open(path).ok()?;
    // SAFETY: a mapping must not change or shrink while it is used. This is a file whose code runs in this
    // process (`code` has compared the inode), mapped just like this one: if somebody changed it, the program
    // would run into the same.
    let map = unsafe { Mmap::map(&file) }.ok()?;
    Some(&**Box::leak(Box::new(map)))
}

fn context(object: &object::File<'static>) -> Result<Context<Slice>, gimli::Error> {
    let section = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
        let data =
            object.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
        Ok(EndianSlice::new(
            match data.unwrap_or_default() {
                Cow::Borrowed(data) => data,
                // It was compressed, and lives as long as the rest.
                Cow::Owned(data) => data.leak(),
            },
            NativeEndian,
        ))
    };
    Context::from_dwarf(gimli::Dwarf::load(section)?)
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
        let file = if Path::new(path) == executable { "/proc/self/exe" } else { path };
        let file = Path::new(file);
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
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_err() || u16::from_ne_bytes([header[16], header[17]]) != ET_EXEC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_not_read() {
        let exe = std::env::current_exe().expect("known");
        let maps = |inode: u64, path: &Path| {
            format!(
                "1000-2000 r--p 00000000 fe:00 {inode} {0}\n2000-3000 r-xp 00001000 fe:00 {inode} {0}\n",
                path.display()
            )
        };
        let inode = exe.metadata().expect("there").ino();
        let same = code(&maps(inode, &exe));
        assert_eq!((same[0].start, same[0].end, same[0].base), (0x2000, 0x3000, 0x1000));
        assert!(code(&maps(inode + 1, &exe)).is_empty());
        assert!(code("2000-3000 r-xp 00000000 00:00 0 [vdso]\nnot a line\n").is_empty());
    }
}
