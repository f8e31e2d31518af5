//! What keys do. One table: keys are looked up in it, the footer and the help screen are drawn from it.

use super::key::{Code, Key};
use super::state::{Link, Screen, State};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each says itself; the table has the sentences")]
pub enum Command {
    Open,
    Back,
    OtherSide,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Findings,
    NextFinding,
    PreviousFinding,
    Filter,
    Sort,
    Unfold,
    Pause,
    Processes,
    Log,
    Help,
    Quit,
}

/// A row of the table.
#[derive(Debug)]
pub struct Binding {
    /// Any of these.
    pub keys: &'static [Key],
    /// Ask for this.
    pub command: Command,
    /// In the footer; empty if it is not shown there.
    pub label: &'static str,
    /// In the help.
    pub help: &'static str,
    /// Where it works.
    pub works: fn(&State) -> bool,
}

impl Binding {
    /// The keys as text: `k ↑`.
    #[must_use]
    pub fn keys_text(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        keys.join(" ")
    }
}

fn always(_: &State) -> bool {
    true
}

fn on_overview(state: &State) -> bool {
    matches!(state.screen(), Screen::Overview)
}

fn on_resource(state: &State) -> bool {
    matches!(state.screen(), Screen::Resource(_))
}

fn on_finding(state: &State) -> bool {
    matches!(state.screen(), Screen::Finding(_))
}

fn can_open(state: &State) -> bool {
    match state.screen() {
        Screen::Processes => state.processes.as_ref().is_some_and(|p| !p.is_empty()),
        Screen::Overview | Screen::Finding(_) => true,
        Screen::Resource(_) => state.finding_here().is_some(),
        Screen::Log => false,
    }
}

/// The overview is where one comes back to.
fn can_go_back(state: &State) -> bool {
    state.screens.len() > 1 && !on_overview(state)
}

fn has_more_findings(state: &State) -> bool {
    on_finding(state) && state.findings().len() > 1
}

fn has_findings(state: &State) -> bool {
    !on_finding(state) && state.picture.as_ref().is_some_and(|p| !p.findings.is_empty())
}

fn can_freeze(state: &State) -> bool {
    let lives = state.frozen.is_some() || matches!(state.link, Link::Live(_));
    lives && state.picture.is_some() && !matches!(state.screen(), Screen::Processes | Screen::Log)
}

fn has_log(state: &State) -> bool {
    state.program.is_some() && state.screen() != Screen::Log
}

fn can_choose(state: &State) -> bool {
    state.program.is_none() && state.screen() != Screen::Processes
}

const fn plain(code: Code) -> Key {
    Key::plain(code)
}

/// All keys, in the order in which the footer shows them.
pub const BINDINGS: &[Binding] = &[
    Binding {
        keys: &[plain(Code::Enter)],
        command: Command::Open,
        label: "open",
        help: "open the row; from a finding its resource, and back",
        works: can_open,
    },
    Binding {
        keys: &[plain(Code::Esc), plain(Code::Backspace)],
        command: Command::Back,
        label: "back",
        help: "back to the screen before",
        works: can_go_back,
    },
    Binding {
        keys: &[plain(Code::Tab), plain(Code::Left), plain(Code::Right)],
        command: Command::OtherSide,
        label: "side",
        help: "between holders and waiters",
        works: on_resource,
    },
    Binding {
        keys: &[Key::char('n')],
        command: Command::NextFinding,
        label: "next",
        help: "next finding",
        works: has_more_findings,
    },
    Binding {
        keys: &[Key::char('N')],
        command: Command::PreviousFinding,
        label: "previous",
        help: "previous finding",
        works: has_more_findings,
    },
    Binding {
        keys: &[Key::char('/')],
        command: Command::Filter,
        label: "filter",
        help: "show resources whose name, kind or place contains a text",
        works: on_overview,
    },
    Binding {
        keys: &[Key::char('s')],
        command: Command::Sort,
        label: "sort",
        help: "sort by trouble, waiting, used, oldest hold, name, age in turn",
        works: on_overview,
    },
    Binding {
        keys: &[Key::char('f')],
        command: Command::Findings,
        label: "findings",
        help: "the first finding in full",
        works: has_findings,
    },
    Binding {
        keys: &[Key::char(' ')],
        command: Command::Pause,
        label: "freeze",
        help: "freeze the picture, and go on (the process never stops)",
        works: can_freeze,
    },
    Binding {
        keys: &[Key::char('x')],
        command: Command::Unfold,
        label: "all frames",
        help: "unfold and fold the frames of the runtime",
        works: on_resource,
    },
    Binding {
        keys: &[Key::char('l')],
        command: Command::Log,
        label: "log",
        help: "what the program printed",
        works: has_log,
    },
    Binding {
        keys: &[Key::char('p')],
        command: Command::Processes,
        label: "processes",
        help: "attach to another process",
        works: can_choose,
    },
    Binding {
        keys: &[Key::char('j'), plain(Code::Down)],
        command: Command::Down,
        label: "",
        help: "one row down",
        works: always,
    },
    Binding {
        keys: &[Key::char('k'), plain(Code::Up)],
        command: Command::Up,
        label: "",
        help: "one row up",
        works: always,
    },
    Binding {
        keys: &[plain(Code::PageDown), Key::ctrl('f'), Key::ctrl('d')],
        command: Command::PageDown,
        label: "",
        help: "one page down",
        works: always,
    },
    Binding {
        keys: &[plain(Code::PageUp), Key::ctrl('b'), Key::ctrl('u')],
        command: Command::PageUp,
        label: "",
        help: "one page up",
        works: always,
    },
    Binding {
        keys: &[plain(Code::Home), Key::char('g')],
        command: Command::Home,
        label: "",
        help: "to the first row",
        works: always,
    },
    Binding {
        keys: &[plain(Code::End), Key::char('G')],
        command: Command::End,
        label: "",
        help: "to the last row of what is loaded",
        works: always,
    },
    Binding {
        keys: &[Key::char('?')],
        command: Command::Help,
        label: "help",
        help: "this page",
        works: always,
    },
    Binding {
        keys: &[Key::char('q'), Key::ctrl('c')],
        command: Command::Quit,
        label: "quit",
        help: "quit; a program started by `holdup run` is stopped",
        works: always,
    },
];

/// What a key asks for in this state.
#[must_use]
pub fn lookup(state: &State, key: Key) -> Option<Command> {
    BINDINGS.iter().find(|b| b.keys.contains(&key) && (b.works)(state)).map(|b| b.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_has_two_meanings() {
        for (at, binding) in BINDINGS.iter().enumerate() {
            for key in binding.keys {
                let twice = BINDINGS[at + 1..].iter().find(|b| b.keys.contains(key));
                assert!(twice.is_none(), "`{key}` means {:?} and {twice:?}", binding.command);
            }
        }
    }

    #[test]
    fn keys_are_written_and_read() {
        for (text, shown) in
            [("j", "j"), ("enter", "↵"), ("ctrl-c", "^c"), ("space", "space"), ("?", "?")]
        {
            assert_eq!(text.parse::<Key>().map(|k| k.to_string()), Ok(shown.to_string()));
        }
        assert!("nonsense".parse::<Key>().is_err());
        assert!("".parse::<Key>().is_err());
    }

    #[test]
    fn every_key_is_explained() {
        assert!(BINDINGS.iter().all(|b| !b.keys.is_empty() && !b.help.is_empty()));
    }
}
