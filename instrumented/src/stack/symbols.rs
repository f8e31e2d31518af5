//! Names of addresses. Reading debug information is slow and is done on the threads that ask for it only.

#[cfg(target_os = "linux")]
#[path = "debug_info.rs"]
mod reader;
#[cfg(not(target_os = "linux"))]
#[path = "system.rs"]
mod reader;

use holdup_core::snapshot::Frame;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) type Frames = Arc<[Frame]>;

/// The logical frames of each address asked for so far. Bounded by the number of stacks that are kept.
static CACHE: Mutex<Option<HashMap<u64, Frames>>> = Mutex::new(None);

/// The named frames of a stack, innermost first, if every one of them has been resolved before.
pub(crate) fn known(addresses: &[u64]) -> Option<Frames> {
    let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = cache.as_ref()?;
    let parts: Option<Vec<&Frames>> = addresses.iter().map(|address| cache.get(address)).collect();
    Some(join(parts?.into_iter()))
}

/// The named frames of a stack, innermost first.
pub(crate) fn resolve(addresses: &[u64]) -> Frames {
    let parts: Vec<Frames> = addresses.iter().map(|address| frames_at(*address)).collect();
    join(parts.iter())
}

fn join<'a>(parts: impl Iterator<Item = &'a Frames>) -> Frames {
    parts.flat_map(|part| part.iter().cloned()).collect()
}

fn frames_at(address: u64) -> Frames {
    // The lock is not held while symbols are read, so that `known` never waits for that.
    let cached = |cache: &Option<HashMap<u64, Frames>>| cache.as_ref()?.get(&address).cloned();
    if let Some(frames) = cached(&CACHE.lock().unwrap_or_else(PoisonError::into_inner)) {
        return frames;
    }
    let mut frames = Vec::new();
    reader::read(address, &mut |function, site| {
        frames.push(Frame { function: Arc::from(function), site, address, inlined: true });
    });
    match frames.last_mut() {
        Some(outermost) => outermost.inlined = false,
        None => frames.push(Frame { function: Arc::from(""), site: None, address, inlined: false }),
    }
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    cache.get_or_insert_default().entry(address).or_insert_with(|| frames.into()).clone()
}
