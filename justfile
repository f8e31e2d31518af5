# `just` shows the recipes. Each is one command that can also be typed without `just`.

_default:
    @just --list --unsorted

# Everything that must hold before a change is taken.
check:
    .ci/run

# All tests, as the README says.
test *ARGS:
    cargo test --workspace {{ ARGS }}

# tokio's own tests of its semaphore, its locks and its channel, with only the import changed.
tokio-tests:
    cargo run --quiet --bin tokio-tests

# A server that others wrote, mini-redis, under holdup.
real:
    cargo run --quiet --bin real

# The labelled cases under holdup: what is found, and what is falsely accused.
judge *ARGS:
    cargo run --bin judge -- {{ ARGS }}

# The relation of paths on stacks as they come out of builds with more and with less debug information.
stacks:
    cargo test -p holdup-core --test real_stacks
    CARGO_PROFILE_DEV_DEBUG=line-tables-only cargo test -p holdup-core --test real_stacks
    CARGO_PROFILE_RELEASE_DEBUG=line-tables-only cargo test --release -p holdup-core --test real_stacks
    CARGO_PROFILE_RELEASE_DEBUG=none cargo test --release -p holdup-core --test real_stacks

# Random programs: the healthy ones are not accused, and each that has a fault is told of it.
random RUNS="1000" SEED="1":
    HOLDUP_RANDOM_RUNS={{ RUNS }} HOLDUP_RANDOM_SEED={{ SEED }} cargo test -p holdup-tests --test random -- --nocapture

# An example under the terminal app: `just demo`, `just demo spawn_loop`.
demo *ARGS:
    cargo demo {{ ARGS }}

# What watching costs the program that is watched, how soon it tells, and how long a picture takes.
bench:
    cargo bench -p holdup-tests --features always-on
    cargo bench -p holdup-tui

# The oldest Rust that we promise. Needs `rustup toolchain install 1.88`.
msrv:
    CARGO_TARGET_DIR=target/msrv cargo +1.88 check --workspace --all-targets --locked
