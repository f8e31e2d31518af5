//! Puts what is said into the books.

use super::Said;
use crate::registry::Resource;
use crate::sync::mpsc::{Receiver, Sender};
use crate::sync::{Mutex, RwLock, Semaphore};
use std::sync::Arc;

/// Bytes of a name that are kept.
const MAX_NAME: usize = 256;

pub trait Described {
    #[doc(hidden)]
    fn describe(&self, said: Said);
}

impl Described for Resource {
    fn describe(&self, said: Said) {
        match said {
            Said::Name(name) => self.set_name(short(name)),
            Said::MaxHold(limit) => {
                self.change_settings(|settings| settings.max_hold = Some(limit));
            }
            Said::LongHeld => self.change_settings(|settings| settings.long_held = true),
            Said::Grows => self.change_settings(|settings| settings.grows = true),
        }
    }
}

impl Described for Semaphore {
    fn describe(&self, said: Said) {
        self.resource().describe(said);
    }
}

impl<T: ?Sized> Described for Mutex<T> {
    fn describe(&self, said: Said) {
        self.resource().describe(said);
    }
}

impl<T: ?Sized> Described for RwLock<T> {
    fn describe(&self, said: Said) {
        self.resource().describe(said);
    }
}

impl<T> Described for Sender<T> {
    fn describe(&self, said: Said) {
        self.resource().describe(said);
    }
}

impl<T> Described for Receiver<T> {
    fn describe(&self, said: Said) {
        self.resource().describe(said);
    }
}

impl<D: Described + ?Sized> Described for &D {
    fn describe(&self, said: Said) {
        (**self).describe(said);
    }
}

impl<D: Described + ?Sized> Described for Arc<D> {
    fn describe(&self, said: Said) {
        (**self).describe(said);
    }
}

/// The name, or as much of it as is kept.
fn short(name: Arc<str>) -> Arc<str> {
    if name.len() <= MAX_NAME {
        return name;
    }
    let end = (0..=MAX_NAME).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    Arc::from(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(&*short(Arc::from("db")), "db");
        let name = short(Arc::from("語".repeat(100)));
        assert_eq!(name.len(), 255);
        assert!(name.chars().all(|c| c == '語'));
    }
}
