//! What a detector said of a case, held against the case's label.

use crate::case::{Case, Plain};

/// A finding that was told while the case ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub code: String,
    /// As it was told first.
    pub verdict: String,
    /// `file:line`, with the file as in [`Case::file`].
    pub sites: Vec<String>,
    /// It was taken back later.
    pub withdrawn: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The mistake was told, by the expected code or another one that is true of the case.
    pub found: bool,
    /// Lines of the mistake that nothing named that told it.
    pub missing: Vec<String>,
    /// Places in the list of what was told.
    pub false_alarms: Vec<usize>,
}

impl Judgement {
    /// Found, and all lines of the mistake are named.
    pub fn is_right(&self) -> bool {
        self.found && self.missing.is_empty()
    }
}

/// True of the case, as far as the code says.
pub fn fits(case: &Case, told: &Told) -> bool {
    // What hangs for good is not told by what was taken back.
    let stands = !told.withdrawn || case.plain == Plain::Returns;
    stands && is_expected(case, &told.code)
}

pub fn judge(case: &Case, told: &[Told]) -> Judgement {
    let fitting: Vec<&Told> = told.iter().filter(|told| fits(case, told)).collect();
    let lines = case.culprits.iter().flat_map(|tag| case.lines(tag));
    let mut missing: Vec<String> = lines
        .map(|line| format!("{}:{line}", case.file))
        .filter(|site| !fitting.iter().any(|told| told.sites.contains(site)))
        .collect();
    missing.sort();
    missing.dedup();
    let alarms = told.iter().enumerate().filter(|(_, told)| !is_expected(case, &told.code));
    Judgement {
        found: !fitting.is_empty(),
        missing,
        false_alarms: alarms.map(|(at, _)| at).collect(),
    }
}

fn is_expected(case: &Case, code: &str) -> bool {
    case.is_buggy() && (case.expect == code || case.also_ok.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{expect, Class};

    const BUGGY: Case = Case {
        class: Class::SelfDeadlock,
        expect: expect::DEADLOCK,
        also_ok: &[expect::NESTED_HAZARD],
        plain: Plain::Hangs,
        culprits: &["holder", "waiter"],
        file: "src/open/a.rs",
        text: "a.lock(); // CULPRIT:holder\n\nb.lock(); // CULPRIT:waiter\n",
        ..Case::BASE
    };

    fn told(code: &str, lines: &[u32]) -> Told {
        Told {
            code: code.to_owned(),
            verdict: "proven".to_owned(),
            sites: lines.iter().map(|line| format!("src/open/a.rs:{line}")).collect(),
            withdrawn: false,
        }
    }

    #[track_caller]
    fn check(case: &Case, told: &[Told], found: bool, missing: &[u32], false_alarms: &[usize]) {
        let missing = missing.iter().map(|line| format!("src/open/a.rs:{line}")).collect();
        let expected = Judgement { found, missing, false_alarms: false_alarms.to_vec() };
        assert_eq!(judge(case, told), expected);
    }

    #[test]
    fn a_mistake_is_found_by_each_code_that_is_true_of_it() {
        check(&BUGGY, &[], false, &[1, 3], &[]);
        check(&BUGGY, &[told("deadlock", &[3, 1])], true, &[], &[]);
        check(&BUGGY, &[told("nested-acquire", &[3])], true, &[1], &[]);
    }

    #[test]
    fn anything_else_is_a_false_alarm() {
        check(&BUGGY, &[told("leak", &[1, 3])], false, &[1, 3], &[0]);
        check(&Case::BASE, &[told("deadlock", &[1]), told("leak", &[])], false, &[], &[0, 1]);
        check(&Case::BASE, &[told("clean", &[])], false, &[], &[0]);
    }

    #[test]
    fn what_was_taken_back_does_not_tell_what_still_hangs() {
        let back = Told { withdrawn: true, ..told("deadlock", &[1, 3]) };
        check(&BUGGY, std::slice::from_ref(&back), false, &[1, 3], &[]);
        check(
            &Case { plain: Plain::Returns, ..BUGGY },
            std::slice::from_ref(&back),
            true,
            &[],
            &[],
        );
        check(&Case::BASE, &[back], false, &[], &[0]);
    }
}
