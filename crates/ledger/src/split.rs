//! Who gets what of a job. Pure arithmetic on whole nano-USD.

use wakati_protocol::ids::Position;
use wakati_protocol::money::{NanoUsd, Prices, Share};

/// One attempt, as far as money goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// What this node asked.
    pub prices: Prices,
    pub first_position: Position,
    /// Tokens that the node had to read.
    pub input_tokens: u32,
    /// Positions that it served and the consumer has.
    pub positions: u32,
}

/// A job's money: `charge + absorption = sum(pays) + fee`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    pub charge: NanoUsd,
    /// One for each attempt, in their order.
    pub pays: Vec<NanoUsd>,
    pub fee: NanoUsd,
    pub absorption: NanoUsd,
}

/// Splits a job's money.
///
/// - The consumer is charged the prompt once and each delivered position once, at the locked prices, rounded down once.
/// - An attempt is paid the owner's share of what it read and served at its own prices, rounded down once,
///   and nothing when it served no position.
/// - What owners get beyond their share at the locked prices (refills, dearer nodes) is the platform's to absorb.
/// - An answer that is complete with no token at all (`empty_answer`) is charged and paid for its prompt.
#[must_use]
pub fn split(locked: Prices, prompt_tokens: u32, tried: &[Tried], empty_answer: bool) -> Split {
    let delivered: u64 = tried.iter().map(|t| u64::from(t.positions)).sum();
    let earned = |t: &Tried| t.positions > 0 || empty_answer;
    let charge =
        if tried.iter().any(earned) { locked.cost(prompt_tokens.into(), delivered) } else { NanoUsd::ZERO };
    let pays: Vec<NanoUsd> = tried
        .iter()
        .map(|t| match earned(t) {
            true => t.prices.share(t.input_tokens.into(), t.positions.into(), Share::OWNER),
            false => NanoUsd::ZERO,
        })
        .collect();
    let at_locked = owners_share(locked, prompt_tokens, tried.iter().filter(|t| earned(t)));
    let paid: NanoUsd = pays.iter().copied().sum();
    let absorption = NanoUsd((paid - at_locked).0.max(0));
    Split { charge, fee: charge + absorption - paid, absorption, pays }
}

/// What the owner of one more attempt may get, if it delivers so many positions and the platform absorbs no more
/// than `cap` in the whole job. Below zero when too much is absorbed already.
#[must_use]
pub fn room(locked: Prices, prompt_tokens: u32, tried: &[Tried], positions: u32, cap: NanoUsd) -> NanoUsd {
    let paid: NanoUsd = split(locked, prompt_tokens, tried, false).pays.into_iter().sum();
    let next = Tried { prices: locked, first_position: 0, input_tokens: 0, positions };
    let served = tried.iter().filter(|t| t.positions > 0).chain([&next]);
    cap + owners_share(locked, prompt_tokens, served) - paid
}

