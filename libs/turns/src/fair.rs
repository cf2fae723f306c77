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

    /// The index of the candidate that starts next; `None` when nobody may. `cap` = how many turns a tenant may run
    /// at the same time.
    pub fn choose(&self, candidates: &[Candidate], cap: impl Fn(TenantId) -> u32) -> Option<usize> {
        let taken: u32 = self.tenants.values().map(|tenant| tenant.running).sum();
        let may = |candidate: &Candidate| {
            candidate.on_roots_place
                || (taken < self.places && self.running(candidate.tenant) < cap(candidate.tenant))
        };
        let eligible: Vec<usize> = (0..candidates.len())
            .filter(|index| may(&candidates[*index]))
            .collect();
        let (people, housekeeping): (Vec<usize>, Vec<usize>) = eligible
            .into_iter()
            .partition(|index| candidates[*index].lane == Lane::User);
        let reserved = !housekeeping.is_empty() && self.reserve_is_open();
        let class = if people.is_empty() || reserved {
            housekeeping
        } else {
            people
        };
        class
            .into_iter()
            .min_by_key(|index| self.rank(&candidates[*index]))
    }

    /// Records that the candidate started. `weight` = the tenant's share relative to others, at least 1;
    /// `passed_over` = whether housekeeping that could have started waits on.
    pub fn started(&mut self, candidate: &Candidate, weight: u32, passed_over: bool) {
        let is_person = candidate.lane == Lane::User;
        self.passed_over = match (is_person, passed_over) {
            (true, true) => self.passed_over.saturating_add(1),
            (true, false) => self.passed_over,
            (false, _) => 0,
        };
        if candidate.on_roots_place {
            return;
        }
        let level = self.level;
        let tenant = self.tenants.entry(candidate.tenant).or_default();
        tenant.used = tenant.used.max(level);
        self.level = tenant.used;
        tenant.used = tenant.used.saturating_add(COST / u64::from(weight.max(1)));
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
