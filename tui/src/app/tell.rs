//! A finding as lines of text.

use super::state::{Piece, Tone};
use holdup_core::Finding;
use holdup_core::text::{self, Style};
use std::collections::HashMap;
use std::sync::Arc;

/// Rows for the text on a screen of this size.
pub(super) fn room(size: (u16, u16)) -> usize {
    usize::from(size.1.saturating_sub(4)).max(1)
}

/// The text, wrapped for a screen of this size, with the source where it is readable.
pub(super) fn lines(
    finding: &Finding,
    files: &HashMap<Arc<str>, Option<Arc<str>>>,
    size: (u16, u16),
) -> Vec<Vec<Piece>> {
    let sources = |file: &str| files.get(file).cloned().flatten();
    let style = Style { width: Some(size.0.saturating_sub(2)), color: true };
    let mut pen = Pen::default();
    text::render(finding, &sources, &style).lines().map(|line| pen.line(line)).collect()
}

/// Follows the colour codes of the renderer. Other control characters are not in its text.
#[derive(Default)]
struct Pen {
    tone: Tone,
    bold: bool,
}

impl Pen {
    fn line(&mut self, line: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (at, part) in line.split("\x1b[").enumerate() {
            let text = match part.split_once('m') {
                Some((codes, text)) if at > 0 => {
                    codes.split(';').for_each(|code| self.turn(code));
                    text
                }
                _ => part,
            };
            if !text.is_empty() {
                let text = text.replace(char::is_control, " ");
                pieces.push(Piece { text, tone: self.tone, bold: self.bold });
            }
        }
        pieces
    }

    fn turn(&mut self, code: &str) {
        match code {
            "" | "0" => *self = Pen::default(),
            "1" => self.bold = true,
            "31" | "91" => self.tone = Tone::Bad,
            "33" | "93" => self.tone = Tone::Warn,
            "32" | "92" => self.tone = Tone::Good,
            "34" | "36" | "94" | "96" => self.tone = Tone::Accent,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_codes_become_tones() {
        let mut pen = Pen::default();
        let pieces = pen.line("\x1b[1m\x1b[91mdeadlock\x1b[0m: x\x1b[94m │");
        let short: Vec<_> = pieces.iter().map(|p| (p.text.as_str(), p.tone, p.bold)).collect();
        assert_eq!(
            short,
            [
                ("deadlock", Tone::Bad, true),
                (": x", Tone::Plain, false),
                (" │", Tone::Accent, false)
            ]
        );
    }
}