/// What owners get of the charge: their share at the locked prices, rounded down once for each attempt.
fn owners_share<'a>(locked: Prices, prompt_tokens: u32, earned: impl Iterator<Item = &'a Tried>) -> NanoUsd {
    // The prompt is in the first share that is paid; later attempts read it again as a refill.
    let mut prompt = u64::from(prompt_tokens);
    earned.map(|t| locked.share(std::mem::take(&mut prompt), t.positions.into(), Share::OWNER)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wakati_protocol::money::Price;

    use super::*;

    fn prices(input: i64, output: i64) -> Prices {
        Prices { input: Price(input), output: Price(output) }
    }

    fn tried(prices: Prices, first_position: u32, input_tokens: u32, positions: u32) -> Tried {
        Tried { prices, first_position, input_tokens, positions }
    }

    #[test]
    fn one_node_gets_seventy_percent() {
        // 40 x $0.05/M = 2000 and 100 x $0.10/M = 10000 nano-USD: 12000, of which 8400 are the owner's.
        let locked = prices(50_000_000, 100_000_000);
        let split = split(locked, 40, &[tried(locked, 0, 40, 100)], false);
        assert_eq!(split.charge, NanoUsd(12_000));
        assert_eq!(split.pays, [NanoUsd(8_400)]);
        assert_eq!((split.fee, split.absorption), (NanoUsd(3_600), NanoUsd(0)));
    }

    #[test]
    fn a_refill_is_absorbed() {
        // The second node reads 40 + 60 tokens (5000, share 3500) and serves 40 (4000, share 2800).
        let locked = prices(50_000_000, 100_000_000);
        let split = split(locked, 40, &[tried(locked, 0, 40, 60), tried(locked, 60, 100, 40)], false);
        assert_eq!(split.charge, NanoUsd(12_000));
        assert_eq!(split.pays, [NanoUsd(5_600), NanoUsd(6_300)]);
        assert_eq!(split.absorption, NanoUsd(3_500));
        assert_eq!(split.fee, NanoUsd(3_600));
    }

    #[test]
    fn nothing_delivered_is_nothing_charged_unless_the_answer_is_empty() {
        let locked = prices(50_000_000, 100_000_000);
        let none = split(locked, 40, &[tried(locked, 0, 40, 0)], false);
        assert_eq!((none.charge, none.fee), (NanoUsd(0), NanoUsd(0)));
        let empty = split(locked, 40, &[tried(locked, 0, 40, 0)], true);
        assert_eq!((empty.charge, empty.pays[0], empty.fee), (NanoUsd(2000), NanoUsd(1400), NanoUsd(600)));
    }

    #[test]
    fn a_cheaper_second_node_raises_the_fee_and_absorbs_nothing() {
        let locked = prices(0, 100_000_000);
        let split = split(locked, 40, &[tried(locked, 0, 40, 10), tried(prices(0, 10), 10, 50, 10)], false);
        assert_eq!(split.absorption, NanoUsd(0));
        assert_eq!(split.fee, split.charge - split.pays[0] - split.pays[1]);
    }

    #[test]
    fn a_free_node_that_yields_leaves_room_for_the_cap_only() {
        // The first asked nothing and served one position: whatever the next one gets is the platform's to pay.
        let locked = prices(0, 0);
        assert_eq!(room(locked, 40, &[tried(locked, 0, 40, 1)], 99, NanoUsd(700)), NanoUsd(700));
    }

    proptest! {
        #[test]
        fn a_next_attempt_within_its_room_keeps_absorption_within_the_cap(
            input in 0..2_000_000_000_i64,
            output in 0..2_000_000_000_i64,
            next_input in 0..2_000_000_000_i64,
            next_output in 0..2_000_000_000_i64,
            prompt in 1..10_000_u32,
            served in 1..500_u32,
            more in 1..500_u32,
            cap in 0..2_000_000_i64,
        ) {
            let (locked, cap) = (prices(input, output), NanoUsd(cap));
            let first = tried(locked, 0, prompt, served);
            let next = tried(prices(next_input, next_output), served, prompt + served, more);
            let whole = split(locked, prompt, &[first, next], false);
            let fits = whole.pays[1] <= room(locked, prompt, &[first], more, cap);
            prop_assert_eq!(fits, whole.absorption <= cap);
        }

        #[test]
        fn a_split_balances_and_nobody_pays_to_work(
            input in 0..2_000_000_000_i64,
            output in 0..2_000_000_000_i64,
            prompt in 0..10_000_u32,
            attempts in proptest::collection::vec((0..2_000_000_000_i64, 0..2_000_000_000_i64, 0..500_u32), 1..5),
        ) {
            let locked = prices(input, output);
            let mut first = 0;
            let mut rows = Vec::new();
            for (i, (input, output, positions)) in attempts.into_iter().enumerate() {
                let asked = if i == 0 { locked } else { prices(input, output) };
                rows.push(tried(asked, first, prompt + first, positions));
                first += positions;
            }
            let split = split(locked, prompt, &rows, false);
            let paid: NanoUsd = split.pays.iter().copied().sum();
            prop_assert_eq!(split.charge + split.absorption, paid + split.fee);
            prop_assert!(split.fee.0 >= 0 && split.absorption.0 >= 0 && split.charge.0 >= 0);
            prop_assert!(split.pays.iter().all(|pay| pay.0 >= 0));
            prop_assert!(split.charge <= locked.cost(prompt.into(), first.into()));
        }
    }
}
