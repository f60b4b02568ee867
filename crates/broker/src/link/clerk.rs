//! What a session does with the books: the node gets every receipt that it lacks, and says that it has it.
//!
//! ```text
//! the node lacks receipts: a batch -> its last one acknowledged, or a while -> the next batch
//! the node has been sent all: what is not acknowledged is sent again every while
//! ```

use tokio::sync::mpsc;
use wakati_ledger::{BadAck, RECEIPTS_AT_ONCE};
use wakati_protocol::ids::NodeId;
use wakati_protocol::link::to_node;
use wakati_protocol::receipt::ReceiptAck;

use super::{Gone, STRIKES};
use crate::app::App;
use crate::clock::now;
use crate::measures::{self, Dropped};

/// Sends what the node lacks, notes what it acknowledges, and sends again what it has not.
pub(super) async fn keep_receipts(
    app: &App,
    node: NodeId,
    receipts_to: u64,
    acks: &mut mpsc::Receiver<ReceiptAck>,
) -> Gone {
    // The last one sent, while there are more.
    let mut sent_to = send_after(app, &node, receipts_to).await;
    let mut again = tokio::time::interval(app.settings.receipt_resend);
    again.tick().await;
    let mut strikes = 0;
    loop {
        tokio::select! {
            ack = acks.recv() => {
                let Some(ack) = ack else { return Gone::Broken };
                if !note(app, &node, &ack).await {
                    measures::dropped(Dropped::Hostile);
                    strikes += 1;
                    if strikes >= STRIKES {
                        tracing::warn!(%node, "the node keeps acknowledging receipts that it does not have, so its link is closed");
                        return Gone::Hostile;
                    }
                } else if sent_to == Some(ack.sequence) {
                    sent_to = send_after(app, &node, ack.sequence).await;
                    again.reset();
                }
            }
            _ = again.tick() => match sent_to {
                Some(sequence) => sent_to = send_after(app, &node, sequence).await,
                None => send_unacked(app, &node).await,
            }
        }
    }
}

/// Sends a batch of the receipts after this one, as far as there is room. The last one sent, or `None` when the node
/// has been sent all of them.
async fn send_after(app: &App, node: &NodeId, sequence: u64) -> Option<u64> {
    let receipts = match app.ledger.receipts_after(node, sequence).await {
        Ok(receipts) => receipts,
        Err(error) => {
            tracing::warn!(%error, "receipts could not be read; the next turn reads them again");
            return Some(sequence);
        }
    };
    let more = receipts.len() == RECEIPTS_AT_ONCE as usize;
    let mut sent_to = sequence;
    for receipt in receipts {
        let this = receipt.sequence;
        if !app.hub.send_if_room(node, to_node::Body::Receipt(receipt)) {
            return Some(sent_to);
        }
        sent_to = this;
    }
    more.then_some(sent_to)
}

async fn send_unacked(app: &App, node: &NodeId) {
    match app.ledger.unacked(node).await {
        Ok(receipts) => {
            for receipt in receipts {
                if !app.hub.send_if_room(node, to_node::Body::Receipt(receipt)) {
                    // The rest comes with the next turn.
                    return;
                }
            }
        }
        Err(error) => tracing::warn!(%error, "receipts could not be read; the next turn reads them again"),
    }
}

