//! What the source says where holds never outlive a moment, read once a line.

use crate::report;
use holdup_core::discard::{is_discarded, note};
use holdup_core::snapshot::{Site, Snapshot};
use std::collections::HashMap;

/// Lines that are remembered.
const MAX_LINES: usize = 1024;

#[derive(Default)]
pub(crate) struct Discards {
    lines: HashMap<Site, bool>,
}

impl Discards {
    /// Notes it in a snapshot.
    pub(crate) fn note(&mut self, snapshot: &mut Snapshot) {
        note(snapshot, |site| self.read(site));
    }

    fn read(&mut self, site: &Site) -> bool {
        if let Some(known) = self.lines.get(site) {
            return *known;
        }
        // What is not remembered would be read again and again.
        if self.lines.len() >= MAX_LINES {
            return false;
        }
        let says = report::source(&site.file).is_some_and(|text| is_discarded(&text, site));
        self.lines.insert(site.clone(), says);
        says
    }
}
