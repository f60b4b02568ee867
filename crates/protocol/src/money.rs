//! Money: whole nano-USD, never floating point.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub};

use serde::{Deserialize, Serialize};

/// An amount in nano-USD (a thousand-millionth of a dollar). An `i64` holds nine thousand million dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(transparent)]
pub struct NanoUsd(pub i64);

impl NanoUsd {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// One dollar.
    pub const DOLLAR: Self = Self(1_000_000_000);
}

impl Add for NanoUsd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for NanoUsd {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for NanoUsd {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for NanoUsd {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Sum for NanoUsd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Writes the exact amount in dollars with nine decimals: `0.000012340`.
impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nano = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000)
    }
}

/// Text that is not an amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an amount must be dollars with at most nine decimals, such as 12.50")]
pub struct BadAmount;

/// Reads an exact amount in dollars: `12`, `0.5`, `-3.000000001`.
impl std::str::FromStr for NanoUsd {
    type Err = BadAmount;
    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let only_digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if !only_digits(whole) || !only_digits(part) || part.len() > 9 {
            return Err(BadAmount);
        }
        let nano: i64 = format!("{whole}{part:0<9}").parse().map_err(|_| BadAmount)?;
        Ok(Self(sign * nano))
    }
}

/// A price in nano-USD per million tokens. $0.10 per million tokens is `Price(100_000_000)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
#[serde(transparent)]
pub struct Price(pub i64);

/// The prices of one model on one node: what a consumer pays for prompt and for generated tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "bindings", derive(ts_rs::TS))]
pub struct Prices {
    /// For each million prompt tokens.
    pub input: Price,
    /// For each million generated tokens.
    pub output: Price,
}

impl Prices {
    /// The exact cost of these tokens, in nano-USD times a million: not yet rounded.
    #[must_use]
    pub fn exact(&self, input_tokens: u64, output_tokens: u64) -> i128 {
        i128::from(self.input.0) * i128::from(input_tokens)
            + i128::from(self.output.0) * i128::from(output_tokens)
    }

    /// The cost of these tokens, rounded down once, which is in the consumer's favour.
    #[must_use]
    pub fn cost(&self, input_tokens: u64, output_tokens: u64) -> NanoUsd {
        round_down(self.exact(input_tokens, output_tokens), 1_000_000)
    }

    /// The owner's share of the cost of these tokens, rounded down once.
    #[must_use]
    pub fn share(&self, input_tokens: u64, output_tokens: u64, share: Share) -> NanoUsd {
        let exact = self.exact(input_tokens, output_tokens) * i128::from(share.0);
        round_down(exact, 1_000_000 * 1_000)
    }
}

/// A share in thousandths: the owner's 70% is `Share(700)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(pub u16);

impl Share {
    /// What an owner gets of what a consumer pays.
    pub const OWNER: Self = Self(700);
}

/// `exact / divisor` rounded towards negative infinity; amounts too large for the books are held at the limit.
fn round_down(exact: i128, divisor: i128) -> NanoUsd {
    let rounded = exact.div_euclid(divisor);
    NanoUsd(rounded.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written_exactly() {
        for (text, nano) in [
            ("12", 12_000_000_000),
            ("0.5", 500_000_000),
            ("-3.000000001", -3_000_000_001),
            ("0.000000001", 1),
        ] {
            assert_eq!(text.parse(), Ok(NanoUsd(nano)), "{text}");
            assert_eq!(NanoUsd(nano).to_string().parse(), Ok(NanoUsd(nano)));
        }
        for bad in ["", ".5", "5.", "1e9", "1.0000000001", "--1", "99999999999999999999"] {
            assert_eq!(bad.parse::<NanoUsd>(), Err(BadAmount), "{bad}");
        }
    }

    #[test]
    fn a_cost_is_rounded_down_once() {
        // 3 prompt tokens and 7 generated ones at $0.05 and $0.10 a million: 150 + 700 nano-USD.
        let prices = Prices { input: Price(50_000_000), output: Price(100_000_000) };
        assert_eq!(prices.cost(3, 7), NanoUsd(850));
        assert_eq!(prices.share(3, 7, Share::OWNER), NanoUsd(595));
        // A third of a nano-USD is not charged.
        let odd = Prices { input: Price(333_333), output: Price(0) };
        assert_eq!(odd.cost(1, 0), NanoUsd(0));
        assert_eq!(odd.cost(4, 0), NanoUsd(1));
    }

    #[test]
    fn an_absurd_price_does_not_overflow() {
        let prices = Prices { input: Price(i64::MAX), output: Price(i64::MAX) };
        assert_eq!(prices.cost(u64::MAX >> 1, u64::MAX >> 1), NanoUsd(i64::MAX));
    }
}
