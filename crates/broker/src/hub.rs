//! Where jobs and nodes meet: the book of offers, the links that are open, and who waits for which tokens.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use wakati_market::{Book, Claim, Conduct, Match, NoMatch, Offer, Request, Session, Standing};
use wakati_protocol::ids::{Attempt, JobId, ModelDigest, NodeId};
use wakati_protocol::job::{End, Job, Tokens};
use wakati_protocol::link::{BrokerBeat, ToNode, to_node};

use crate::clock::now;
use crate::measures::{self, Dropped};

/// Frames to one node that wait for its socket. A node that lets more pile up is not reading: its link is ended.
pub const OUTBOUND_FRAMES: usize = 1024;
/// Links that still lived and were taken over within [`TAKE_OVERS_WITHIN`], before the next one is refused.
const TAKE_OVERS: usize = 2;
const TAKE_OVERS_WITHIN: Duration = Duration::from_secs(60);

/// What a relay hears of its attempt. When the channel ends without an `End`, the link is lost.
#[derive(Debug)]
pub enum News {
    Tokens(Tokens),
    End(End),
    /// The node gives its GPU back.
    Yielding,
}

/// Two machines have the same key: each link of the one takes over the link of the other, and neither can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlreadyHere;

struct Link {
    session: Session,
    out: mpsc::Sender<ToNode>,
    close: CancellationToken,
    /// When the node last showed that it lives.
    heard: Instant,
    /// When links of this node that still lived were taken over, as far as it matters.
    taken_over: Vec<Instant>,
}

struct Route {
    attempt: Attempt,
    session: Session,
    to: mpsc::Sender<News>,
}

/// The book, the links and the routes as they stand at one moment: the book has exactly the sessions of the links,
/// and every route leads to one of them.
struct Meeting {
    book: Book,
    chance: StdRng,
    links: HashMap<NodeId, Link>,
    routes: HashMap<JobId, Route>,
}

/// The meeting place. Its one lock is held for a few instructions and never while waiting.
pub struct Hub {
    meeting: Mutex<Meeting>,
    /// A link on which nothing has been heard for so long is taken for dead when its node comes again.
    beat: Duration,
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

impl Hub {
    pub fn new(seed: u64, beat: Duration) -> Self {
        let meeting = Meeting {
            book: Book::default(),
            chance: StdRng::seed_from_u64(seed),
            links: HashMap::new(),
            routes: HashMap::new(),
        };
        Self { meeting: Mutex::new(meeting), beat, changed: Notify::new() }
    }

    fn meeting(&self) -> MutexGuard<'_, Meeting> {
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node is in. A link of the same node that was open before is closed: it proved its key again, so it is
    /// the old one that is dead.
    ///
    /// # Errors
    /// When links that still lived were taken over again and again.
    pub fn arrive(&self, node: NodeId, end: &CancellationToken, now: Instant) -> Result<Seat, AlreadyHere> {
        let (out, outbound) = mpsc::channel(OUTBOUND_FRAMES);
        let close = end.child_token();
        let mut meeting = self.meeting();
        let mut taken_over = Vec::new();
        if let Some(old) = meeting.links.get_mut(&node) {
            old.taken_over.retain(|at| now.duration_since(*at) < TAKE_OVERS_WITHIN);
            if now.duration_since(old.heard) < self.beat {
                if old.taken_over.len() >= TAKE_OVERS {
                    return Err(AlreadyHere);
                }
                old.taken_over.push(now);
            }
            taken_over = std::mem::take(&mut old.taken_over);
        }
        let session = meeting.book.arrive(node);
        let link = Link { session, out, close: close.clone(), heard: now, taken_over };
        if let Some(old) = meeting.links.insert(node, link) {
            old.close.cancel();
            meeting.lose_routes(old.session);
        }
        measures::nodes(meeting.book.nodes());
        Ok(Seat { session, outbound, close })
    }

    /// A link has ended: its attempts are lost in the same moment.
    pub fn leave(&self, node: &NodeId, session: Session) {
        let mut meeting = self.meeting();
        if meeting.links.get(node).is_none_or(|link| link.session != session) {
            return;
        }
        meeting.links.remove(node);
        meeting.book.leave(node, session);
        meeting.lose_routes(session);
        measures::nodes(meeting.book.nodes());
    }

