//! Where findings go: to a callback, and as `tracing` events, or to stderr if nobody would see those.

use holdup_core::text::{self, Sources, Style};
use holdup_core::{Finding, Verdict};
use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

type Callback = Arc<dyn Fn(&Finding) + Send + Sync>;

static CALLBACKS: Mutex<Vec<Callback>> = Mutex::new(Vec::new());

/// Callbacks that are kept.
const MAX_CALLBACKS: usize = 64;
/// Source files larger than this are not read.
const MAX_SOURCE: u64 = 4 << 20;

/// Adds a callback; false if there are too many already.
pub(crate) fn subscribe(callback: Callback) -> bool {
    let mut callbacks = CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner);
    let room = callbacks.len() < MAX_CALLBACKS;
    if room {
        callbacks.push(callback);
    }
    room
}

/// Tells everybody who wants to know. Called on the monitor's thread, without a lock.
pub(crate) fn tell(finding: &Finding) {
    let callbacks = CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for callback in callbacks {
        // A callback that panics is the caller's to mend; watching goes on.
        let _ = catch_unwind(AssertUnwindSafe(|| callback(finding)));
    }
    let _ = catch_unwind(AssertUnwindSafe(|| write(finding)));
}

/// Says what is wrong with holdup's own settings.
pub(crate) fn complain(complaint: &str) {
    let _ = catch_unwind(|| {
        if tracing::enabled!(target: "holdup", tracing::Level::WARN) {
            tracing::event!(target: "holdup", tracing::Level::WARN, "{complaint}");
        } else {
            let _ = std::io::stderr().write_all(format!("holdup: {complaint}\n").as_bytes());
        }
    });
}

fn write(finding: &Finding) {
    let plain = || text::render(finding, &Files, &Style { width: None, color: false });
    let (code, verdict) = (finding.code.as_str(), finding.verdict.as_str());
    // One macro call a level: the level is part of an event's static metadata.
    macro_rules! event {
        ($level:ident) => {
            if tracing::enabled!(target: "holdup", tracing::Level::$level) {
                tracing::event!(target: "holdup", tracing::Level::$level, code, verdict, "{}", plain());
                return;
            }
        };
    }
    match finding.verdict {
        Verdict::Resolved => event!(INFO),
        Verdict::Hazard => event!(WARN),
        _ => event!(ERROR),
    }
    // Whoever watches the program says so if he tells the findings himself.
    if std::env::var_os("HOLDUP_STDERR").is_some_and(|set| set == "off") {
        return;
    }
    let color = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    let mut text = text::render(finding, &Files, &Style { width: None, color });
    text.truncate(text.trim_end().len());
    text.push('\n');
    // In one piece, and made before stderr is locked: others write there, too. Nobody may be reading any more;
    // that is not the program's problem.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The text of a source file, if it is here.
pub(crate) fn source(file: &str) -> Option<Arc<str>> {
    Files.source(file)
}

/// Source files where the compiler saw them, or below a directory around the program.
struct Files;

impl Sources for Files {
    fn source(&self, file: &str) -> Option<Arc<str>> {
        let places = [std::env::current_dir().ok(), std::env::current_exe().ok()];
        let path = places
            .iter()
            .flatten()
            .flat_map(|place| place.ancestors().map(|around| around.join(file)))
            .find(|path: &PathBuf| path.is_file())?;
        // Not a huge file, and not one that is no text.
        let small = path.metadata().is_ok_and(|meta| meta.len() <= MAX_SOURCE);
        let text = small.then(|| std::fs::read_to_string(path).ok()).flatten()?;
        Some(Arc::from(text))
    }
}
