mod hazards;
mod knots;
mod losses;

use super::{NoSources, Sources, Style, age, clean, render};
use crate::scenario::Scenario;
use crate::snapshot::Snapshot;
use insta::assert_snapshot;
use std::sync::Arc;
use std::time::Duration;

/// A file whose lines from `first` on are these.
fn file(first: usize, lines: &str) -> Arc<str> {
    let lines = lines.strip_prefix('\n').unwrap_or(lines);
    format!("{}{lines}", "// …\n".repeat(first - 1)).into()
}

fn sources(file: &str) -> Option<Arc<str>> {
    match file {
        "src/store.rs" => Some(self::file(
            41,
            "
async fn simulate_and_persist(sem: &Semaphore) -> Result<()> {
    let _outer = sem.acquire().await?;
    let block = simulate().await?;
    check(&block)?;
    log(&block);

    let _inner = sem.acquire().await?;
    persist(block).await
}
",
        )),
        "src/ledger.rs" => Some(self::file(
            8,
            "
\tlet _commit = self.commits.acquire().await?;
\tself.upload().await
",
        )),
        _ => None,
    }
}

fn report_of(
    scenario: &str,
    change: impl Fn(&mut Snapshot),
    sources: &dyn Sources,
    style: &Style,
) -> String {
    let mut scenario = Scenario::read(scenario).expect("well-formed");
    change(&mut scenario.current);
    let findings = scenario.diagnose();
    assert_eq!(findings.len(), 1, "{findings:?}");
    render(&findings[0], sources, style)
}

fn report(scenario: &str, style: &Style) -> String {
    report_of(scenario, |_| {}, &sources, style)
}

const SELF: &str = "
    semaphore db_writes 1
    task 17
      hold db_writes: run@5 > store::simulate_and_persist@src/store.rs:42:22
      wait db_writes: run@5 > store::simulate_and_persist@src/store.rs:47:22
    task 18
      wait db_writes
    task 21
      wait db_writes
    task 22
      wait db_writes";

const TWO_FILES: &str = "
    semaphore db_writes 2
    task 17
      hold db_writes x2: run@5 > store::simulate_and_persist@src/store.rs:42:22
      wait db_writes: run@7 > ledger::commit@src/ledger.rs:8:29";

const RING: &str = "
    semaphore commits 1
    semaphore uploads 1
    task 17
      hold commits: ledger::commit@src/ledger.rs:8:29
    task 23
      hold uploads: store::simulate_and_persist@src/store.rs:42:22
    task 17
      wait uploads: ledger::commit@src/ledger.rs:9:7
    task 23
      wait commits: store::simulate_and_persist@src/store.rs:47:22
    task 30
      wait commits";

#[test]
fn a_self_deadlock_in_one_file() {
    assert_snapshot!(report(SELF, &Style::default()));
}

#[test]
fn a_self_deadlock_in_two_files() {
    assert_snapshot!(report(TWO_FILES, &Style::default()));
}

#[test]
fn without_sources() {
    assert_snapshot!(report_of(SELF, |_| {}, &NoSources, &Style::default()));
}

#[test]
fn a_ring() {
    assert_snapshot!(report(RING, &Style::default()));
}

#[test]
fn more_than_there_is() {
    let scenario = "
        semaphore db_writes 3
        task 5
          wait db_writes x4: store::simulate_and_persist@src/store.rs:47:22
        task 6
          wait db_writes";
    assert_snapshot!(report(scenario, &Style::default()));
}

#[test]
fn narrow() {
    let narrow = report(SELF, &Style { width: Some(44), color: false });
    assert_snapshot!(narrow);
    let words = narrow.replace('│', "");
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in ["took the only permit", "has been waiting here for another one", "own"] {
        assert!(words.contains(said), "nothing is cut: {said}");
    }
}

#[test]
fn colored() {
    let colored = report(SELF, &Style { width: None, color: true });
    assert_snapshot!(colored.replace('\u{1b}', "␛"));
}

#[test]
fn no_name_and_no_source_can_drive_the_terminal() {
    let evil: &dyn Sources =
        &|_: &str| Some(file(42, "\u{1b}[2J let _ = sem.acquire();\u{202e}\u{7}\n"));
    let rename = |snapshot: &mut Snapshot| {
        snapshot.resources[0].name = Some("evil\u{1b}]0;x\u{7}\n\u{202e}\u{9b}1m".into());
        for site in &mut snapshot.sites {
            site.file = "src/\u{1b}[31m.rs".into();
        }
    };
    for sources in [evil, &NoSources] {
        let report = report_of(SELF, rename, sources, &Style::default());
        let foul = report.chars().find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
        assert_eq!(foul, None, "{report:?}");
    }
}

#[test]
fn a_source_that_does_not_fit_is_not_shown() {
    for source in
        ["", "one line\n", &"\n".repeat(60), &format!("{}{}", "\n".repeat(46), "x".repeat(9))]
    {
        let source: Arc<str> = source.into();
        let found = report_of(SELF, |_| {}, &|_: &str| Some(source.clone()), &Style::default());
        assert_eq!(found, report_of(SELF, |_| {}, &NoSources, &Style::default()));
    }
}

#[test]
fn any_width_will_do() {
    for scenario in [SELF, TWO_FILES, RING] {
        for width in [0, 1, 10, 30, 80, u16::MAX] {
            assert!(
                report(scenario, &Style { width: Some(width), color: false }).contains("deadlock")
            );
        }
    }
}

#[test]
fn ages_as_people_say_them() {
    let cases = [
        (0, "0 ns"),
        (999, "999 ns"),
        (42_000, "42 µs"),
        (1_240_000, "1.2 ms"),
        (412_900_000, "412 ms"),
        (2_034_000_000, "2.03 s"),
        (71_900_000_000, "71 s"),
        (599_000_000_000, "599 s"),
        (900_000_000_000, "15 min"),
        (9_000_000_000_000, "2.5 h"),
    ];
    for (nanos, expected) in cases {
        assert_eq!(age(Duration::from_nanos(nanos)), expected);
    }
}

#[test]
fn clean_text_is_left_alone() {
    assert_eq!(clean("db_writes → ü 写"), "db_writes → ü 写");
    assert_eq!(clean("a\u{1b}[1mb\nc\u{85}"), "a␛[1mb␊c\u{fffd}");
}
