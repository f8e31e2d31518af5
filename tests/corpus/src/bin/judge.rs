//! Runs each case of the corpus under holdup, in a process of its own, and judges what holdup said of it.

use async_cases::case::{Case, Class};
use async_cases::judging::{judge, Judgement, Told};
use async_cases::run::{run, Watch, STUCK_BY};
use clap::{Parser, Subcommand};
use holdup::core::{Finding, FindingId, Verdict};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Shorter than the defaults, so that a case need not be watched for minutes; the longest healthy spell without
/// progress in the corpus is shorter still.
const LIMITS: &str = "stall=1500ms,futurelock=500ms,orphan_grace=1500ms,overdue=2s";

/// Well above these limits, and with room for a busy machine where a finding is expected.
const WATCH: Watch = Watch {
    returns: Duration::from_secs(10),
    linger: Duration::from_millis(3500),
    hangs: Duration::from_millis(1200).saturating_add(STUCK_BY),
    hangs_at_most: Duration::from_secs(15),
};

const RIGHT: u8 = 0;
const MISSED: u8 = 1;
/// What clap says, too.
const UNUSABLE: u8 = 2;
const FALSE_ALARM: u8 = 3;
const UNJUDGED: u8 = 4;

const EXIT_CODES: &str = "\
Exit codes:
  0  every mistake was found, with all its lines, and there was no false alarm
  1  a mistake was not found, or a line of it was not named
  2  wrong arguments, or a build that is not instrumented
  3  there was a false alarm
  4  a case could not be judged: its process ended without a report";

/// Runs each case of the corpus under holdup, in a process of its own, and judges what holdup said of it.
#[derive(Parser)]
#[command(after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Print one JSON object a case in place of the table
    #[arg(long)]
    json: bool,
    /// Cases that run at the same time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// This case only, or one half: `open`, `heldout`
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// Run each case this often
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    #[command(subcommand)]
    command: Option<Single>,
}

