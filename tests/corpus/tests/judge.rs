//! The corpus under holdup: every mistake of the open half is told with its lines, and nothing is that is not so.

use async_cases::judging::{judge, Told};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

#[test]
fn every_mistake_is_told_with_its_lines_and_nothing_else_is() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_judge"));
    // The cases sleep for most of their time.
    let output = command.args(["--json", "--jobs", "6"]).stdin(Stdio::null()).output();
    let output = output.expect("the judge starts");
    if !holdup::INSTRUMENTED {
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        return;
    }
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let runs: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    let cases = async_cases::all();
    assert_eq!(runs.len(), cases.len(), "{text}{}", String::from_utf8_lossy(&output.stderr));

    let mut right = BTreeSet::new();
    let mut false_alarms = Vec::new();
    for (case, run) in cases.iter().zip(&runs) {
        assert_eq!(run["id"], case.id);
        assert_eq!(run["failure"], Value::Null, "{run}");
        let told: Vec<Told> =
            run["findings"].as_array().expect("a list").iter().map(told).collect();
        let judgement = judge(case, &told);
        if judgement.is_right() {
            right.insert(case.id);
        }
        false_alarms.extend(judgement.false_alarms.iter().map(|at| (case.id, told[*at].clone())));
    }
    assert!(false_alarms.is_empty(), "false alarms: {false_alarms:#?}");
    let buggy = cases.iter().filter(|case| case.is_buggy() && !case.heldout);
    let missed: Vec<_> =
        buggy.filter(|case| !right.contains(case.id)).map(|case| case.id).collect();
    assert!(missed.is_empty(), "not found: {missed:?}\n{text}");
}

fn told(finding: &Value) -> Told {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    Told {
        code: text(&finding["code"]),
        verdict: text(&finding["verdict"]),
        sites: finding["sites"].as_array().expect("a list").iter().map(text).collect(),
        withdrawn: finding["withdrawn"] == true,
    }
}
