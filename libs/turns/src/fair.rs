//! Whose turn starts next when many wait: weighted fair between tenants, people before housekeeping.

use colloquy_types::queue::Lane;
use colloquy_types::{SessionId, TenantId, UnixMillis};
use std::collections::BTreeMap;

/// Places kept for the lanes below `user` while people wait: one in this many, of the places and of the starts.
const RESERVED_ONE_IN: u32 = 20;
/// Waiting that lifts a lane by one rank, in milliseconds.
const AGING_MS: i64 = 60_000;
/// What a start costs a tenant of weight 1; divisible by the usual weights.
const COST: u64 = 5_040_000;
const MAX_WEIGHT: u32 = 1_000;

/// A session whose first waiting turn is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub tenant: TenantId,
    pub session: SessionId,
    /// A subagent's turn has its root's.
    pub lane: Lane,
    pub due: UnixMillis,
    /// A subagent's turn: it runs on its root's place, so no cap holds it and it takes no place.
    pub on_roots_place: bool,
}

/// What a tenant may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Starts relative to those of other tenants while both wait, 1 to 1,000.
    pub weight: u32,
    /// Turns at the same time.
    pub cap: u32,
}

#[derive(Debug, Clone, Default)]
struct Tenant {
    /// What it has used, scaled by its weight.
    used: u64,
    running: u32,
    housekeeping: u32,
}

/// The account of who has had how much. Equal calls make equal choices: no clock, no randomness.
#[derive(Debug, Clone)]
pub struct FairChoice {
    places: u32,
    tenants: BTreeMap<TenantId, Tenant>,
    /// Use of the tenant that was served last: one that comes back starts there, idleness earns no credit.
    level: u64,
    /// Starts of people since housekeeping had one while it waited.
    passed_over: u32,
}

impl FairChoice {
    /// `places` = turns that run at the same time, all tenants together.
    pub fn new(places: u32) -> Self {
        Self {
            places,
            tenants: BTreeMap::new(),
            level: 0,
            passed_over: 0,
        }
    }

    /// Picks the candidate that starts next and gives it its place; `None` when nobody may start. One that did not
    /// start after all gives its place back by [`ended`](Self::ended).
    pub fn start(&mut self, candidates: &[Candidate], share: impl Fn(TenantId) -> Share) -> Option<usize> {
        let taken: u32 = self.tenants.values().map(|tenant| tenant.running).sum();
        let may = |candidate: &Candidate| {
            candidate.on_roots_place
                || (taken < self.places && self.running(candidate.tenant) < share(candidate.tenant).cap)
        };
        let eligible = (0..candidates.len()).filter(|index| may(&candidates[*index]));
        let (people, housekeeping): (Vec<usize>, Vec<usize>) =
            eligible.partition(|index| candidates[*index].lane == Lane::User);
        let contended = !people.is_empty() && !housekeeping.is_empty();
        let class = if people.is_empty() || (contended && self.reserve_is_open()) {
            housekeeping
        } else {
            people
        };
        let chosen = class
            .into_iter()
            .min_by_key(|index| self.rank(&candidates[*index]))?;
        let candidate = &candidates[chosen];
        self.record(candidate, share(candidate.tenant).weight, contended);
        Some(chosen)
    }

    fn record(&mut self, candidate: &Candidate, weight: u32, contended: bool) {
        let is_person = candidate.lane == Lane::User;
        if !is_person {
            self.passed_over = 0;
        } else if contended {
            self.passed_over = self.passed_over.saturating_add(1);
        }
        if candidate.on_roots_place {
            return;
        }
        let tenant = self.tenants.entry(candidate.tenant).or_default();
        self.level = tenant.used.max(self.level);
        tenant.used = self
            .level
            .saturating_add(COST / u64::from(weight.clamp(1, MAX_WEIGHT)));
        tenant.running += 1;
        tenant.housekeeping += u32::from(!is_person);
    }

    /// Records that its turn ended.
    pub fn ended(&mut self, candidate: &Candidate) {
        if candidate.on_roots_place {
            return;
        }
        if let Some(tenant) = self.tenants.get_mut(&candidate.tenant) {
            tenant.running = tenant.running.saturating_sub(1);
            let housekeeping = u32::from(candidate.lane != Lane::User);
            tenant.housekeeping = tenant.housekeeping.saturating_sub(housekeeping);
        }
        // One that has nothing running and is not ahead of the others is as good as new.
        let level = self.level;
        self.tenants
            .retain(|_, tenant| tenant.running > 0 || tenant.used > level);
    }

    /// Turns of a tenant that take a place now.
    pub fn running(&self, tenant: TenantId) -> u32 {
        self.tenants.get(&tenant).map_or(0, |tenant| tenant.running)
    }

    fn reserve_is_open(&self) -> bool {
        let housekeeping: u32 = self.tenants.values().map(|tenant| tenant.housekeeping).sum();
        self.passed_over + 1 >= RESERVED_ONE_IN && housekeeping < (self.places / RESERVED_ONE_IN).max(1)
    }

    /// Least use first, then the longest wait; below `user` waiting makes up for the lane. The ids only break ties.
    fn rank(&self, candidate: &Candidate) -> (u64, i64, TenantId, SessionId) {
        let used = self
            .tenants
            .get(&candidate.tenant)
            .map_or(0, |tenant| tenant.used)
            .max(self.level);
        let aged = candidate.due.plus(candidate.lane as i64 * AGING_MS);
        (used, aged.0, candidate.tenant, candidate.session)
    }
}
