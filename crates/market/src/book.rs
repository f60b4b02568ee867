//! The book of offers.

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;
use wakati_protocol::ids::{ModelDigest, NodeId};
use wakati_protocol::money::{NanoUsd, Prices, Share};
use wakati_protocol::units::UnixMillis;

use crate::conduct::{Conduct, Record};

/// An answer that is cut to fewer tokens than this is of little use to anybody.
const LEAST_ANSWER: u32 = 256;

/// What a node is willing to serve of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    pub model: ModelDigest,
    /// Tokens of prompt and answer together, at most.
    pub context: u32,
    /// Jobs at the same time.
    pub slots: u32,
    pub prices: Prices,
}

/// What a job needs of a node.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub model: ModelDigest,
    /// Tokens that the node reads before the first new one.
    pub prompt_tokens: u32,
    /// Tokens that it generates, at most.
    pub limit: u32,
    /// Neither price may be above these.
    pub ceiling: Prices,
    /// What the node's owner may get; `None` while the consumer pays whatever the node asks.
    pub budget: Option<Budget>,
    /// Nodes that already had their try at this job.
    pub excluded: &'a BTreeSet<NodeId>,
}

/// What a node's owner may get for a job, at most.
///
/// The first token pays for the whole prompt, and a node may leave after it, so it has a limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// For the prompt and one token.
    pub first_token: NanoUsd,
    /// For the prompt and as many tokens as the job may have.
    pub whole: NanoUsd,
}

/// One connection of a node. A node that comes back has another session, with all its slots free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(u64);

/// A taken slot. Give it to [`Book::release`] exactly once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the slot stays taken until it is released"]
pub struct Claim {
    pub node: NodeId,
    model: ModelDigest,
    session: Session,
}

/// A node for a job.
#[derive(Debug, PartialEq, Eq)]
pub struct Match {
    pub claim: Claim,
    /// The node's prices at this moment; they hold for the whole attempt.
    pub prices: Prices,
}

/// Why nobody was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoMatch {
    /// No connected node offers this.
    NoNode,
    /// There are nodes, and every slot of them is taken.
    Busy,
}

/// How the market stands for one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    pub nodes: u32,
    pub slots: u32,
    pub free: u32,
    pub lowest: Prices,
    pub highest: Prices,
}

#[derive(Debug, Default)]
struct Node {
    session: u64,
    offers: BTreeMap<ModelDigest, Offer>,
    /// Slots taken, also of models that are no longer on offer: their jobs may still run.
    taken: BTreeMap<ModelDigest, u32>,
}

/// All standing offers.
#[derive(Debug, Default)]
pub struct Book {
    nodes: BTreeMap<NodeId, Node>,
    by_model: BTreeMap<ModelDigest, BTreeSet<NodeId>>,
    sessions: u64,
    /// Of nodes whose last attempt went wrong. It outlives their sessions.
    records: BTreeMap<NodeId, Record>,
}

impl Book {
    /// A node has connected. An older session of the same node is over, and so are its claims.
    pub fn arrive(&mut self, node: NodeId) -> Session {
        self.forget_offers(&node);
        self.sessions += 1;
        self.nodes.insert(node, Node { session: self.sessions, ..Node::default() });
        Session(self.sessions)
    }

    /// The node's session is over. Nothing happens when a newer session has begun.
    pub fn leave(&mut self, node: &NodeId, session: Session) {
        if self.nodes.get(node).is_some_and(|n| n.session == session.0) {
            self.forget_offers(node);
            self.nodes.remove(node);
        }
    }

    /// Replaces everything that the node offers. Slots that are taken stay taken.
    pub fn offer(&mut self, node: &NodeId, session: Session, offers: &[Offer]) {
        if self.nodes.get(node).is_none_or(|n| n.session != session.0) {
            return;
        }
        self.forget_offers(node);
        for offer in offers {
            self.by_model.entry(offer.model).or_default().insert(*node);
        }
        if let Some(entry) = self.nodes.get_mut(node) {
            entry.offers = offers.iter().map(|offer| (offer.model, *offer)).collect();
        }
    }

    /// Takes a slot on the node that asks least for this job; equal asks are drawn with `chance`.
    ///
    /// # Errors
    /// When no node offers what is needed, or all that do are full.
    pub fn claim(
        &mut self,
        request: &Request<'_>,
        now: UnixMillis,
        chance: &mut impl Rng,
    ) -> Result<Match, NoMatch> {
        let mut best: Option<(i128, Offer, NodeId)> = None;
        let mut equals = 0_u32;
        let mut any = false;
        for (id, offer, free) in self.eligible(request, now) {
            any = true;
            if free == 0 {
                continue;
            }
            let cost = offer.prices.exact(request.prompt_tokens.into(), request.limit.into());
            match &best {
                Some((least, ..)) if cost > *least => continue,
                Some((least, ..)) if cost == *least => {
                    equals += 1;
                    // Each of n equals ends up chosen with probability 1/n (reservoir sampling).
                    if chance.random_range(0..equals) != 0 {
                        continue;
                    }
                }
                _ => equals = 1,
            }
            best = Some((cost, offer, id));
        }
        let Some((_, offer, id)) = best else {
            return Err(if any { NoMatch::Busy } else { NoMatch::NoNode });
        };
        let Some(node) = self.nodes.get_mut(&id) else { return Err(NoMatch::NoNode) };
        *node.taken.entry(request.model).or_default() += 1;
        let claim = Claim { node: id, model: request.model, session: Session(node.session) };
        Ok(Match { claim, prices: offer.prices })
    }