#[derive(Subcommand)]
enum Single {
    /// Run one case in this process; holdup's words go to stderr, what is judged to stdout
    Run {
        #[arg(value_name = "ID")]
        id: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !holdup::INSTRUMENTED {
        eprintln!("this build is not instrumented: build it with `--features always-on`");
        return ExitCode::from(UNUSABLE);
    }
    if let Some(Single::Run { id }) = &arguments.command {
        let [case] = selected(Some(id))[..] else { return unknown(id) };
        println!("{}", report(case));
        // The runtime is stuck, maybe; it ends with `main`.
        return ExitCode::SUCCESS;
    }
    let cases = selected(arguments.only.as_deref());
    if let (true, Some(only)) = (cases.is_empty(), &arguments.only) {
        return unknown(only);
    }
    let runs = run_all(&cases, arguments.repeat.into(), arguments.jobs.into());
    if arguments.json {
        for run in &runs {
            println!("{}", run.json());
        }
    } else {
        print!("{}", table(&runs));
    }
    ExitCode::from(exit_code(&runs))
}

fn unknown(id: &str) -> ExitCode {
    eprintln!("no case `{id}`; `runcase list` lists them");
    ExitCode::from(UNUSABLE)
}

fn selected(only: Option<&str>) -> Vec<Case> {
    let mut cases = async_cases::all();
    cases.retain(|case| match only {
        None => true,
        Some("open") => !case.heldout,
        Some("heldout") => case.heldout,
        Some(id) => case.id == id,
    });
    cases
}

// In the case's own process.

/// Runs the case, and says what holdup told and where the case did not do as its label says.
fn report(case: Case) -> Value {
    let told: Arc<Mutex<BTreeMap<FindingId, Told>>> = Arc::default();
    let listener = Arc::clone(&told);
    holdup::on_finding(move |finding| {
        let mut told = listener.lock().unwrap_or_else(PoisonError::into_inner);
        let withdrawn = finding.verdict == Verdict::Resolved;
        // The same trouble is counted once, however often it comes and goes.
        told.entry(finding.id).or_insert_with(|| as_told(&case, finding)).withdrawn = withdrawn;
    });
    let lock = || told.lock().unwrap_or_else(PoisonError::into_inner);
    let enough = || {
        let told: Vec<Told> = lock().values().cloned().collect();
        judge(&case, &told).is_right() && case.is_buggy()
    };
    // What has returned with a mistake is watched until the mistake is told, as what hangs is.
    let linger = if case.is_buggy() { WATCH.hangs_at_most } else { WATCH.linger };
    let ran = run(case, &Watch { linger, ..WATCH }, &enough);
    let told = lock();
    let findings: Vec<Value> = told.values().map(to_json).collect();
    json!({ "id": case.id, "findings": findings, "not_as_labelled": ran.wrong })
}

fn as_told(case: &Case, finding: &Finding) -> Told {
    let mut sites = Vec::new();
    for mark in &finding.marks {
        // The compiler saw the file from another folder than the labels do.
        let file = &*mark.site.file;
        let file = if file.ends_with(case.file) { case.file } else { file };
        let site = format!("{file}:{}", mark.site.line);
        if !sites.contains(&site) {
            sites.push(site);
        }
    }
    Told {
        code: finding.code.as_str().to_owned(),
        verdict: finding.verdict.as_str().to_owned(),
        sites,
        withdrawn: false,
    }
}

fn to_json(told: &Told) -> Value {
    let mut finding = json!({ "code": told.code, "verdict": told.verdict, "sites": told.sites });
    if told.withdrawn {
        finding["withdrawn"] = true.into();
    }
    finding
}

// In the judge's.

/// One run of one case.
struct Run {
    case: Case,
    told: Vec<Told>,
    judgement: Judgement,
    not_as_labelled: Vec<String>,
    /// Why nothing is known of it.
    failure: Option<String>,
}

impl Run {
    fn json(&self) -> Value {
        let mut run = json!({
            "id": self.case.id,
            "findings": self.told.iter().map(to_json).collect::<Vec<_>>(),
        });
        if !self.not_as_labelled.is_empty() {
            run["not_as_labelled"] = json!(self.not_as_labelled);
        }
        if let Some(failure) = &self.failure {
            run["failure"] = failure.as_str().into();
        }
        run
    }
}

/// All cases, as often as asked, by case.
fn run_all(cases: &[Case], repeat: usize, jobs: usize) -> Vec<Run> {
    let next = AtomicUsize::new(0);
    let runs = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                // Round by round: a busy spell of the machine does not hit all runs of one case.
                let Some(case) = cases.get(at % cases.len()).filter(|_| at / cases.len() < repeat)
                else {
                    return;
                };
                let run = run_one(*case);
                let place = (at % cases.len(), at / cases.len());
                runs.lock().unwrap_or_else(PoisonError::into_inner).insert(place, run);
            });
        }
    });
    runs.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

fn run_one(case: Case) -> Run {
    let (told, not_as_labelled, failure) = match in_own_process(case.id) {
        Ok((told, not_as_labelled)) => (told, not_as_labelled, None),
        Err(failure) => (Vec::new(), Vec::new(), Some(failure)),
    };
    let judgement = judge(&case, &told);
    Run { case, told, judgement, not_as_labelled, failure }
}

fn in_own_process(id: &str) -> Result<(Vec<Told>, Vec<String>), String> {
    let program = std::env::current_exe().map_err(|error| format!("no program: {error}"))?;
    let mut command = Command::new(program);
    command.args(["run", id]).stdin(Stdio::null()).stderr(Stdio::null());
    // With the settings that holdup has by itself, but for the limits.
    for variable in ["HOLDUP", "HOLDUP_CAPTURE", "HOLDUP_SERVE", "HOLDUP_STDERR"] {
        command.env_remove(variable);
    }
    command.env("HOLDUP_LIMITS", LIMITS);
    let output = command.output().map_err(|error| format!("not started: {error}"))?;
    if !output.status.success() {
        return Err(output.status.to_string());
    }
    from_json(&output.stdout)
        .ok_or_else(|| format!("not a report: {}", String::from_utf8_lossy(&output.stdout).trim()))
}

