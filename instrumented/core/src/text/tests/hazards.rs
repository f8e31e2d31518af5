//! The texts of what went well, and could have gone wrong.

use super::{Style, file, report_of};
use insta::assert_snapshot;
use std::sync::Arc;

fn sources(name: &str) -> Option<Arc<str>> {
    let text = match name {
        "src/rpc.rs" => {
            "
async fn sub_query(limit: &Semaphore) -> Result<Rows> {
    let _slot = limit.acquire().await?;
    fetch().await
}

async fn request(limit: Arc<Semaphore>) -> Result<()> {
    let _slot = limit.acquire().await?;
    render(sub_query(&limit).await?).await
}
"
        }
        "src/chain.rs" => {
            "
async fn template(chain: &RwLock<Chain>) -> Block {
    let chain_now = chain.read().await;
    Block { parent: chain_now.tip(), root: root(chain).await }
}
async fn root(chain: &RwLock<Chain>) -> Hash {
    chain.read().await.root()
}
async fn add(chain: &RwLock<Chain>, block: Block) {
    chain.write().await.push(block);
}
"
        }
        "src/node.rs" => {
            "
async fn status(node: &Node) {
    let workers = node.workers.read().await;
    let query = node.queries.acquire().await?;
    page(workers, query).await
}
async fn reload(node: &Node) {
    let query = node.queries.acquire().await?;
    node.workers.write().await.reload(query);
}
"
        }
        "src/ledger.rs" => {
            "
    let mut from = own.lock().await;
    let mut to = neighbour.lock().await;
"
        }
        _ => return None,
    };
    Some(file(10, text))
}

fn report(scenario: &str) -> String {
    report_of(scenario, |_| {}, &sources, &Style::default())
}

#[test]
fn a_nested_acquire() {
    let task = |n: u32| {
        format!(
            "task {n}
               outer limit: rpc::request@src/rpc.rs:16:23
               inner limit: rpc::request@src/rpc.rs:17:12 > rpc::sub_query@src/rpc.rs:11:23\n"
        )
    };
    assert_snapshot!(report(&format!("semaphore limit 3\n{}{}{}", task(4), task(5), task(6))));
}

#[test]
fn a_nested_read() {
    let reader = |n: u32| {
        format!(
            "task {n}
               outer chain: chain::template@src/chain.rs:11:27
               inner chain: chain::template@src/chain.rs:12:44 > chain::root@src/chain.rs:15:11\n"
        )
    };
    assert_snapshot!(report(&format!(
        "rwlock chain
         {}
         task 7
           asked chain x536870911: chain::add@src/chain.rs:18:11
         {}",
        reader(4),
        reader(5)
    )));
}

#[test]
fn opposite_orders() {
    assert_snapshot!(report(
        "rwlock workers
         semaphore queries 1
         task 4
           outer workers: node::status@src/node.rs:11:32
           inner queries times 2: node::status@src/node.rs:12:30
         task 5
           outer queries: node::reload@src/node.rs:16:30
           inner workers x536870911: node::reload@src/node.rs:17:18"
    ));
}

#[test]
fn a_ring_of_orders_on_two_lines() {
    assert_snapshot!(report(
        "mutex rent
         mutex food
         mutex fun
         task 4
           outer rent: ledger::transfer@src/ledger.rs:10:24
           inner food: ledger::transfer@src/ledger.rs:11:28
         task 5
           outer food: ledger::transfer@src/ledger.rs:10:24
           inner fun: ledger::transfer@src/ledger.rs:11:28
         task 6
           outer fun: ledger::transfer@src/ledger.rs:10:24
           inner rent: ledger::transfer@src/ledger.rs:11:28"
    ));
}