    /// How many tokens the answer to this request may have: `request.limit`, or fewer where the market is short of
    /// context. 0 when no node has room for the prompt.
    ///
    /// An answer is cut to what *more than half* of the nodes have room for that could give a useful one (the limit
    /// or 256 tokens, whichever is less). So one node that declares a huge context gets no request to itself that
    /// others would have answered well, and one that declares a tiny context cuts nobody's answer. Where no node has
    /// room for a useful answer, those with room for any count.
    #[must_use]
    pub fn longest_answer(&self, request: &Request<'_>, now: UnixMillis) -> u32 {
        [request.limit.min(LEAST_ANSWER), 1]
            .into_iter()
            .map(|limit| self.majority_context(&Request { limit, ..*request }, now))
            .find(|context| *context > 0)
            .map_or(0, |context| request.limit.min(context.saturating_sub(request.prompt_tokens)))
    }

    /// The longest context that more than half of the nodes offer that this request could go to.
    fn majority_context(&self, request: &Request<'_>, now: UnixMillis) -> u32 {
        let mut contexts: Vec<u32> = self.eligible(request, now).map(|(_, offer, _)| offer.context).collect();
        contexts.sort_unstable_by_key(|context| std::cmp::Reverse(*context));
        contexts.get(contexts.len() / 2).copied().unwrap_or(0)
    }

    /// Every node that this request could go to, with its offer and its free slots.
    fn eligible(&self, request: &Request<'_>, now: UnixMillis) -> impl Iterator<Item = (NodeId, Offer, u32)> {
        self.by_model.get(&request.model).into_iter().flatten().filter_map(move |id| {
            let (offer, free) = self.nodes.get(id)?.look(&request.model)?;
            let left_out = self.records.get(id).is_some_and(|record| record.is_left_out(now));
            (!left_out && !request.excluded.contains(id) && fits(&offer, request))
                .then_some((*id, offer, free))
        })
    }

    /// Notes how an attempt went. A node whose attempts keep going wrong is left out of claims for a while.
    pub fn report(&mut self, node: NodeId, conduct: Conduct, now: UnixMillis) {
        match conduct {
            Conduct::Served => {
                self.records.remove(&node);
            }
            Conduct::WentWrong => self.records.entry(node).or_default().went_wrong(now),
        }
    }

    /// Gives a slot back. A claim on a session that is over has nothing to give back.
    // Taken by value, so that the same slot cannot be given back twice.
    pub fn release(&mut self, claim: Claim) {
        let Some(node) = self.nodes.get_mut(&claim.node) else { return };
        if node.session == claim.session.0
            && let Some(taken) = node.taken.get_mut(&claim.model)
        {
            *taken = taken.saturating_sub(1);
        }
    }

    /// How the market stands for a model.
    #[must_use]
    pub fn standing(&self, model: &ModelDigest) -> Standing {
        let mut standing = Standing::default();
        for (offer, free) in self
            .by_model
            .get(model)
            .into_iter()
            .flatten()
            .filter_map(|id| self.nodes.get(id).and_then(|node| node.look(model)))
        {
            let first = standing.nodes == 0;
            standing.nodes += 1;
            standing.slots += offer.slots;
            standing.free += free;
            let (low, high) = (&mut standing.lowest, &mut standing.highest);
            low.input = if first { offer.prices.input } else { low.input.min(offer.prices.input) };
            low.output = if first { offer.prices.output } else { low.output.min(offer.prices.output) };
            high.input = high.input.max(offer.prices.input);
            high.output = high.output.max(offer.prices.output);
        }
        standing
    }

    /// How many nodes are connected.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    fn forget_offers(&mut self, node: &NodeId) {
        let Some(entry) = self.nodes.get_mut(node) else { return };
        for model in std::mem::take(&mut entry.offers).into_keys() {
            if let Some(offering) = self.by_model.get_mut(&model) {
                offering.remove(node);
                if offering.is_empty() {
                    self.by_model.remove(&model);
                }
            }
        }
    }
}

impl Node {
    /// The node's offer of a model and how many of its slots are free.
    fn look(&self, model: &ModelDigest) -> Option<(Offer, u32)> {
        let offer = self.offers.get(model)?;
        let taken = self.taken.get(model).copied().unwrap_or(0);
        Some((*offer, offer.slots.saturating_sub(taken)))
    }
}

fn fits(offer: &Offer, request: &Request<'_>) -> bool {
    let (prompt, limit) = (u64::from(request.prompt_tokens), u64::from(request.limit));
    let most = request.ceiling;
    let pay = |tokens| offer.prices.share(prompt, tokens, Share::OWNER);
    u64::from(offer.context) >= prompt + limit
        && offer.prices.input <= most.input
        && offer.prices.output <= most.output
        && request.budget.is_none_or(|most| pay(1) <= most.first_token && pay(limit) <= most.whole)
}
