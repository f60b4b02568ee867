//! The book on small markets.

use rand::SeedableRng;
use rand::rngs::StdRng;
use wakati_protocol::money::Price;

use super::*;

const MODEL: ModelDigest = ModelDigest([1; 32]);
const NOW: UnixMillis = UnixMillis(0);

fn prices(input: i64, output: i64) -> Prices {
    Prices { input: Price(input), output: Price(output) }
}

fn node(n: u8) -> NodeId {
    NodeId([n; 32])
}

fn offer(slots: u32, input: i64, output: i64) -> Offer {
    Offer { model: MODEL, context: 1000, slots, prices: prices(input, output) }
}

fn request(excluded: &BTreeSet<NodeId>) -> Request<'_> {
    Request { model: MODEL, prompt_tokens: 100, limit: 50, ceiling: prices(100, 100), budget: None, excluded }
}

#[test]
fn the_cheapest_for_this_very_job_wins() {
    let mut book = Book::default();
    let mut chance = StdRng::seed_from_u64(1);
    // For 100 in and 50 out: 100 x 1 + 50 x 9 = 550 against 100 x 4 + 50 x 2 = 500.
    for (n, input, output) in [(1, 1, 9), (2, 4, 2)] {
        let session = book.arrive(node(n));
        book.offer(&node(n), session, &[offer(1, input, output)]);
    }
    let nobody = BTreeSet::new();
    assert_eq!(book.claim(&request(&nobody), NOW, &mut chance).unwrap().claim.node, node(2));
    assert_eq!(book.claim(&request(&nobody), NOW, &mut chance).unwrap().claim.node, node(1));
    assert_eq!(book.claim(&request(&nobody), NOW, &mut chance), Err(NoMatch::Busy));
    let all = BTreeSet::from([node(1), node(2)]);
    assert_eq!(book.claim(&request(&all), NOW, &mut chance), Err(NoMatch::NoNode));
}

#[test]
fn equal_asks_share_the_work() {
    let mut wins = [0_u32; 3];
    let mut chance = StdRng::seed_from_u64(2);
    for _ in 0..3000 {
        let mut book = Book::default();
        for n in 0..3 {
            let session = book.arrive(node(n));
            book.offer(&node(n), session, &[offer(1, 5, 5)]);
        }
        let found = book.claim(&request(&BTreeSet::new()), NOW, &mut chance).unwrap();
        wins[usize::from(found.claim.node.0[0])] += 1;
    }
    assert!(wins.iter().all(|&n| (850..1150).contains(&n)), "{wins:?}");
}

#[test]
fn a_claim_on_an_old_session_frees_nothing_in_the_new_one() {
    let mut book = Book::default();
    let mut chance = StdRng::seed_from_u64(3);
    let nobody = BTreeSet::new();
    let old = book.arrive(node(1));
    book.offer(&node(1), old, &[offer(1, 1, 1)]);
    let before = book.claim(&request(&nobody), NOW, &mut chance).unwrap();
    let new = book.arrive(node(1));
    book.offer(&node(1), new, &[offer(1, 1, 1)]);
    let after = book.claim(&request(&nobody), NOW, &mut chance).unwrap();
    book.release(before.claim);
    assert_eq!(book.standing(&MODEL).free, 0);
    book.leave(&node(1), old);
    assert_eq!(book.standing(&MODEL).nodes, 1);
    book.release(after.claim);
    assert_eq!(book.standing(&MODEL).free, 1);
}

#[test]
fn a_price_above_the_ceiling_and_a_small_context_are_passed_over() {
    let mut book = Book::default();
    let mut chance = StdRng::seed_from_u64(4);
    let session = book.arrive(node(1));
    book.offer(&node(1), session, &[offer(1, 5, 5)]);
    let nobody = BTreeSet::new();
    let dear = Request { ceiling: prices(5, 4), ..request(&nobody) };
    assert_eq!(book.claim(&dear, NOW, &mut chance), Err(NoMatch::NoNode));
    let long = Request { limit: 901, ..request(&nobody) };
    assert_eq!(book.claim(&long, NOW, &mut chance), Err(NoMatch::NoNode));
}

