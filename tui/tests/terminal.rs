//! The app on a terminal of its own.

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command};

/// A terminal with the app on it.
struct Screen {
    terminal: File,
    app: Child,
    /// What came out, as it came.
    seen: String,
    grid: Vec<Vec<char>>,
    cursor: (usize, usize),
}

impl Screen {
    fn start(sockets: &Path, arguments: &[&str]) -> Screen {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a terminal");
        grantpt(&terminal).expect("it is ours");
        unlockpt(&terminal).expect("it is ours");
        let size = Winsize { ws_col: 80, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).expect("it has a size");
        let name = ptsname(&terminal, Vec::new()).expect("it has a name");
        let side = || {
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            File::from(
                rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).expect("its other side"),
            )
        };
        let app = Command::new(env!("CARGO_BIN_EXE_holdup"))
            .args(arguments)
            .env("HOLDUP_SOCKET_DIR", sockets)
            .env("TERM", "xterm-256color")
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .expect("the binary runs");
        let grid = vec![vec![' '; 80]; 24];
        Screen { terminal: File::from(terminal), app, seen: String::new(), grid, cursor: (0, 0) }
    }

    /// Reads until a text is on the screen, or has come out as it is.
    fn wait_for(&mut self, text: &str) {
        let mut pending = Vec::new();
        let mut buffer = [0; 4_096];
        while !self.seen.contains(text)
            && !self.grid.iter().any(|row| row.iter().collect::<String>().contains(text))
        {
            let n = self.terminal.read(&mut buffer).expect("the app draws");
            pending.extend_from_slice(&buffer[..n]);
            let whole = pending.iter().rposition(u8::is_ascii).map_or(0, |at| at + 1);
            let part = String::from_utf8_lossy(&pending[..whole]).into_owned();
            pending.drain(..whole);
            self.draw(&part);
            self.seen.push_str(&part);
        }
    }

    /// Follows what a terminal would do, as far as the app makes use of it: only cells that change are written.
    fn draw(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\x1b' => {
                    let mut arguments = String::new();
                    let end = chars.by_ref().skip(1).find(|c| {
                        arguments.push(*c);
                        c.is_ascii_alphabetic()
                    });
                    if end == Some('H') {
                        arguments.pop();
                        let (row, column) = arguments.split_once(';').unwrap_or(("1", "1"));
                        let number = |text: &str| text.parse::<usize>().map_or(0, |n| n - 1);
                        self.cursor = (number(row), number(column));
                    }
                }
                '\r' => self.cursor.1 = 0,
                '\n' => self.cursor.0 += 1,
                c => {
                    let (row, column) = self.cursor;
                    if let Some(cell) = self.grid.get_mut(row).and_then(|row| row.get_mut(column)) {
                        *cell = c;
                    }
                    self.cursor.1 += 1;
                }
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).expect("the app listens");
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(self.terminal.as_fd()).expect("a terminal").local_modes;
        !modes.contains(LocalModes::ICANON)
    }
}

#[test]
fn the_terminal_is_taken_and_given_back() {
    let sockets = tempfile::tempdir().expect("a temporary folder");
    let mut screen = Screen::start(sockets.path(), &[]);
    screen.wait_for("Nothing runs with holdup here");
    assert!(screen.is_raw());
    screen.press("?");
    screen.wait_for("any key closes this page");
    screen.press("qq");
    screen.wait_for("\x1b[?1049l");
    assert_eq!(screen.app.wait().expect("its end").code(), Some(0));
    assert!(!screen.is_raw());
}

#[test]
fn a_program_is_shown_with_its_output_and_stopped_with_the_app() {
    let sockets = tempfile::tempdir().expect("a temporary folder");
    let script = "trap 'echo goodbye; exit 0' TERM; echo served=$HOLDUP_SERVE; sleep 600 & wait";
    let mut screen = Screen::start(sockets.path(), &["run", "--", "sh", "-c", script]);
    screen.wait_for("served=1");
    screen.press("q");
    screen.wait_for("\x1b[?1049l");
    assert_eq!(screen.app.wait().expect("its end").code(), Some(0));
}

#[test]
fn the_exit_code_of_a_program_that_ended_is_passed_on() {
    let sockets = tempfile::tempdir().expect("a temporary folder");
    let mut screen =
        Screen::start(sockets.path(), &["run", "--", "sh", "-c", "echo last words; exit 9"]);
    screen.wait_for("exit code 9");
    screen.press("q");
    screen.wait_for("\x1b[?1049l");
    screen.wait_for("has ended: exit code 9");
    assert_eq!(screen.app.wait().expect("its end").code(), Some(9));
}

#[test]
fn nothing_is_left_behind_when_the_terminal_goes_away() {
    let sockets = tempfile::tempdir().expect("a temporary folder");
    // The pipe ends when the program does: it is open nowhere else.
    let pipe = sockets.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let script = format!("exec 3>'{}'; echo ready; sleep 600", pipe.display());
    let mut screen = Screen::start(sockets.path(), &["run", "--", "sh", "-c", &script]);
    let mut end = File::open(&pipe).expect("the program opens it, too");
    screen.wait_for("ready");
    let Screen { terminal, mut app, .. } = screen;
    drop(terminal);
    let mut nothing = Vec::new();
    end.read_to_end(&mut nothing).expect("it ends");
    app.wait().expect("its end");
}
