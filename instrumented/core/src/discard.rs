//! Whether the source says that what is acquired is dropped at once.
//!
//! A hold that ends within microseconds may be a short critical section, or a mistake: `let _ = sem.acquire().await;`
//! drops the permit in the same statement. No record tells them apart, the source does.

use crate::snapshot::{Learned, Site, Snapshot};
use std::time::Duration;

/// Holds from one stack that are enough to judge by.
const HOLDS: u64 = 16;

/// How much of a file is looked through around a call, in bytes.
const AROUND: usize = 2000;

/// One hold in so many may last: a thread is interrupted anywhere.
const INTERRUPTED: u64 = 16;

/// A hold shorter than this may be over within one poll, in a debug build on a busy machine, too.
pub const BRIEF: Duration = Duration::from_micros(200);

/// Whether these are many, and almost all of them were [`BRIEF`].
#[must_use]
pub fn are_brief(brief: u64, released: u64) -> bool {
    released >= HOLDS && brief >= released - released / INTERRUPTED
}

/// The many holds from this stack ended within a moment.
pub(crate) fn is_brief(learned: &Learned) -> bool {
    learned.released == learned.acquired
        && are_brief(learned.brief, learned.released)
        && learned.elsewhere == 0
}

/// Notes what the source says, for stacks whose holds never outlive a moment. The others are not asked for.
pub fn note(snapshot: &mut Snapshot, mut is_discarded: impl FnMut(&Site) -> bool) {
    let Snapshot { learned, sites, .. } = snapshot;
    for learned in learned.iter_mut().filter(|learned| is_brief(learned)) {
        learned.discarded = sites.get(learned.site.0 as usize).is_some_and(&mut is_discarded);
    }
}

/// Whether the call of an acquire at this place is all that its statement does, by the text of the file.
#[must_use]
pub fn is_discarded(source: &str, site: &Site) -> bool {
    let Some(at) = offset(source, site.line, site.column) else { return false };
    let (before, rest) = source.split_at(at);
    let mut begin = before.len().saturating_sub(AROUND);
    while !before.is_char_boundary(begin) {
        begin += 1;
    }
    let before: String =
        before[begin..].lines().map(|line| format!("{}\n", uncommented(line))).collect();
    let statement = before.rsplit([';', '{', '}']).next().unwrap_or_default().trim();
    is_start(statement) && is_end(rest)
}

fn offset(source: &str, line: u32, column: u32) -> Option<usize> {
    let (line, column) = (line.checked_sub(1)? as usize, column.checked_sub(1)? as usize);
    let start = if line == 0 { 0 } else { source.match_indices('\n').nth(line - 1)?.0 + 1 };
    let text = source[start..].lines().next()?;
    let (within, _) = text.char_indices().nth(column)?;
    Some(start + within)
}

fn uncommented(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// `let _ = a.b().`, or the same without `let`: a chain of fields and calls, and nothing around it.
fn is_start(statement: &str) -> bool {
    let chain = statement
        .strip_prefix("let _")
        .map_or(Some(statement), |rest| rest.trim_start().strip_prefix('='));
    let Some(chain) = chain else { return false };
    let plain = |c: char| c.is_alphanumeric() || c.is_whitespace() || "_.:&*()".contains(c);
    let mut open = 0_i32;
    let closed = chain.chars().all(|c| {
        open += i32::from(c == '(') - i32::from(c == ')');
        open >= 0
    });
    let word = chain.split_whitespace().next().unwrap_or_default();
    chain.ends_with('.')
        && chain.chars().all(plain)
        && closed
        && open == 0
        && !["let", "return", "match", "if", "while", "break", "yield"].contains(&word)
}

/// `acquire().await?;`, or with `unwrap` or `expect` in place of the question mark.
fn is_end(rest: &str) -> bool {
    let rest: String = rest.chars().take(AROUND).collect();
    let Some(open) = rest.find('(') else { return false };
    let name = &rest[..open];
    if !name.contains("acquire") || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return false;
    }
    let Some(rest) = after_arguments(&rest[open..]) else { return false };
    let Some(mut rest) = rest.trim_start().strip_prefix(".await") else { return false };
    loop {
        rest = rest.trim_start();
        if rest.starts_with(';') {
            return true;
        }
        let next = rest.strip_prefix('?').or_else(|| {
            let call = rest.strip_prefix('.')?.trim_start();
            let called =
                ["unwrap", "expect", "ok"].iter().find_map(|name| call.strip_prefix(name))?;
            after_arguments(called)
        });
        let Some(next) = next else { return false };
        rest = next;
    }
}

/// What follows the closing parenthesis. A text within them must have none.
fn after_arguments(text: &str) -> Option<&str> {
    let mut open = 0_usize;
    if !text.starts_with('(') {
        return None;
    }
    for (at, c) in text.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open = open.checked_sub(1)?,
            ';' | '{' | '}' => return None,
            _ => {}
        }
        if open == 0 {
            return text.get(at + 1..);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::is_discarded;
    use crate::snapshot::Site;

    fn at(line: u32, column: u32) -> Site {
        Site { file: "src/app.rs".into(), line, column }
    }

    /// The call is where `acquire` begins.
    #[track_caller]
    fn check(source: &str, expected: bool) {
        let call = source.find("acquire").expect("an acquire");
        let line = source[..call].matches('\n').count();
        let column = source[..call].rsplit('\n').next().expect("a line").chars().count();
        let place = |n: usize| u32::try_from(n).expect("small") + 1;
        assert_eq!(is_discarded(source, &at(place(line), place(column))), expected, "{source}");
    }

    #[test]
    fn a_permit_that_its_statement_drops() {
        for source in [
            "fn f() {\n    let _ = sem.acquire().await;\n}",
            "let _ = self.limit.acquire().await.unwrap();",
            "x(); let _ = sem.acquire_many(n + g(2)).await?;",
            "{ sem.acquire().await?; work().await }",
            "a;\n// Takes a turn (or so).\nlet _ = Arc::clone(&sem)\n    .acquire_owned()\n    .await\n    .expect(\"open\");",
            "let _ = ü.acquire().await;",
        ] {
            check(source, true);
        }
    }

    #[test]
    fn a_permit_that_is_kept_or_dropped_on_purpose() {
        for source in [
            "let _permit = sem.acquire().await;",
            "let _ = (sem.acquire().await, 3);",
            "let permit = sem.acquire().await?;",
            "drop(sem.acquire().await);",
            "let _ = timeout(D, sem.acquire()).await;",
            "match sem.acquire().await { _ => work().await }",
            "let n = sem.acquire().await?.num_permits();",
            "let _ = sem.acquire().await.map(|p| work(p));",
            "sem.acquire().await?.forget();",
            "let f = sem.acquire();",
            "let _ = sem.acquire();",
            "return sem.acquire().await;",
            "sem.acquire().await",
            "if sem.acquire().await.is_ok() {}",
            "let _ = sem.try_acquire();",
            "let _ = acquire().await;",
        ] {
            check(source, false);
        }
    }

    #[test]
    fn places_that_are_not_there() {
        for (line, column) in [(0, 0), (1, 0), (1, 1), (1, 9), (2, 1), (9, 9), (u32::MAX, u32::MAX)]
        {
            assert!(!is_discarded("let ü\n", &at(line, column)));
        }
        assert!(!is_discarded("", &at(1, 1)));
    }
}
