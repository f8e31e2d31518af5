//! The terminal: taken in raw mode, and given back however the app ends.

use crate::app::Event;
use crate::app::key::{Code, Key};
use crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{self, Stdout};
use std::panic;

/// Gives the terminal back when it is dropped.
#[derive(Debug)]
pub struct Guard(());

impl Guard {
    /// Takes the terminal. A panic gives it back before it is reported.
    ///
    /// # Errors
    ///
    /// If there is no terminal.
    pub fn take() -> io::Result<(Guard, Terminal<CrosstermBackend<Stdout>>)> {
        enable_raw_mode()?;
        let guard = Guard(());
        execute!(io::stdout(), EnterAlternateScreen)?;
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            give_back();
            report(info);
        }));
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok((guard, terminal))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        give_back();
    }
}

/// What cannot be given back is left as it is: there is nobody to tell.
fn give_back() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, crossterm::cursor::Show);
    let _ = disable_raw_mode();
}

/// Waits for what the user does next; `None` for what means nothing to us.
///
/// # Errors
///
/// If the terminal is gone.
pub fn next_event() -> io::Result<Option<Event>> {
    Ok(match event::read()? {
        event::Event::Key(key) => key_of(key).map(Event::Key),
        event::Event::Resize(columns, rows) => Some(Event::Resize(columns, rows)),
        _ => None,
    })
}

/// The key, if it was pressed and not released.
fn key_of(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let code = match event.code {
        KeyCode::Char(c) => Code::Char(c),
        KeyCode::Enter => Code::Enter,
        KeyCode::Esc => Code::Esc,
        KeyCode::Tab | KeyCode::BackTab => Code::Tab,
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        _ => return None,
    };
    if event.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SUPER) {
        return None;
    }
    Some(Key { code, ctrl: event.modifiers.contains(KeyModifiers::CONTROL) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_no_press() {
        let press = KeyEvent::new(KeyCode::Char('j'), KeyModifiers::NONE);
        assert_eq!(key_of(press), Some(Key::char('j')));
        let release =
            KeyEvent::new_with_kind(KeyCode::Char('j'), KeyModifiers::NONE, KeyEventKind::Release);
        assert_eq!(key_of(release), None);
        let ctrl = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(key_of(ctrl), Some(Key::ctrl('c')));
    }
}
