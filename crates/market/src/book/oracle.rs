//! The book against a list that is looked at whole each time.

use proptest::prelude::*;
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

#[derive(Debug, Clone)]
enum Step {
    Arrive(u8),
    Leave(u8),
    Offer(u8, u32, i64, i64),
    Claim(u32, u32, Vec<u8>),
    Release(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6_u8).prop_map(Step::Arrive),
        (0..6_u8).prop_map(Step::Leave),
        (0..6_u8, 0..4_u32, 0..9_i64, 0..9_i64).prop_map(|(n, s, i, o)| Step::Offer(n, s, i, o)),
        (0..600_u32, 1..600_u32, proptest::collection::vec(0..6_u8, 0..3))
            .prop_map(|(p, l, e)| Step::Claim(p, l, e)),
        (0..8_usize).prop_map(Step::Release),
    ]
}

proptest! {
    /// The oracle keeps a flat list and looks at all of it each time.
    #[test]
    fn the_book_agrees_with_a_list(steps in proptest::collection::vec(step(), 1..120)) {
        let mut book = Book::default();
        let mut chance = StdRng::seed_from_u64(5);
        // Per node: session, offer, slots taken in this session.
        let mut list: BTreeMap<u8, (Session, Option<Offer>, u32)> = BTreeMap::new();
        let mut held: Vec<Claim> = Vec::new();
        for step in steps {
            match step {
                Step::Arrive(n) => {
                    list.insert(n, (book.arrive(node(n)), None, 0));
                }
                Step::Leave(n) => {
                    if let Some((session, ..)) = list.remove(&n) {
                        book.leave(&node(n), session);
                    }
                }
                Step::Offer(n, slots, input, output) => {
                    if let Some(entry) = list.get_mut(&n) {
                        entry.1 = Some(offer(slots, input, output));
                        book.offer(&node(n), entry.0, &[offer(slots, input, output)]);
                    }
                }
                Step::Claim(prompt_tokens, limit, out) => {
                    let excluded = out.iter().map(|&n| node(n)).collect();
                    let request = Request { model: MODEL, prompt_tokens, limit, ceiling: prices(7, 7), budget: None, excluded: &excluded };
                    let cost = |o: &Offer| i128::from(o.prices.input.0) * i128::from(prompt_tokens)
                        + i128::from(o.prices.output.0) * i128::from(limit);
                    let able: Vec<_> = list.iter()
                        .filter(|(n, _)| !out.contains(n) && prompt_tokens + limit <= 1000)
                        .filter_map(|(n, (_, o, taken))| o.map(|o| (*n, o, *taken)))
                        .filter(|(_, o, _)| o.prices.input <= Price(7) && o.prices.output <= Price(7))
                        .collect();
                    let least = able.iter().filter(|(_, o, t)| *t < o.slots).map(|(_, o, _)| cost(o)).min();
                    match (book.claim(&request, NOW, &mut chance), least) {
                        (Ok(found), Some(least)) => {
                            let n = found.claim.node.0[0];
                            let entry = list.get_mut(&n).unwrap();
                            prop_assert_eq!(cost(&entry.1.unwrap()), least);
                            prop_assert!(entry.2 < entry.1.unwrap().slots);
                            entry.2 += 1;
                            held.push(found.claim);
                        }
                        (Err(NoMatch::Busy), None) => prop_assert!(!able.is_empty()),
                        (Err(NoMatch::NoNode), None) => prop_assert!(able.is_empty()),
                        (got, want) => prop_assert!(false, "{got:?}, the list says {want:?}"),
                    }
                }
                Step::Release(at) => {
                    if at < held.len() {
                        let claim = held.swap_remove(at);
                        if let Some(entry) = list.get_mut(&claim.node.0[0])
                            && entry.0 == claim.session
                        {
                            entry.2 -= 1;
                        }
                        book.release(claim);
                    }
                }
            }
        }
        for claim in held {
            book.release(claim);
        }
        let standing = book.standing(&MODEL);
        prop_assert_eq!(standing.free, standing.slots);
    }
}
