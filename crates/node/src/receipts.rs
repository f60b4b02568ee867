//! Whether a receipt says what this node knows.
//!
//! The broker counts the tokens, so it may say less than was sent: that is what was accepted. It may not say more,
//! nor another price, nor another pay than its own numbers give.

use wakati_protocol::ids::NodeId;
use wakati_protocol::money::{NanoUsd, Price, Prices, Share};
use wakati_protocol::receipt::{self, Receipt};

/// What this node knows of the attempt that a receipt is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub model: Vec<u8>,
    pub first_position: u32,
    /// Positions sent; `None` when this node was killed in mid-attempt and does not know.
    pub sent: Option<u32>,
    pub input_tokens: u32,
    pub prices: Prices,
}

/// No attempt has more tokens: the longest context that the settings allow is a sixteenth of it.
const MOST_TOKENS: u32 = 1 << 24;
/// The highest price that the settings allow: $1000 a million tokens.
const HIGHEST_PRICE: Price = Price(1_000 * NanoUsd::DOLLAR.0);
/// A share in thousandths that leaves nothing to the broker.
const WHOLE: Share = Share(1_000);

/// Why a receipt is not agreed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    #[error("the broker's signature does not fit")]
    Signature,
    #[error("it is for another node")]
    OtherNode,
    #[error("it names no attempt")]
    Garbled,
    #[error("it is for another model")]
    Model,
    #[error("its positions are not those that were sent")]
    Positions,
    #[error("its prompt has another length")]
    InputTokens,
    #[error("its prices are not those that were offered")]
    Prices,
    #[error("the owner's share is not between {} and {} thousandths", Share::OWNER.0, WHOLE.0)]
    Share,
    /// Beyond any attempt that there can be; a few of them would overflow the sum of the earnings.
    #[error("its numbers are too large to be true")]
    TooLarge,
    #[error("its pay is not what its own numbers give")]
    Pay,
}

/// Checks a receipt against the broker's key and our own record. `known` is `None` when there is no record, as after
/// a damaged log was set aside: then the broker's signature is the proof.
///
/// # Errors
/// With the first thing that does not fit.
pub fn check(
    receipt: &Receipt,
    broker: &[u8],
    node: NodeId,
    known: Option<&Known>,
) -> Result<(), Disagreement> {
    receipt::verify(broker, &receipt.signed_bytes(), &receipt.broker_signature)
        .map_err(|_| Disagreement::Signature)?;
    let prices = Prices { input: Price(receipt.input_price), output: Price(receipt.output_price) };
    let share = u16::try_from(receipt.share).map(Share).map_err(|_| Disagreement::Share)?;
    let pay = prices.share(receipt.input_tokens.into(), receipt.positions.into(), share);
    let holds = [
        (receipt.node == node.0, Disagreement::OtherNode),
        (receipt.job.len() == 16 && receipt.model.len() == 32 && receipt.sequence > 0, Disagreement::Garbled),
        ((Share::OWNER.0..=WHOLE.0).contains(&share.0), Disagreement::Share),
        (is_possible(receipt, prices), Disagreement::TooLarge),
        (NanoUsd(receipt.pay) == pay, Disagreement::Pay),
    ];
    if let Some((_, disagreement)) = holds.into_iter().find(|(holds, _)| !holds) {
        return Err(disagreement);
    }
    known.map_or(Ok(()), |known| agrees(receipt, prices, known))
}

fn is_possible(receipt: &Receipt, prices: Prices) -> bool {
    let price = |price: Price| (0..=HIGHEST_PRICE.0).contains(&price.0);
    let tokens = [receipt.first_position, receipt.positions, receipt.input_tokens];
    price(prices.input) && price(prices.output) && tokens.iter().all(|count| *count <= MOST_TOKENS)
}

