//! Waiting for a session without a herd: those who want the same stand in line, and only the first looks.

use crate::hub::{Hub, Subscriber, lock};
use crate::{Coord, Looked, Ready, TAKEN, Wanted};
use colloquy_types::{Error, Reason, Result, TenantId};
use futures::future::select_all;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How often the first of a line looks without having been hinted: hints may be lost.
const LOOK: Duration = Duration::from_secs(1);
/// With many lines each looks less often, so that an idle process sends at most ten commands a second.
const SPACING: Duration = Duration::from_millis(100);
/// After a fault those in line are told at once instead of each finding out by a time-out of its own.
const FAULT: Duration = Duration::from_millis(500);

struct Line {
    first: Semaphore,
    /// Which tenant is looked at first, in turn.
    turn: AtomicUsize,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            first: Semaphore::new(1),
            turn: AtomicUsize::new(0),
        }
    }
}

/// The lines of this process.
#[derive(Default)]
pub struct Lines {
    lines: Mutex<HashMap<Vec<Wanted>, Weak<Line>>>,
    fault: Mutex<Option<(Instant, Error)>>,
}

impl Lines {
    pub async fn acquire(
        &self,
        coord: &dyn Coord,
        hub: &Hub,
        wanted: &[Wanted],
        wait: Duration,
    ) -> Result<Option<Ready>> {
        let end = Instant::now() + wait;
        let line = self.join(wanted);
        if wait.is_zero() {
            return Ok(match self.look(coord, &line, wanted).await? {
                Looked::Ready(ready) => Some(ready),
                _ => None,
            });
        }
        let Ok(Ok(_first)) = tokio::time::timeout_at(end, line.first.acquire()).await else {
            return Ok(None);
        };
        // Before the first look, so that nothing scheduled after it is missed.
        let mut hints: Vec<_> = wanted.iter().map(|one| hub.schedules(one.tenant)).collect();
        loop {
            hints.iter_mut().for_each(Subscriber::drain);
            let pause = match self.look(coord, &line, wanted).await? {
                Looked::Ready(ready) => return Ok(Some(ready)),
                Looked::Later(due) => due.min(self.interval()),
                Looked::Empty => self.interval(),
            };
            // A due time is rounded down to milliseconds: look right after it, not right before.
            let next = Instant::now() + pause + Duration::from_millis(1);
            hinted(&mut hints, next.min(end)).await;
            if Instant::now() >= end {
                return Ok(None);
            }
        }
    }

    fn join(&self, wanted: &[Wanted]) -> Arc<Line> {
        let mut lines = lock(&self.lines);
        if let Some(line) = lines.get(wanted).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(Line::default());
        lines.insert(wanted.to_vec(), Arc::downgrade(&line));
        line
    }

    fn interval(&self) -> Duration {
        let lines = u32::try_from(lock(&self.lines).len()).unwrap_or(u32::MAX);
        LOOK.max(SPACING.saturating_mul(lines))
    }

    async fn look(&self, coord: &dyn Coord, line: &Line, wanted: &[Wanted]) -> Result<Looked> {
        if let Some((until, error)) = &*lock(&self.fault)
            && *until > Instant::now()
        {
            return Err(error.clone());
        }
        let looked = look_at_all(coord, line, wanted).await;
        if let Err(error) = &looked
            && error.reason == Reason::Dependency
        {
            *lock(&self.fault) = Some((Instant::now() + FAULT, error.clone()));
        }
        looked
    }
}

async fn look_at_all(coord: &dyn Coord, line: &Line, wanted: &[Wanted]) -> Result<Looked> {
    let start = line.turn.fetch_add(1, Ordering::Relaxed);
    let mut later: Option<Duration> = None;
    for place in 0..wanted.len() {
        let one = &wanted[start.wrapping_add(place) % wanted.len()];
        match coord.take(one, TAKEN).await? {
            Looked::Ready(ready) => return Ok(Looked::Ready(ready)),
            Looked::Later(due) => later = Some(later.map_or(due, |known| known.min(due))),
            Looked::Empty => {}
        }
    }
    Ok(later.map_or(Looked::Empty, Looked::Later))
}

async fn hinted(hints: &mut [Subscriber<TenantId, ()>], until: Instant) {
    if hints.is_empty() {
        return tokio::time::sleep_until(until).await;
    }
    let any = select_all(hints.iter_mut().map(|hint| Box::pin(hint.next())));
    let _ = tokio::time::timeout_at(until, any).await;
}
