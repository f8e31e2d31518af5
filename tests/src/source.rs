//! A quick look at Rust source: enough to see which paths a file names and which functions it makes public.

use std::ops::Range;
use std::path::Path;

/// The source with comments and the contents of literals blanked; offsets and lines stay as they are.
#[must_use]
pub fn code(source: &str) -> String {
    let mut out = source.as_bytes().to_vec();
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let (blank, next) = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            (0..length, length)
        } else if rest.starts_with("/*") {
            let length = block_comment(rest);
            (0..length, length)
        } else if let Some(hashes) = raw_string(source, at) {
            let opening = rest.find('"').map_or(rest.len(), |quote| quote + 1);
            let closing = format!("\"{}", "#".repeat(hashes));
            let content = rest[opening..].find(&closing).unwrap_or(rest.len() - opening);
            (opening..opening + content, (opening + content + closing.len()).min(rest.len()))
        } else if rest.starts_with('"') {
            let length = quoted(rest, b'"');
            (1..length.saturating_sub(1).max(1), length)
        } else if let Some(length) = character(rest) {
            (1..length - 1, length)
        } else {
            (0..0, rest.chars().next().map_or(1, char::len_utf8))
        };
        for byte in &mut out[at + blank.start..at + blank.end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at += next;
    }
    String::from_utf8(out).expect("whole literals and comments are replaced by spaces")
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_u32, 0);
    let bytes = rest.as_bytes();
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The number of hashes, if a raw string begins here.
fn raw_string(source: &str, at: usize) -> Option<usize> {
    let rest = source[at..].strip_prefix('r')?;
    let before = source[..at].bytes().next_back().unwrap_or(b' ');
    let hashes = rest.bytes().take_while(|byte| *byte == b'#').count();
    let begins_a_word = !is_word(before) || before == b'b' || before == b'c';
    (begins_a_word && rest[hashes..].starts_with('"')).then_some(hashes)
}

fn quoted(rest: &str, quote: u8) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The length of a character literal, if this is one and no lifetime.
fn character(rest: &str) -> Option<usize> {
    let content = rest.strip_prefix('\'')?;
    if content.starts_with('\\') {
        return Some(quoted(rest, b'\''));
    }
    let first = content.chars().next()?.len_utf8();
    content[first..].starts_with('\'').then_some(first + 2)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Code without what is there for tests only, which may name what it likes.
#[must_use]
pub fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(at) = out.find(FOR_TESTS) {
        let end = end_of_item(&out, at);
        out.replace_range(at..end, "");
    }
    out
}

/// The modules that are there for tests only and lie in files of their own.
#[must_use]
pub fn test_modules(code: &str) -> Vec<&str> {
    let items = code.match_indices(FOR_TESTS).map(|(at, _)| &code[at..end_of_item(code, at)]);
    items
        .filter_map(|item| item.strip_suffix(';')?.split_once("mod ").map(|(_, name)| name))
        .collect()
}

const FOR_TESTS: &str = "#[cfg(test)]";

/// Behind its body, or behind its `;` if it has none.
fn end_of_item(code: &str, at: usize) -> usize {
    let semicolon = code[at..].find(';').map(|offset| at + offset);
    match block(code, at) {
        Some(body) if semicolon.is_none_or(|semicolon| body.start <= semicolon) => body.end + 1,
        _ => semicolon.map_or(code.len(), |semicolon| semicolon + 1),
    }
}

/// What stands between the next `{` and its `}`.
fn block(code: &str, from: usize) -> Option<Range<usize>> {
    let start = from + code[from..].find('{')? + 1;
    let mut depth = 1_u32;
    for (offset, byte) in code[start..].bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(start..start + offset);
        }
    }
    None
}

/// Every path that code names, groups written out and `self`, `super` and `crate` followed from `module`.
///
/// Single words are paths too.
#[must_use]
pub fn paths(code: &str, module: &[String]) -> Vec<String> {
    let mut paths = Vec::new();
    let tokens = tokens(code);
    let mut at = 0;
    while at < tokens.len() {
        if is_word(tokens[at].as_bytes()[0]) {
            at = path(&tokens, at, &mut Vec::new(), &mut paths);
        } else {
            at += 1;
        }
    }
    for path in &mut paths {
        *path = absolute(path, module);
    }
    paths
}

/// Words, `::`, and single bytes of anything else.
fn tokens(code: &str) -> Vec<&str> {
    let bytes = code.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| is_word(**byte)).count();
        let end = match length {
            0 if code[at..].starts_with("::") => at + 2,
            0 => at + code[at..].chars().next().map_or(1, char::len_utf8),
            _ => at + length,
        };
        if !code[at..end].trim().is_empty() {
            tokens.push(&code[at..end]);
        }
        at = end;
    }
    tokens
}