    /// How many nodes are connected.
    pub fn nodes(&self) -> usize {
        self.meeting().book.nodes()
    }

    pub fn offer(&self, node: &NodeId, session: Session, offers: &[Offer]) {
        self.meeting().book.offer(node, session, offers);
        self.changed.notify_waiters();
    }

    pub fn standing(&self, model: &ModelDigest) -> Standing {
        self.meeting().book.standing(model)
    }

    pub fn claim(&self, request: &Request<'_>) -> Result<Match, NoMatch> {
        let Meeting { book, chance, .. } = &mut *self.meeting();
        book.claim(request, now(), chance)
    }

    /// How many tokens the answer to this request may have.
    pub fn longest_answer(&self, request: &Request<'_>) -> u32 {
        self.meeting().book.longest_answer(request, now())
    }

    /// Notes how an attempt went.
    pub fn report(&self, node: NodeId, conduct: Conduct) {
        self.meeting().book.report(node, conduct, now());
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
        self.meeting().book.release(claim);
        self.changed.notify_waiters();
    }

    /// Gives a job to a node. `None` when its link is gone or stuck.
    pub fn start(&self, node: &NodeId, id: JobId, job: Job) -> Option<mpsc::Receiver<News>> {
        // Every frame carries a token that credit allowed, or is the last one; so a node that fills this is false.
        let (to, news) = mpsc::channel(job.credit as usize + 8);
        let attempt = job.attempt;
        let mut meeting = self.meeting();
        let session = meeting.links.get(node)?.session;
        if !meeting.send(node, to_node::Body::Job(job)) {
            return None;
        }
        // Its first tokens find the route: they wait for this lock.
        meeting.routes.insert(id, Route { attempt, session, to });
        Some(news)
    }

    /// Nobody waits for this job's tokens any more.
    pub fn forget(&self, job: JobId) {
        self.meeting().routes.remove(&job);
    }

    /// Puts a frame into a node's queue. A full queue ends the link.
    pub fn send(&self, node: &NodeId, body: to_node::Body) -> bool {
        self.meeting().send(node, body)
    }

    /// Puts a frame that comes again anyway into a node's queue, if it is not half full of others. Says whether it did.
    pub fn send_if_room(&self, node: &NodeId, body: to_node::Body) -> bool {
        let meeting = self.meeting();
        let Some(link) = meeting.links.get(node) else { return false };
        link.out.capacity() > OUTBOUND_FRAMES / 2 && link.out.try_send(body.into()).is_ok()
    }

    /// The node lives, and is told that the broker does.
    pub fn beat(&self, node: &NodeId, session: Session, number: u64, now: Instant) {
        let mut meeting = self.meeting();
        let Some(link) = meeting.links.get_mut(node).filter(|link| link.session == session) else { return };
        link.heard = now;
        meeting.send(node, to_node::Body::Beat(BrokerBeat { number }));
    }

    /// Brings news from a node to whoever waits for it.
    pub fn news(&self, session: Session, job: &[u8], attempt: Attempt, news: News) {
        let Ok(id) = JobId::from_slice(job) else { return measures::dropped(Dropped::Hostile) };
        let mut meeting = self.meeting();
        let route = meeting.routes.get(&id);
        let Some(route) = route.filter(|route| route.session == session && route.attempt == attempt) else {
            return measures::dropped(Dropped::Late);
        };
        if route.to.try_send(news).is_err() {
            // More than its credit: the relay sees the channel end and goes on elsewhere.
            measures::dropped(Dropped::Hostile);
            meeting.routes.remove(&id);
        }
    }

