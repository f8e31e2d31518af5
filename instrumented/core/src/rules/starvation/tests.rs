//! Who is passed over, and who is only late.

use crate::scenario::check;

fn queue(session: &str, rest: &str) -> String {
    format!(
        "
        semaphore quota 4
        task 1
          hold quota {session}: session@10
        task 2
          wait quota x4: bulk@20
        task 3
          wait quota: small@30
        {rest}
        "
    )
}

#[test]
fn a_large_request_that_cannot_be_met_holds_up_small_ones() {
    check(&queue(
        "",
        "
        after 6s
        find starvation: task 2, task 3; quota
        says `app::bulk` waits for 4 permits of `quota`, and 3 free ones are kept from the smaller requests behind it [hazard]
        says task 1 took 1 of the 4 permits of `quota` here, 6.40 s ago
        says task 2 has been waiting here for 4 permits for 6.30 s
        says task 3 has been waiting here behind it for 1 permit for 6.20 s
        says permits go out in the order of the queue
        says help: ask for fewer at once
        ",
    ));
    // It is the story of the holder, too, which is not told a second time.
    check(&queue("", "after 90s\n find starvation: task 2, task 3; quota"));
}

#[test]
fn a_large_request_that_takes_its_time() {
    // Not for long; the holder comes back in its time; something moves.
    check(&queue("", "after 4s\n find nothing"));
    check(&queue("back 3 usual 4s", "after 6s\n find nothing"));
    check(&queue("back 3 usual 1s", "after 6s\n find starvation: task 2, task 3; quota"));
    check(&queue("", "after 6s\n find nothing").replace("quota 4", "quota 4 moving"));
    // Not one that might be served from outside.
    check(&queue("", "after 6s\n find nothing").replace("quota 4", "quota 3 added 1"));
    for waits in [
        // Nobody behind it; nobody whom less would do; all are in use.
        "hold quota: session@10\n task 2\n wait quota x4: drain@20",
        "hold quota: session@10\n task 2\n wait quota x4: drain@20\n task 3\n wait quota x4: drain@20",
        "hold quota x4: session@10\n task 2\n wait quota x2: f@20\n task 3\n wait quota: g@20",
        // What it lacks is about to be picked up by itself.
        "hold quota: session@10\n task 2\n wait quota x3: f@20\n task 3\n wait quota x2: g@20",
    ] {
        check(&format!("semaphore quota 4\n task 1\n {waits}\n after 6s\n find nothing"));
    }
    // A writer waits for readers, and readers wait for the writer: that is how such a lock works.
    check(
        "
        rwlock config
        task 1
          hold config: read@10
        task 2
          wait config x536870911: write@20
        task 3
          wait config: read@10
        after 6s
        find nothing
        ",
    );
}

#[test]
fn who_gives_up_for_ever_is_never_served() {
    let streak = |settings: &str| {
        format!(
            "
            semaphore gate 1
            after 60s
            task 3
              gave_up gate {settings}: client@30
            task 1
              hold gate: worker@10
            "
        )
    };
    check(&format!(
        "{}
        find starvation: task 3; gate
        says `app::client` gives up waiting for `gate` again and again, and is never served [hazard]
        says task 3 gave up here 1000 times in 11 s, and was never served
        says task 1 took the only permit of `gate` here, 200 ms ago
        says others took 180 permits in that time; it gave up about every 11 ms and lost its place in the queue
        says help: keep the place in the queue
        ",
        streak("times 1000 for 11s others 180")
    ));
    for healthy in [
        // Few; not for long; nobody was served; it has stopped.
        "times 15 for 20s others 90",
        "times 400 for 9s others 90",
        "times 400 for 20s others 15",
    ] {
        check(&format!("{} find nothing", streak(healthy)));
    }
    check(&format!("{} after 6s\n find nothing", streak("times 400 for 20s others 90")));
    let closed = streak("times 400 for 20s others 90").replace("gate 1", "gate 1 closed");
    check(&format!("{closed} find nothing"));
}
