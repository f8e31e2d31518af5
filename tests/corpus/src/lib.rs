//! Labelled minimal cases: async concurrency bugs, and benign code that looks like them.
//!
//! Every case is one file with one `async fn run()` and one `CASE` label. Cases
//! take primitives only through [`sync`].

#![expect(missing_docs, reason = "the cases are read, not used; the README explains their labels")]
#![expect(
    clippy::drop_non_drop,
    clippy::semicolon_if_nothing_returned,
    reason = "labels name lines of the cases, which stay as they were written"
)]

pub mod case;
pub mod judging;
pub mod probe;
pub mod run;
pub mod sync;

macro_rules! cases {
    ($dir:literal, $heldout:literal; $($m:ident),* $(,)?) => {
        $(pub mod $m;)*
        pub fn all() -> Vec<crate::case::Case> {
            vec![$({
                let mut c = $m::CASE;
                c.heldout = $heldout;
                c.file = concat!("src/", $dir, "/", stringify!($m), ".rs");
                c.text = include_str!(concat!(stringify!($m), ".rs"));
                c
            }),*]
        }
    };
}

// Not there for the formatter to find.
#[cfg(has_heldout)]
#[rustfmt::skip]
pub mod heldout;
pub mod open;

pub use case::{Case, Class};

/// Every case present in this tree.
pub fn all() -> Vec<Case> {
    #[cfg(has_heldout)]
    return [open::all(), heldout::all()].concat();
    #[cfg(not(has_heldout))]
    open::all()
}

#[cfg(test)]
mod tests {
    use super::case::*;
    use std::collections::BTreeSet;

    #[test]
    fn labels_are_consistent() {
        let mut ids = BTreeSet::new();
        for c in super::all() {
            assert!(ids.insert(c.id), "duplicate id {}", c.id);
            assert_eq!(c.file.rsplit('/').next().unwrap(), format!("{}.rs", c.id));
            assert!(!c.title.is_empty() && !c.source.is_empty(), "{}", c.id);
            assert!(expect::ALL.contains(&c.expect), "{}: expect {}", c.id, c.expect);
            for e in c.also_ok {
                assert!(expect::ALL.contains(e), "{}: also_ok {e}", c.id);
            }
            assert_eq!(c.class == Class::Benign, c.expect == expect::CLEAN, "{}", c.id);
            assert!(!c.must_reach.is_empty(), "{}: no mark to check", c.id);
            if c.class == Class::Benign {
                assert_eq!(c.plain, Plain::Returns, "{}", c.id);
                assert!(c.culprits.is_empty(), "{}", c.id);
            } else {
                assert!(!c.culprits.is_empty(), "{}: no culprit", c.id);
            }
            for t in c.culprits {
                assert!(!c.lines(t).is_empty(), "{}: no line tagged {t}", c.id);
            }
            let tags: BTreeSet<&str> = c
                .text
                .lines()
                .filter(|l| !l.trim_start().starts_with("//!"))
                .flat_map(|l| l.split("// CULPRIT:").skip(1))
                .map(|t| t.split_whitespace().next().unwrap())
                .collect();
            assert_eq!(tags, c.culprits.iter().copied().collect(), "{}: tags", c.id);
            for m in c.must_reach.iter().chain(c.never_reach) {
                let m = mark_and_count(m).0;
                assert!(c.text.contains(&format!("reach(\"{m}\")")), "{}: mark {m}", c.id);
            }
        }
    }

    #[test]
    fn primitives_come_from_the_alias_module_only() {
        for c in super::all() {
            for bad in ["tokio::sync", "PollSemaphore", "std::sync::RwLock"] {
                assert!(!c.text.contains(bad), "{}: uses {bad}", c.id);
            }
            assert!(c.text.contains("use crate::sync::"), "{}", c.id);
        }
    }
}
