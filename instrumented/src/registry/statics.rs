//! Which addresses belong to `static` items: a permit that borrows from one can be moved anywhere.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

struct Ranges {
    read: Option<Instant>,
    ranges: Vec<(u64, u64)>,
}

static RANGES: Mutex<Ranges> = Mutex::new(Ranges { read: None, ranges: Vec::new() });

/// The map is read again for addresses not seen before, since libraries come and go, but not more often than this.
const FRESH: Duration = Duration::from_secs(1);

/// Whether `address` lies in the data of the executable or of a library.
///
/// Known on Linux; elsewhere only a `const_new` tells, which the caller knows.
pub(crate) fn contains(address: u64) -> bool {
    let mut ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
    if ranges.read.is_none_or(|read| read.elapsed() > FRESH) {
        ranges.ranges = std::fs::read_to_string("/proc/self/maps")
            .map(|maps| data_ranges(&maps))
            .unwrap_or_default();
        ranges.read = Some(Instant::now());
    }
    ranges.ranges.iter().any(|(start, end)| (*start..*end).contains(&address))
}

/// Mappings of files, and the anonymous mapping right behind one, which is where zeroed statics lie.
fn data_ranges(maps: &str) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for line in maps.lines() {
        let mut fields = line.split_ascii_whitespace();
        let Some((start, end)) = fields.next().and_then(|range| range.split_once('-')) else {
            continue;
        };
        let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16))
        else {
            continue;
        };
        let file = fields.nth(4);
        let follows = ranges.last().is_some_and(|(_, last)| *last == start);
        match file {
            Some(file) if file.starts_with('/') => ranges.push((start, end)),
            None if follows => ranges.push((start, end)),
            _ => {}
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::OnceLock;

    #[test]
    #[cfg(target_os = "linux")]
    fn tells_statics_from_the_heap_and_the_stack() {
        static ZEROED: OnceLock<u64> = OnceLock::new();
        static FILLED: Mutex<u64> = Mutex::new(7);
        let boxed = Box::new(7u64);
        let local = 7u64;
        assert!(contains(std::ptr::from_ref(&ZEROED).addr() as u64));
        assert!(contains(std::ptr::from_ref(&FILLED).addr() as u64));
        assert!(!contains(std::ptr::from_ref(&*boxed).addr() as u64));
        assert!(!contains(std::ptr::from_ref(&local).addr() as u64));
    }

    #[test]
    fn reads_a_map_with_a_zeroed_part_behind_a_file() {
        let maps = "\
1000-2000 r--p 00000000 fe:00 1 /usr/bin/app
2000-3000 rw-p 00001000 fe:00 1 /usr/bin/app
3000-4000 rw-p 00000000 00:00 0
5000-6000 rw-p 00000000 00:00 0 [heap]
7000-8000 rw-p 00000000 00:00 0
not a line
";
        assert_eq!(data_ranges(maps), [(0x1000, 0x2000), (0x2000, 0x3000), (0x3000, 0x4000)]);
    }
}
