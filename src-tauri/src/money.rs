//! Amounts as the tray writes them. The window's page writes them by the same rule.

use wakati_protocol::money::NanoUsd;

/// Dollars and cents; under one cent, the first two digits that are not zero.
/// Cut, never rounded: no money that is not there, and none of what is there as zero.
pub fn written(amount: NanoUsd) -> String {
    let nano = amount.0.unsigned_abs();
    let decimals = if nano == 0 || nano >= 10_000_000 { 2 } else { 10 - nano.ilog10() as usize };
    let part = format!("{:09}", nano % 1_000_000_000);
    let sign = if amount.0 < 0 { "-" } else { "" };
    let shown = &part[..decimals.min(9)];
    // A zero at the end says nothing, beyond the cents.
    let shown = &shown[..shown.trim_end_matches('0').len().max(2)];
    format!("{sign}${}.{shown}", nano / 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_amount_is_rounded_to_nothing() {
        // The same rows as the page's, in ui/src/lib/format.test.ts.
        for (nano, text) in [
            (0, "$0.00"),
            (1_840_000_000, "$1.84"),
            (1_849_999_999, "$1.84"),
            (10_000_000, "$0.01"),
            (9_999_999, "$0.0099"),
            (4_480, "$0.0000044"),
            (595, "$0.00000059"),
            (12, "$0.000000012"),
            (1, "$0.000000001"),
            (-3_500_000_000, "-$3.50"),
        ] {
            assert_eq!(written(NanoUsd(nano)), text, "{nano}");
        }
    }
}