/// False when the node has no such receipt, or the signature is not its own.
async fn note(app: &App, node: &NodeId, ack: &ReceiptAck) -> bool {
    match app.ledger.acknowledge(node, ack.sequence, &ack.node_signature, now()).await {
        Ok(()) => true,
        Err(BadAck::Unknown) => false,
        Err(BadAck::Failed(error)) => {
            tracing::warn!(%error, "an acknowledgement could not be noted; its receipt is sent again");
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    use ed25519_dalek::SigningKey;
    use tokio_util::sync::CancellationToken;
    use wakati_ledger::{Ending, Finish, JobOpening, Ledger, Limit, NewAttempt};
    use wakati_protocol::ids::{JobId, ModelDigest};
    use wakati_protocol::money::{NanoUsd, Price, Prices};
    use wakati_protocol::receipt::sign;

    use super::*;
    use crate::hub::{OUTBOUND_FRAMES, Seat};
    use crate::operator::Home;
    use crate::settings::Settings;

    const RECEIPTS: u32 = 5_000;

    fn node_key() -> SigningKey {
        SigningKey::from_bytes(&[9; 32])
    }

    fn node() -> NodeId {
        NodeId(node_key().verifying_key().to_bytes())
    }

    /// One job of so many attempts of one position each, so that each has a receipt.
    async fn earn(app: &App) {
        let at = now();
        let invite = app.ledger.invite("ann", at).await.unwrap();
        app.ledger.admit(&node(), invite.reveal(), at).await.unwrap();
        app.ledger.credit("acme", NanoUsd::DOLLAR, at).await.unwrap();
        let key = app.ledger.create_key("acme", "test", at).await.unwrap();
        let key = app.ledger.holder(key.reveal()).await.unwrap().unwrap().key;
        let (job, locked) = (JobId([1; 16]), Prices { input: Price(0), output: Price(50_000_000) });
        let opening = JobOpening {
            job,
            key,
            account: "acme",
            model: ModelDigest([1; 32]),
            model_name: "tiny",
            prompt_tokens: 10,
            limit: Limit::Exactly(RECEIPTS),
            locked,
            node: node(),
        };
        app.ledger.open_job(&opening, at).await.unwrap();
        for position in 1..RECEIPTS {
            let attempt = NewAttempt {
                attempt: position + 1,
                node: node(),
                prices: locked,
                first_position: position,
                input_tokens: 10 + position,
            };
            app.ledger.begin_attempt(job, &attempt).await.unwrap();
        }
        let ending = Ending { finish: Finish::Length, delivered: Some(RECEIPTS) };
        app.ledger.settle(job, ending, at, &|bytes| app.sign(bytes)).await.unwrap();
    }

    /// One connection of a node that has none of its receipts and acknowledges all that it gets, until it has them all.
    async fn collect(app: &App, seat: Seat) -> BTreeMap<u64, i64> {
        let Seat { mut outbound, .. } = seat;
        let (to, mut acks) = mpsc::channel(8);
        let key = node_key();
        let reads = async {
            // Nothing is read before the clerk has had ample time for all its looks into the books.
            for _ in 0..3 {
                let mut from = 0;
                while let Some(last) = app.ledger.receipts_after(&node(), from).await.unwrap().last() {
                    from = last.sequence;
                }
            }
            let mut pays = BTreeMap::new();
            while pays.len() < RECEIPTS as usize {
                let frame = outbound.recv().await.unwrap();
                if let Some(to_node::Body::Receipt(receipt)) = frame.body {
                    pays.insert(receipt.sequence, receipt.pay);
                    let node_signature = sign(&key, &receipt.signed_bytes());
                    to.send(ReceiptAck { sequence: receipt.sequence, node_signature }).await.unwrap();
                }
            }
            pays
        };
        let clerk = keep_receipts(app, node(), 0, &mut acks);
        let both = async {
            tokio::select! {
                pays = reads => pays,
                gone = clerk => panic!("{gone:?}"),
            }
        };
        tokio::time::timeout(Duration::from_secs(60), both).await.unwrap()
    }

    #[tokio::test]
    async fn a_node_that_lost_its_log_gets_all_its_receipts_in_one_connection() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let ledger = Ledger::open(&home.books()).await.unwrap();
        let settings = Settings { receipt_resend: Duration::from_millis(50), ..Settings::default() };
        let app = App::new(&home, settings, ledger, SigningKey::from_bytes(&[7; 32]));
        earn(&app).await;
        let end = CancellationToken::new();
        let arrive = || app.hub.arrive(node(), &end, Instant::now()).unwrap();
        let first = collect(&app, arrive()).await;
        let seat = arrive();
        // The node is slow to read other frames, and all its receipts are acknowledged.
        for _ in 0..OUTBOUND_FRAMES * 3 / 4 {
            app.hub.beat(&node(), seat.session, 1, Instant::now());
        }
        let second = collect(&app, seat).await;
        let earned = app.ledger.books().await.unwrap().owners[0].earned;
        assert_eq!(NanoUsd(first.values().sum()), earned);
        assert_eq!(NanoUsd(second.values().sum()), earned);
        assert_eq!(second.len(), RECEIPTS as usize);
    }
}
