//! A key press, free of any terminal library.

use std::fmt;
use std::str::FromStr;

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each says itself")]
pub enum Code {
    /// A character, as it was typed (shift is part of it).
    Char(char),
    Enter,
    Esc,
    Tab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// A key press.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// What was pressed.
    pub code: Code,
    /// With the control key.
    pub ctrl: bool,
}

impl Key {
    /// The key without control.
    #[must_use]
    pub const fn plain(code: Code) -> Key {
        Key { code, ctrl: false }
    }

    /// A character without control.
    #[must_use]
    pub const fn char(c: char) -> Key {
        Key::plain(Code::Char(c))
    }

    /// A character with control.
    #[must_use]
    pub const fn ctrl(c: char) -> Key {
        Key { code: Code::Char(c), ctrl: true }
    }
}

const NAMES: [(&str, Code); 13] = [
    ("space", Code::Char(' ')),
    ("enter", Code::Enter),
    ("esc", Code::Esc),
    ("tab", Code::Tab),
    ("backspace", Code::Backspace),
    ("up", Code::Up),
    ("down", Code::Down),
    ("left", Code::Left),
    ("right", Code::Right),
    ("pgup", Code::PageUp),
    ("pgdn", Code::PageDown),
    ("home", Code::Home),
    ("end", Code::End),
];

/// Reads `j`, `enter`, `ctrl-c`.
impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Key, String> {
        let (ctrl, name) = match text.strip_prefix("ctrl-") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let mut chars = name.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => Code::Char(c),
            _ => NAMES
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, c)| *c)
                .ok_or(format!("no key is called `{text}`"))?,
        };
        Ok(Key { code, ctrl })
    }
}

/// Writes a key as the footer shows it: `j`, `↵`, `PgDn`, `^c`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("^")?;
        }
        match self.code {
            Code::Char(' ') => f.write_str("space"),
            Code::Char(c) => write!(f, "{c}"),
            Code::Enter => f.write_str("↵"),
            Code::Esc => f.write_str("Esc"),
            Code::Tab => f.write_str("Tab"),
            Code::Backspace => f.write_str("⌫"),
            Code::Up => f.write_str("↑"),
            Code::Down => f.write_str("↓"),
            Code::Left => f.write_str("←"),
            Code::Right => f.write_str("→"),
            Code::PageUp => f.write_str("PgUp"),
            Code::PageDown => f.write_str("PgDn"),
            Code::Home => f.write_str("Home"),
            Code::End => f.write_str("End"),
        }
    }
}