    /// The node gives its GPU back: all its attempts end, and it offers nothing.
    pub fn yielding(&self, node: &NodeId, session: Session) {
        let mut meeting = self.meeting();
        meeting.book.offer(node, session, &[]);
        meeting.routes.retain(|_, route| {
            let theirs = route.session == session;
            if theirs {
                // When the channel is full, its end says as much.
                let _ = route.to.try_send(News::Yielding);
            }
            !theirs
        });
    }
}

impl Meeting {
    fn send(&self, node: &NodeId, body: to_node::Body) -> bool {
        let Some(link) = self.links.get(node) else { return false };
        let sent = link.out.try_send(body.into()).is_ok();
        if !sent {
            tracing::warn!(%node, "the node does not read its link; it is closed");
            link.close.cancel();
        }
        sent
    }

    fn lose_routes(&mut self, session: Session) {
        self.routes.retain(|_, route| route.session != session);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use wakati_protocol::money::{Price, Prices};

    use super::*;

    const MODEL: ModelDigest = ModelDigest([1; 32]);
    const BEAT: Duration = Duration::from_secs(5);

    fn offer() -> Offer {
        let prices = Prices { input: Price(1), output: Price(1) };
        Offer { model: MODEL, context: 100, slots: 1, prices }
    }

    fn number(n: u32) -> NodeId {
        let mut node = NodeId([0; 32]);
        node.0[..4].copy_from_slice(&n.to_le_bytes());
        node
    }

    #[test]
    fn two_links_of_one_node_that_race_leave_nothing_behind() {
        // So that a node may come as often as it likes.
        let hub = Hub::new(1, Duration::ZERO);
        let end = CancellationToken::new();
        // Wakes nobody, so both links begin in the same moment.
        let ready = AtomicU32::new(0);
        let together = |so_far: u32| {
            ready.fetch_add(1, Ordering::AcqRel);
            while ready.load(Ordering::Acquire) < so_far {
                std::thread::yield_now();
            }
        };
        let link = || {
            for round in 0..30_000 {
                let node = number(round);
                let come = || {
                    let seat = hub.arrive(node, &end, Instant::now()).unwrap();
                    hub.offer(&node, seat.session, &[offer()]);
                    seat.session
                };
                together(4 * round + 2);
                let mut session = come();
                for _ in 1..4 {
                    session = come();
                }
                together(4 * round + 4);
                hub.leave(&node, session);
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(link);
            threads.spawn(link);
        });
        assert_eq!((hub.standing(&MODEL).nodes, hub.nodes()), (0, 0));
    }

    #[test]
    fn a_link_that_is_taken_over_loses_its_own_routes_and_no_later_one() {
        let hub = Hub::new(1, BEAT);
        let end = CancellationToken::new();
        let node = number(1);
        let job = |attempt| Job { attempt, credit: 4, ..Job::default() };
        let first = hub.arrive(node, &end, Instant::now()).unwrap();
        let mut lost = hub.start(&node, JobId([1; 16]), job(1)).unwrap();
        let second = hub.arrive(node, &end, Instant::now()).unwrap();
        assert!(first.close.is_cancelled());
        assert!(lost.blocking_recv().is_none());
        let mut kept = hub.start(&node, JobId([2; 16]), job(1)).unwrap();
        hub.leave(&node, first.session);
        hub.news(first.session, &[2; 16], 1, News::Yielding);
        hub.news(second.session, &[2; 16], 1, News::End(End::default()));
        assert!(matches!(kept.blocking_recv(), Some(News::End(_))));
    }

    #[test]
    fn the_third_take_over_of_a_living_link_within_a_minute_is_refused() {
        let hub = Hub::new(1, BEAT);
        let end = CancellationToken::new();
        let begin = Instant::now();
        // Seconds at which the node comes; before that, whether its last link beats until then.
        for (at, beats, let_in) in [
            (0, false, true),
            (2, true, true),
            (4, true, true),
            (6, true, false),
            (7, true, false),
            // A silent link is a dead one, and its node comes back as often as it must.
            (20, false, true),
            (22, true, false),
            // The first take-over is a minute old.
            (62, true, true),
            (63, true, false),
            (64, true, true),
        ] {
            let now = begin + Duration::from_secs(at);
            if beats {
                let session = hub.meeting().links[&number(1)].session;
                hub.beat(&number(1), session, 1, now);
            }
            assert_eq!(hub.arrive(number(1), &end, now).is_ok(), let_in, "at {at} s");
        }
    }
}
