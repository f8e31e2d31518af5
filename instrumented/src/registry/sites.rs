//! Source locations, numbered in the order in which somebody first asked for them.

use holdup_core::snapshot::{Site, SiteId};
use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
struct Table {
    /// By address: the compiler emits few copies of a location, and there are as many as call sites at most.
    by_address: HashMap<usize, SiteId>,
    by_site: HashMap<Site, SiteId>,
    sites: Vec<Site>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// Numbers locations; remembers the last answer, since neighbouring records often share it.
pub(crate) struct Sites {
    last: Option<(usize, SiteId)>,
}

impl Sites {
    pub(crate) fn new() -> Self {
        Sites { last: None }
    }

    pub(crate) fn id(&mut self, location: &'static Location<'static>) -> SiteId {
        let address = std::ptr::from_ref(location).addr();
        if let Some((last, id)) = self.last
            && last == address
        {
            return id;
        }
        let mut guard = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        let table = guard.get_or_insert_default();
        let id = match table.by_address.get(&address) {
            Some(id) => *id,
            None => table.add(address, location),
        };
        self.last = Some((address, id));
        id
    }
}

impl Table {
    fn add(&mut self, address: usize, location: &Location<'_>) -> SiteId {
        let site = Site {
            file: Arc::from(location.file()),
            line: location.line(),
            column: location.column(),
        };
        let id = match self.by_site.get(&site) {
            Some(id) => *id,
            None => {
                let id = SiteId(u32::try_from(self.sites.len()).unwrap_or(u32::MAX));
                self.sites.push(site.clone());
                self.by_site.insert(site, id);
                id
            }
        };
        self.by_address.insert(address, id);
        id
    }
}

/// All sites numbered so far, by [`SiteId`].
pub(crate) fn all() -> Vec<Site> {
    let guard = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    guard.as_ref().map(|table| table.sites.clone()).unwrap_or_default()
}