fn agrees(receipt: &Receipt, prices: Prices, known: &Known) -> Result<(), Disagreement> {
    let positions = receipt.first_position == known.first_position
        && known.sent.is_none_or(|sent| receipt.positions <= sent);
    // An attempt that delivered nothing is not always paid for its prompt.
    let input =
        receipt.input_tokens == known.input_tokens || (receipt.positions == 0 && receipt.input_tokens == 0);
    let holds = [
        (receipt.model == known.model, Disagreement::Model),
        (positions, Disagreement::Positions),
        (input, Disagreement::InputTokens),
        (prices == known.prices, Disagreement::Prices),
    ];
    holds.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, disagreement)| Err(disagreement))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;

    const NODE: NodeId = NodeId([2; 32]);

    fn broker() -> SigningKey {
        SigningKey::from_bytes(&[3; 32])
    }

    fn known() -> Known {
        Known {
            model: vec![9; 32],
            first_position: 0,
            sent: Some(10),
            input_tokens: 3,
            prices: Prices { input: Price(50_000_000), output: Price(100_000_000) },
        }
    }

    /// 3 prompt tokens and 7 generated ones at $0.05 and $0.10 a million are 850 nano-USD; 70% of it is 595.
    fn right() -> Receipt {
        Receipt {
            sequence: 1,
            node: NODE.to_vec(),
            job: vec![1; 16],
            attempt: 1,
            model: vec![9; 32],
            positions: 7,
            input_tokens: 3,
            input_price: 50_000_000,
            output_price: 100_000_000,
            share: 700,
            pay: 595,
            ..Receipt::default()
        }
    }

    fn verdict(change: impl Fn(&mut Receipt), known: Option<&Known>) -> Result<(), Disagreement> {
        let mut receipt = right();
        change(&mut receipt);
        receipt.broker_signature = receipt::sign(&broker(), &receipt.signed_bytes());
        check(&receipt, &broker().verifying_key().to_bytes(), NODE, known)
    }

    #[test]
    fn a_receipt_for_less_than_was_sent_is_agreed_with() {
        assert_eq!(verdict(|_| {}, Some(&known())), Ok(()));
        assert_eq!(verdict(|_| {}, None), Ok(()));
        let interrupted = Known { sent: None, ..known() };
        let more = |receipt: &mut Receipt| (receipt.positions, receipt.pay) = (20, 1_505);
        assert_eq!(verdict(more, Some(&interrupted)), Ok(()));
    }

    #[test]
    fn numbers_that_no_attempt_has_are_refused_even_without_a_record() {
        type Change = fn(&mut Receipt);
        let paid = |receipt: &mut Receipt, change: Change| {
            change(receipt);
            let prices = Prices { input: Price(receipt.input_price), output: Price(receipt.output_price) };
            let share = Share(receipt.share as u16);
            receipt.pay = prices.share(receipt.input_tokens.into(), receipt.positions.into(), share).0;
        };
        let rows: [(Change, Result<(), Disagreement>); 8] = [
            (|r| r.output_price = i64::MAX, Err(Disagreement::TooLarge)),
            (|r| r.output_price = 1_000_000_000_001, Err(Disagreement::TooLarge)),
            (|r| r.output_price = 1_000_000_000_000, Ok(())),
            (|r| r.input_price = -1, Err(Disagreement::TooLarge)),
            (|r| r.positions = (1 << 24) + 1, Err(Disagreement::TooLarge)),
            (|r| r.input_tokens = u32::MAX, Err(Disagreement::TooLarge)),
            (|r| r.share = 1_001, Err(Disagreement::Share)),
            (|r| r.share = 1_000, Ok(())),
        ];
        for (change, expected) in rows {
            assert_eq!(verdict(|receipt| paid(receipt, change), None), expected);
        }
    }

    #[test]
    fn every_wrong_number_is_refused() {
        type Change = fn(&mut Receipt);
        let rows: [(Change, Disagreement); 8] = [
            (|r| r.pay = 594, Disagreement::Pay),
            (|r| r.pay = 596, Disagreement::Pay),
            (|r| (r.share, r.pay) = (600, 510), Disagreement::Share),
            (|r| r.node = vec![4; 32], Disagreement::OtherNode),
            (|r| (r.positions, r.pay) = (11, 875), Disagreement::Positions),
            (|r| r.first_position = 1, Disagreement::Positions),
            (|r| (r.output_price, r.pay) = (200_000_000, 1_085), Disagreement::Prices),
            (|r| (r.input_tokens, r.pay) = (2, 560), Disagreement::InputTokens),
        ];
        for (change, disagreement) in rows {
            assert_eq!(verdict(change, Some(&known())), Err(disagreement));
        }
        let mut forged = right();
        forged.broker_signature = receipt::sign(&SigningKey::from_bytes(&[5; 32]), &forged.signed_bytes());
        let key = broker().verifying_key().to_bytes();
        assert_eq!(check(&forged, &key, NODE, None), Err(Disagreement::Signature));
    }
}
