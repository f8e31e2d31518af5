//! The thresholds of the diagnosis: the defaults, what the program set, and above both the environment.

use crate::report;
use holdup_core::diagnose::Limits;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

const VARIABLE: &str = "HOLDUP_LIMITS";

static SET: Mutex<Option<Limits>> = Mutex::new(None);

/// What the environment says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Environment {
    limits: Vec<(Name, Duration)>,
    /// What is wrong with the rest of it.
    complaints: Vec<String>,
}

impl Environment {
    /// These limits, but for what the environment says.
    fn over(&self, mut limits: Limits) -> Limits {
        for (name, limit) in &self.limits {
            match name {
                Name::Stall => limits.stall = *limit,
                Name::Futurelock => limits.futurelock = *limit,
                Name::OrphanGrace => limits.orphan_grace = *limit,
                Name::Overdue => limits.overdue = *limit,
            }
        }
        limits
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Stall,
    Futurelock,
    OrphanGrace,
    Overdue,
}

const NAMES: [(&str, Name); 4] = [
    ("stall", Name::Stall),
    ("futurelock", Name::Futurelock),
    ("orphan_grace", Name::OrphanGrace),
    ("overdue", Name::Overdue),
];

/// The limits in force.
pub(crate) fn get() -> Limits {
    environment().over(of_program())
}

/// The limits that the program has set.
pub(crate) fn of_program() -> Limits {
    SET.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
}

/// Sets the limits where the environment says nothing.
pub(crate) fn set(limits: Limits) {
    *SET.lock().unwrap_or_else(PoisonError::into_inner) = Some(limits);
}

/// Tells what is wrong with the environment. Called once, by the thread that watches.
pub(crate) fn complain() {
    for complaint in &environment().complaints {
        report::complain(complaint);
    }
}

fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let text = std::env::var_os(VARIABLE).unwrap_or_default();
        read(&text.to_string_lossy())
    })
}

fn read(text: &str) -> Environment {
    let mut environment = Environment::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, limit) = part.split_once('=').unwrap_or((part, ""));
        let known = NAMES.iter().find(|(known, _)| *known == name.trim());
        match (known, duration(limit.trim())) {
            (Some((_, name)), Some(limit)) => environment.limits.push((*name, limit)),
            (Some(_), None) => environment.complaints.push(format!(
                "`{part}` in {VARIABLE} is ignored: not a duration such as `500ms`, `5s` or `2m`"
            )),
            (None, _) => environment.complaints.push(format!(
                "`{part}` in {VARIABLE} is ignored: the limits are {}",
                NAMES.map(|(name, _)| format!("`{name}`")).join(", ")
            )),
        }
    }
    environment
}

/// `500ms`, `1.5s`, `2m`.
fn duration(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(at);
    let seconds = match unit.trim_start() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations() {
        let table = [
            ("500ms", Some(500)),
            ("5s", Some(5000)),
            ("1.5 s", Some(1500)),
            ("2m", Some(120_000)),
            ("0s", Some(0)),
            ("5", None),
            ("", None),
            ("s", None),
            ("-5s", None),
            ("1e9s", None),
            ("1.2.3s", None),
            ("5 hours", None),
            ("99999999999999999999999999m", None),
        ];
        for (text, millis) in table {
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn the_environment_wins() {
        let [short, long] = [1, 9].map(Duration::from_secs);
        let program = Limits { stall: long, overdue: long, ..Limits::default() };
        let limits = read("stall=1s,futurelock=1s,orphan_grace=1s").over(program.clone());
        let expected = Limits { stall: short, futurelock: short, orphan_grace: short, ..program };
        assert_eq!(limits, expected);
        assert_eq!(read("overdue=1s").over(Limits::default()).overdue, short);
    }

    #[test]
    fn keeps_what_it_understands_and_says_what_it_does_not() {
        assert_eq!(read(""), Environment::default());
        let read =
            read(" stall=1s,overdue = 2m,, stall=2s, patience=3s, futurelock, orphan_grace=5");
        let expected = [
            (Name::Stall, Duration::from_secs(1)),
            (Name::Overdue, Duration::from_secs(120)),
            (Name::Stall, Duration::from_secs(2)),
        ];
        assert_eq!(read.limits, expected);
        assert_eq!(
            read.complaints,
            [
                "`patience=3s` in HOLDUP_LIMITS is ignored: the limits are `stall`, `futurelock`, `orphan_grace`, `overdue`",
                "`futurelock` in HOLDUP_LIMITS is ignored: not a duration such as `500ms`, `5s` or `2m`",
                "`orphan_grace=5` in HOLDUP_LIMITS is ignored: not a duration such as `500ms`, `5s` or `2m`",
            ]
        );
    }
}
