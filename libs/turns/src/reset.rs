//! When a policy lets a session start over.

use colloquy_types::UnixMillis;
use colloquy_types::policy::{Daily, ResetRule};
use colloquy_types::queue::ResetReason;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Whether a message now, after the last user activity, opens a new transcript. Whichever expires first.
///
/// Idle needs strictly more than its minutes; the daily boundary belongs to the new day. An hour that does not
/// exist that day fires at the next valid instant, a doubled one at the first.
pub fn due(rule: &ResetRule, last: UnixMillis, now: UnixMillis) -> Option<ResetReason> {
    let idle = rule
        .idle
        .as_ref()
        .map_or(0, |idle| i64::from(idle.minutes) * 60_000);
    if idle > 0 && now.since(last) > idle {
        return Some(ResetReason::Idle);
    }
    let boundary = rule.daily.as_ref().and_then(|daily| boundary(daily, now))?;
    (last < boundary).then_some(ResetReason::Daily)
}

/// The newest daily boundary that is not after `now`; `None` when the zone or the instant is unknown.
fn boundary(daily: &Daily, now: UnixMillis) -> Option<UnixMillis> {
    let zone = TimeZone::get(&daily.time_zone).ok()?;
    let instant = Timestamp::from_millisecond(now.0).ok()?;
    let today = instant.to_zoned(zone.clone()).date();
    let at = |date: jiff::civil::Date| {
        let local = date.at(i8::try_from(daily.at_hour).ok()?, 0, 0, 0);
        // "Compatible": a gap moves forward by its length, a fold takes the first.
        local
            .to_zoned(zone.clone())
            .ok()
            .map(|zoned| UnixMillis(zoned.timestamp().as_millisecond()))
    };
    at(today)
        .filter(|boundary| *boundary <= now)
        .or_else(|| at(today.checked_sub(1.day()).ok()?))
}
