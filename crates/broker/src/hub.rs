//! Where jobs and nodes meet: the book of offers, the links that are open, and who waits for which tokens.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use wakati_market::{Book, Claim, Conduct, Match, NoMatch, Offer, Request, Session, Standing};
use wakati_protocol::ids::{Attempt, JobId, ModelDigest, NodeId};
use wakati_protocol::job::{End, Job, Tokens};
use wakati_protocol::link::{ToNode, to_node};

use crate::clock::now;
use crate::measures::{self, Dropped};

/// Frames to one node that wait for its socket. A node that lets more pile up is not reading: its link is ended.
const OUTBOUND_FRAMES: usize = 1024;

/// What a relay hears of its attempt. When the channel ends without an `End`, the link is lost.
#[derive(Debug)]
pub enum News {
    Tokens(Tokens),
    End(End),
    /// The node gives its GPU back.
    Yielding,
}

struct Link {
    session: Session,
    out: mpsc::Sender<ToNode>,
    close: CancellationToken,
}

struct Route {
    attempt: Attempt,
    node: NodeId,
    to: mpsc::Sender<News>,
}

struct Market {
    book: Book,
    chance: StdRng,
}

/// The meeting place. Its locks are held for a few instructions and never while waiting.
pub struct Hub {
    market: Mutex<Market>,
    links: Mutex<HashMap<NodeId, Link>>,
    routes: Mutex<HashMap<JobId, Route>>,
    /// Something came that a waiting job might use.
    changed: Notify,
}

/// One node's open link, as its session sees it.
pub struct Seat {
    pub session: Session,
    pub outbound: mpsc::Receiver<ToNode>,
    /// Another link of the same node has taken over, or the broker ends.
    pub close: CancellationToken,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub fn new(seed: u64) -> Self {
        Self {
            market: Mutex::new(Market { book: Book::default(), chance: StdRng::seed_from_u64(seed) }),
            links: Mutex::default(),
            routes: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// A node is in. A link of the same node that was open before is closed: it proved its key again, so it is
    /// the old one that is dead.
    pub fn arrive(&self, node: NodeId, end: &CancellationToken) -> Seat {
        let (out, outbound) = mpsc::channel(OUTBOUND_FRAMES);
        let close = end.child_token();
        let session = lock(&self.market).book.arrive(node);
        let old = lock(&self.links).insert(node, Link { session, out, close: close.clone() });
        if let Some(old) = old {
            old.close.cancel();
            self.lose_routes(&node);
        }
        measures::nodes(lock(&self.links).len());
        Seat { session, outbound, close }
    }

    /// A link has ended: its attempts are lost in the same moment.
    pub fn leave(&self, node: &NodeId, session: Session) {
        let mut links = lock(&self.links);
        if links.get(node).is_none_or(|link| link.session != session) {
            return;
        }
        links.remove(node);
        measures::nodes(links.len());
        drop(links);
        lock(&self.market).book.leave(node, session);
        self.lose_routes(node);
    }

    fn lose_routes(&self, node: &NodeId) {
        lock(&self.routes).retain(|_, route| route.node != *node);
    }

    /// How many nodes are connected.
    pub fn nodes(&self) -> usize {
        lock(&self.links).len()
    }

    pub fn offer(&self, node: &NodeId, session: Session, offers: &[Offer]) {
        lock(&self.market).book.offer(node, session, offers);
        self.changed.notify_waiters();
    }

    pub fn standing(&self, model: &ModelDigest) -> Standing {
        lock(&self.market).book.standing(model)
    }

    pub fn claim(&self, request: &Request<'_>) -> Result<Match, NoMatch> {
        let Market { book, chance } = &mut *lock(&self.market);
        book.claim(request, now(), chance)
    }

    /// How many tokens the answer to this request may have.
    pub fn longest_answer(&self, request: &Request<'_>) -> u32 {
        lock(&self.market).book.longest_answer(request, now())
    }

    /// Notes how an attempt went.
    pub fn report(&self, node: NodeId, conduct: Conduct) {
        lock(&self.market).book.report(node, conduct, now());
    }

    /// As [`Hub::claim`], but waits for a node until `deadline`.
    pub async fn claim_until(&self, request: &Request<'_>, deadline: tokio::time::Instant) -> Option<Match> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that nothing that comes in between is missed.
            changed.as_mut().enable();
            if let Ok(found) = self.claim(request) {
                return Some(found);
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return None;
            }
        }
    }

    pub fn release(&self, claim: Claim) {
        lock(&self.market).book.release(claim);
        self.changed.notify_waiters();
    }

    /// Gives a job to a node. `None` when its link is gone or stuck.
    pub fn start(&self, node: &NodeId, id: JobId, job: Job) -> Option<mpsc::Receiver<News>> {
        // Every frame carries a token that credit allowed, or is the last one; so a node that fills this is false.
        let (to, news) = mpsc::channel(job.credit as usize + 8);
        let route = Route { attempt: job.attempt, node: *node, to };
        lock(&self.routes).insert(id, route);
        if self.send(node, to_node::Body::Job(job)) {
            return Some(news);
        }
        self.forget(id);
        None
    }

    /// Nobody waits for this job's tokens any more.
    pub fn forget(&self, job: JobId) {
        lock(&self.routes).remove(&job);
    }

    /// Puts a frame into a node's queue. A full queue ends the link.
    pub fn send(&self, node: &NodeId, body: to_node::Body) -> bool {
        let links = lock(&self.links);
        let Some(link) = links.get(node) else { return false };
        let sent = link.out.try_send(body.into()).is_ok();
        if !sent {
            tracing::warn!(%node, "the node does not read its link; it is closed");
            link.close.cancel();
        }
        sent
    }

    /// Puts a frame that comes again anyway into a node's queue, if it is not half full of others.
    pub fn send_if_room(&self, node: &NodeId, body: to_node::Body) {
        if let Some(link) = lock(&self.links).get(node)
            && link.out.capacity() > OUTBOUND_FRAMES / 2
        {
            let _ = link.out.try_send(body.into());
        }
    }

    /// Brings news from a node to whoever waits for it.
    pub fn news(&self, node: &NodeId, job: &[u8], attempt: Attempt, news: News) {
        let mut routes = lock(&self.routes);
        let Ok(id) = JobId::from_slice(job) else { return measures::dropped(Dropped::Hostile) };
        let current = routes
            .get(&id)
            .filter(|route| route.node == *node && route.attempt == attempt)
            .map(|r| r.to.clone());
        let Some(to) = current else { return measures::dropped(Dropped::Late) };
        if to.try_send(news).is_err() {
            // More than its credit: the relay sees the channel end and goes on elsewhere.
            measures::dropped(Dropped::Hostile);
            routes.remove(&id);
        }
    }

    /// The node gives its GPU back: all its attempts end, and it offers nothing.
    pub fn yielding(&self, node: &NodeId, session: Session) {
        self.offer(node, session, &[]);
        lock(&self.routes).retain(|_, route| {
            let theirs = route.node == *node;
            if theirs {
                // When the channel is full, its end says as much.
                let _ = route.to.try_send(News::Yielding);
            }
            !theirs
        });
    }
}
