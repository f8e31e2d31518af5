//! Settings from the environment, read once.

use std::sync::OnceLock;

/// How much of a call stack is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// The full stack.
    Unwind,
    /// The line of the call only: cheaper, and nothing can be proven by paths.
    Location,
}

impl Capture {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Capture::Unwind => "full",
            Capture::Location => "location",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    /// `HOLDUP=off`: record nothing, start nothing.
    pub(crate) on: bool,
    /// `HOLDUP_CAPTURE=unwind|location`.
    pub(crate) capture: Capture,
}

pub(crate) fn get() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| {
        let is = |name: &str, value: &str| {
            std::env::var_os(name).is_some_and(|set| set.eq_ignore_ascii_case(value))
        };
        Config {
            on: !is("HOLDUP", "off"),
            capture: if is("HOLDUP_CAPTURE", "location") {
                Capture::Location
            } else {
                Capture::Unwind
            },
        }
    })
}
