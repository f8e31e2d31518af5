//! Permits that limit nothing, and permits that are dropped on purpose.

use crate::discard;
use crate::scenario::{Scenario, check};
use crate::snapshot::{Learned, Site};

const LIMIT: &str = "
    semaphore limit 4
    task 1
      dropped limit times 64: handle@10
    task 2
      hold limit: other@20
";

#[test]
fn a_permit_that_is_dropped_by_its_statement() {
    check(&format!(
        "{LIMIT}
        find zero-hold: ; limit
        says `app::handle` drops its permit of `limit` at once [hazard]
        says 64 permits were taken here, and each was dropped by the same statement
        says one that was taken here is held, for 200 ms by now
        says 64 of them were held for less than 200 µs: what follows is not limited
        says help: give it a name, `let _permit = …`
        ",
    ));
}

#[test]
fn gates_and_what_is_little_known() {
    for (known, instead) in [
        // Few; a gate of one permit; one that is closed by taking all; a signal; by declaration.
        ("times 64", "times 15"),
        ("limit 4", "limit 1"),
        ("hold limit", "hold limit x4"),
        ("limit 4", "limit 0 added 4"),
        ("limit 4", "limit 4 grows"),
        ("limit 4", "limit 4 closed"),
        // Nobody else uses it.
        ("hold limit: other@20", "hold limit: handle@10"),
        ("hold limit", "wait limit"),
    ] {
        check(&format!("{} find nothing", LIMIT.replace(known, instead)));
    }
}

#[test]
fn the_source_is_read_where_it_matters() {
    let mut scenario = Scenario::read(LIMIT).expect("well-formed");
    let source = |text: &str| {
        let text = format!("{}{text}", "\n".repeat(9));
        move |site: &Site| site.line == 10 && discard::is_discarded(&text, site)
    };
    let mut found = |text: &str, change: fn(&mut Learned)| {
        let mut snapshot = scenario.current.clone();
        let at = snapshot.learned.iter().position(|l| l.discarded).expect("one");
        snapshot.learned[at].discarded = false;
        change(&mut snapshot.learned[at]);
        discard::note(&mut snapshot, source(text));
        std::mem::swap(&mut scenario.current, &mut snapshot);
        let found = scenario.diagnose().len();
        std::mem::swap(&mut scenario.current, &mut snapshot);
        found
    };
    // The column is 9.
    assert_eq!(found("let _ = acquire().await;", |_| {}), 0);
    assert_eq!(found("    sem.acquire().await?;", |_| {}), 1);
    assert_eq!(found("_a = s..acquire().await?;", |_| {}), 0);
    assert_eq!(found("    sem.acquire().await?;", |l| l.brief -= 4), 1);
    assert_eq!(found("    sem.acquire().await?;", |l| l.brief -= 5), 0);
    assert_eq!(found("    sem.acquire().await?;", |l| l.elsewhere = 1), 0);
    assert_eq!(found("    sem.acquire().await?;", |l| l.acquired += 1), 0);
}