#[test]
fn a_busy_cheap_node_is_waited_for_while_a_free_one_asks_more_than_the_ceiling() {
    let mut book = Book::default();
    let mut chance = StdRng::seed_from_u64(5);
    for (n, slots, price) in [(1, 0, 5), (2, 9, 1_000_000)] {
        let session = book.arrive(node(n));
        book.offer(&node(n), session, &[offer(slots, price, price)]);
    }
    assert_eq!(book.claim(&request(&BTreeSet::new()), NOW, &mut chance), Err(NoMatch::Busy));
}

#[test]
fn a_node_that_would_cost_more_than_the_budget_is_passed_over() {
    let mut book = Book::default();
    let mut chance = StdRng::seed_from_u64(6);
    let session = book.arrive(node(1));
    // 70% of 100 x $20/M and 50 x $10/M: 1_407_000 nano-USD after one token, 1_750_000 after all.
    book.offer(&node(1), session, &[offer(9, 20_000_000_000, 10_000_000_000)]);
    let nobody = BTreeSet::new();
    let dear = Request { ceiling: prices(i64::MAX, i64::MAX), ..request(&nobody) };
    for (first_token, whole, found) in
        [(1_407_000, 1_750_000, true), (1_406_999, 1_750_000, false), (1_407_000, 1_749_999, false)]
    {
        let budget = Some(Budget { first_token: NanoUsd(first_token), whole: NanoUsd(whole) });
        let claim = book.claim(&Request { budget, ..dear }, NOW, &mut chance);
        assert_eq!(claim.is_ok(), found, "{budget:?}: {claim:?}");
    }
}

/// How long an answer may be, of so many tokens asked after a prompt of 100, on nodes of these contexts.
fn longest(contexts: &[u32], limit: u32) -> u32 {
    let mut book = Book::default();
    for (n, context) in contexts.iter().enumerate() {
        let id = node(n as u8);
        let session = book.arrive(id);
        book.offer(&id, session, &[Offer { context: *context, ..offer(1, 5, 5) }]);
    }
    book.longest_answer(&Request { limit, ..request(&BTreeSet::new()) }, NOW)
}

#[test]
fn an_answer_is_as_long_as_most_useful_nodes_allow() {
    for (contexts, limit, allowed) in [
        (&[2048][..], 1000, 1000),
        (&[2048], 4000, 1948),
        // One node that declares a huge context gets nothing to itself.
        (&[2048, 1 << 24], 4000, 1948),
        (&[2048, 2048, 1 << 24], 4000, 1948),
        // One that declares a tiny context cuts nobody's answer.
        (&[2048, 2048, 110], 4000, 1948),
        (&[2048, 110], 4000, 1948),
        // A short answer is useful where it fits.
        (&[2048, 110], 10, 10),
        // Where nobody can give a useful answer, any is better than none.
        (&[110, 90], 4000, 10),
        (&[100], 4000, 0),
        (&[], 4000, 0),
    ] {
        assert_eq!(longest(contexts, limit), allowed, "{limit} on {contexts:?}");
    }
}

#[test]
fn a_node_that_keeps_going_wrong_is_left_out_even_when_it_comes_back() {
    let mut book = Book::default();
    let mut chance = StdRng::seed_from_u64(7);
    let session = book.arrive(node(1));
    book.offer(&node(1), session, &[offer(9, 1, 1)]);
    let nobody = BTreeSet::new();
    let mut asked = |book: &mut Book, second: i64| {
        book.claim(&request(&nobody), UnixMillis(second * 1000), &mut chance).is_ok()
    };
    book.report(node(1), Conduct::WentWrong, NOW);
    book.report(node(1), Conduct::WentWrong, NOW);
    book.report(node(1), Conduct::Served, NOW);
    book.report(node(1), Conduct::WentWrong, NOW);
    book.report(node(1), Conduct::WentWrong, NOW);
    assert!(asked(&mut book, 0));
    book.report(node(1), Conduct::WentWrong, NOW);
    let session = book.arrive(node(1));
    book.offer(&node(1), session, &[offer(9, 1, 1)]);
    assert!(!asked(&mut book, 0));
    assert!(!asked(&mut book, 59));
    assert!(asked(&mut book, 60));
}