/// Reads a path from its first word, adds it, and returns where it ends.
fn path<'a>(
    tokens: &[&'a str],
    mut at: usize,
    prefix: &mut Vec<&'a str>,
    paths: &mut Vec<String>,
) -> usize {
    let depth = prefix.len();
    prefix.push(tokens[at]);
    at += 1;
    if tokens.get(at) == Some(&"::") {
        match tokens.get(at + 1) {
            Some(&"{") => {
                at += 2;
                while at < tokens.len() && tokens[at] != "}" {
                    if is_word(tokens[at].as_bytes()[0]) {
                        at = path(tokens, at, prefix, paths);
                    } else {
                        at += 1;
                    }
                }
                prefix.truncate(depth);
                return at + 1;
            }
            Some(next) if is_word(next.as_bytes()[0]) => {
                at = path(tokens, at + 1, prefix, paths);
                prefix.truncate(depth);
                return at;
            }
            _ => {}
        }
    }
    paths.push(prefix.join("::"));
    prefix.truncate(depth);
    at
}

fn absolute(path: &str, module: &[String]) -> String {
    let mut base = module.len();
    let mut rest = path;
    loop {
        if let Some(after) = rest.strip_prefix("self::") {
            rest = after;
        } else if let Some(after) = rest.strip_prefix("super::") {
            base = base.saturating_sub(1);
            rest = after;
        } else {
            break;
        }
    }
    if rest.len() == path.len() {
        return path.to_owned();
    }
    let mut path = vec!["crate"];
    path.extend(module[..base].iter().map(String::as_str));
    path.push(rest);
    path.join("::")
}

/// The module that a file is, from its path below `src`.
#[must_use]
pub fn module(below_src: &Path) -> Vec<String> {
    let mut module: Vec<String> = below_src
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// A public function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its arguments, spaces evened out.
    pub arguments: String,
}

/// The public functions in the inherent `impl` blocks of a type.
#[must_use]
pub fn methods(code: &str, of: &str) -> Vec<Function> {
    let mut methods = Vec::new();
    let mut at = 0;
    while let Some(found) = code[at..].find("\nimpl") {
        let start = at + found;
        let Some(body) = block(code, start) else {
            break;
        };
        let header = &code[start + 5..body.start - 1];
        let subject = match header.strip_prefix('<') {
            Some(generics) => generics.split_once('>').map_or("", |(_, subject)| subject),
            None => header,
        };
        let named = tokens(subject).first().is_some_and(|first| *first == of);
        if named && !tokens(header).contains(&"for") {
            methods.extend(public_functions(&code[body.clone()]));
        }
        at = body.end;
    }
    methods.sort();
    methods
}

fn public_functions(body: &str) -> Vec<Function> {
    let tokens = tokens(body);
    let mut functions = Vec::new();
    for (at, window) in tokens.windows(2).enumerate() {
        if window[0] != "fn" {
            continue;
        }
        let qualifiers = tokens[..at]
            .iter()
            .rev()
            .take_while(|token| ["const", "async", "unsafe"].contains(token));
        let public =
            at.checked_sub(qualifiers.count() + 1).is_some_and(|before| tokens[before] == "pub");
        if !public {
            continue;
        }
        let open = at + 2 + tokens[at + 2..].iter().position(|token| *token == "(").unwrap_or(0);
        let mut depth = 0_u32;
        let end = tokens[open..].iter().position(|token| {
            match *token {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let arguments = end.map_or_else(String::new, |end| tokens[open + 1..open + end].join(" "));
        let arguments = arguments.trim_end_matches(" ,");
        functions.push(Function {
            name: window[1].to_owned(),
            // `mut self` is the body's affair.
            arguments: arguments.strip_prefix("mut ").unwrap_or(arguments).to_owned(),
        });
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank() {
        let source = "a /* b /* c */ */ \"d\\\"\" r#\"e\"# 'f' '\\'' &'g h // i\nj";
        let expected = "a                 \"   \" r#\" \"# ' ' '  ' &'g h     \nj";
        assert_eq!(code(source), expected);
    }

    #[test]
    fn groups_and_relatives_are_written_out() {
        let module = module(Path::new("registry/ledger.rs"));
        let paths = paths("use super::{a, b::{self, C as _}}; std::mem::take(x)", &module);
        for expected in ["crate::registry::a", "crate::registry::b::C", "std::mem::take", "x"] {
            assert!(paths.iter().any(|path| path == expected), "{expected} in {paths:?}");
        }
    }

    #[test]
    fn tests_may_name_what_they_like() {
        let code =
            "use a;\n#[cfg(test)]\nmod tests { use b; { } }\n#[cfg(test)]\nmod d;\nfn c() { }";
        assert_eq!(without_tests(code), "use a;\n\n\nfn c() { }");
        assert_eq!(test_modules(code), ["d"]);
    }

    #[test]
    fn methods_are_those_of_the_type_itself() {
        let code = "\nimpl<'a> P<'a> {\n pub async fn a(mut self, n: u32,) -> u8 {}\n fn b() {}\n pub(crate) fn c() {}\n pub const fn d(self: Arc<Self>) {} }\nimpl Drop for P<'_> { pub fn e() {} }\nimpl Q { pub fn f() {} }";
        let names: Vec<_> = methods(code, "P").into_iter().map(|f| (f.name, f.arguments)).collect();
        let expected = [("a", "self , n : u32"), ("d", "self : Arc < Self >")];
        assert_eq!(
            names,
            expected.map(|(name, arguments)| (name.to_owned(), arguments.to_owned()))
        );
    }
}
