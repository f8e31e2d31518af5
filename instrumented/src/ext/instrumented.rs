//! Puts what is said into the books.

use super::Said;
use crate::sync::Semaphore;
use std::sync::Arc;

/// Bytes of a name that are kept.
const MAX_NAME: usize = 256;

pub trait Described {
    #[doc(hidden)]
    fn describe(&self, said: Said);
}

impl Described for Semaphore {
    fn describe(&self, said: Said) {
        let resource = self.resource();
        match said {
            Said::Name(name) => resource.set_name(short(name)),
            Said::MaxHold(limit) => {
                resource.change_settings(|settings| settings.max_hold = Some(limit));
            }
            Said::LongHeld => resource.change_settings(|settings| settings.long_held = true),
            Said::Grows => resource.change_settings(|settings| settings.grows = true),
        }
    }
}

impl Described for &Semaphore {
    fn describe(&self, said: Said) {
        (**self).describe(said);
    }
}

impl Described for Arc<Semaphore> {
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