fn from_json(report: &[u8]) -> Option<(Vec<Told>, Vec<String>)> {
    let report: Value = serde_json::from_slice(report).ok()?;
    let texts = |value: &Value| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|text| Some(text.as_str()?.to_owned())).collect()
    };
    let told = report["findings"].as_array()?.iter().map(|finding| {
        Some(Told {
            code: finding["code"].as_str()?.to_owned(),
            verdict: finding["verdict"].as_str()?.to_owned(),
            sites: texts(&finding["sites"])?,
            withdrawn: finding["withdrawn"] == true,
        })
    });
    Some((told.collect::<Option<_>>()?, texts(&report["not_as_labelled"])?))
}

fn exit_code(runs: &[Run]) -> u8 {
    let any = |what: &dyn Fn(&Run) -> bool| runs.iter().any(what);
    if any(&|run| run.failure.is_some()) {
        UNJUDGED
    } else if any(&|run| !run.judgement.false_alarms.is_empty()) {
        FALSE_ALARM
    } else if any(&|run| run.case.is_buggy() && !run.judgement.is_right()) {
        MISSED
    } else {
        RIGHT
    }
}

/// What counts for one class. A case counts as found if it was found in each of its runs.
#[derive(Default)]
struct Row {
    cases: usize,
    found: usize,
    right: usize,
    false_alarms: usize,
}

fn table(runs: &[Run]) -> String {
    let mut rows: BTreeMap<Class, Row> = BTreeMap::new();
    let mut all = Row::default();
    let mut details = String::new();
    for of_case in runs.chunk_by(|a, b| a.case.id == b.case.id) {
        let case = of_case[0].case;
        let times = |what: &dyn Fn(&Run) -> bool| of_case.iter().filter(|run| what(run)).count();
        let found = times(&|run| run.judgement.found);
        let right = times(&|run| run.judgement.is_right());
        let false_alarms =
            of_case.iter().map(|run| run.judgement.false_alarms.len()).sum::<usize>();
        for row in [rows.entry(case.class).or_default(), &mut all] {
            row.cases += 1;
            row.found += usize::from(found == of_case.len());
            row.right += usize::from(right == of_case.len());
            row.false_alarms += false_alarms;
        }
        detail(of_case, &mut details);
    }
    let mut text = String::new();
    line(&mut text, ["class", "cases", "found", "right lines", "false alarms"]);
    for (class, row) in &rows {
        row_of(&mut text, &format!("{class:?}"), row, *class != Class::Benign);
    }
    row_of(&mut text, "all", &all, true);
    if !details.is_empty() {
        let _ = write!(text, "\n{details}");
    }
    text
}

fn row_of(text: &mut String, name: &str, row: &Row, buggy: bool) {
    let number = |n: usize| if buggy { n.to_string() } else { "-".to_owned() };
    let [cases, found, right] = [row.cases.to_string(), number(row.found), number(row.right)];
    line(text, [name, &cases, &found, &right, &row.false_alarms.to_string()]);
}

fn line(text: &mut String, [class, cases, found, right, alarms]: [&str; 5]) {
    let _ = writeln!(text, "{class:<16} {cases:>5}  {found:>5}  {right:>11}  {alarms:>12}");
}

/// What is not as it should be about one case, the same only once, with the number of its runs.
fn detail(of_case: &[Run], text: &mut String) {
    let case = of_case[0].case;
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    let mut say = |what: String| *said.entry(what).or_default() += 1;
    for run in of_case {
        if let Some(failure) = &run.failure {
            say(format!("could not be judged: {failure}"));
        } else if case.is_buggy() && !run.judgement.found {
            say(format!("not found: {}", case.expect));
        } else if !run.judgement.missing.is_empty() {
            say(format!("not named: {}", run.judgement.missing.join(", ")));
        }
        for at in &run.judgement.false_alarms {
            let Told { code, verdict, sites, withdrawn } = &run.told[*at];
            let back = if *withdrawn { ", withdrawn" } else { "" };
            say(format!("false alarm: {code} [{verdict}{back}] at {}", sites.join(", ")));
        }
        for wrong in &run.not_as_labelled {
            say(format!("not as labelled: {wrong}"));
        }
    }
    for (what, times) in said {
        let runs = of_case.len();
        let times = if runs == 1 { String::new() } else { format!(" ({times} of {runs} runs)") };
        let _ = writeln!(text, "{}: {what}{times}", case.id);
    }
}
