//! The conformance suite that every backend runs on itself.
//!
//! A backend's tests name a factory once:
//!
//! ```ignore
//! async fn make_store() -> Option<Fixture> { … }
//! colloquy_storage::conformance!(make_store);
//! ```
//!
//! and get one `#[tokio::test]` per case. Each case makes a store of its own. `None` from the factory skips the
//! case (a server that is not there). A backend that cannot have a whole category says so by name:
//! `conformance!(make_store, skip [memory])`.
//!
//! To add a case: write the function in the module of its aggregate, name it in `__conformance_cases!`, and raise
//! [`CASE_COUNT`]. The stamped test `the_suite_is_whole` fails when one of the three is forgotten.

#![allow(clippy::unwrap_used)] // an unwrap here is a case's assertion

pub mod account;
pub mod agent;
pub mod commit;
pub mod compaction;
pub mod compaction_end;
pub mod delivery;
pub mod effect;
mod everything;
mod fixture;
pub mod inbox;
pub mod isolation;
pub mod job;
pub mod job_end;
pub mod key;
pub mod memory;
pub mod receipt;
pub mod session;
pub mod steer;
pub mod stop;
pub mod tenant;
pub mod transcript;
pub mod turn;
pub mod turn_end;

pub use everything::write_everything;
pub use fixture::{DatabaseClock, Fixture, Store, populate};

/// Cases of the whole suite: lowered only on purpose.
pub const CASE_COUNT: usize = 145;

/// Every case by category; `$then!` is called with the arguments in brackets in front of the list.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_cases {
    ($then:ident, [$($arg:tt)*]) => {
        $crate::$then! { [$($arg)*]
            tenant {
                a_tenant_is_created_and_found,
                a_tenants_name_is_taken_once,
                a_tenant_comes_with_its_first_key,
                a_tenant_without_its_first_key_is_none,
                tenants_are_listed_by_creation,
                a_made_up_cursor_is_refused,
            }
            key {
                a_key_is_stored_whole,
                keys_are_listed_by_creation,
                revoking_twice_keeps_the_first_instant,
            }
            agent {
                an_agents_version_grows_with_every_change,
                agents_are_listed_by_id,
            }
            account {
                an_account_is_found_by_its_id_alone,
                an_account_is_replaced_by_id,
                an_accounts_id_and_name_are_taken_once,
                accounts_are_listed_by_channel_and_name,
            }
            session {
                a_session_is_found_by_id_and_key,
                a_patch_changes_what_it_names,
                sessions_are_paged_by_activity,
                sessions_of_one_instant_are_paged_without_loss,
                filters_of_a_list_must_all_match,
                a_reset_starts_over_under_the_same_key,
            }
            transcript {
                notes_are_appended_at_the_head,
                nothing_is_appended_beside_a_running_turn,
                entries_are_paged_both_ways,
                a_page_is_bounded_in_bytes,
                a_window_without_a_compaction_is_everything,
                an_unknown_branch_is_not_found,
                a_transcript_knows_its_session,
            }
            inbox {
                the_first_message_creates_the_session,
                the_state_shows_the_queue,
                a_duplicate_gets_the_first_answer,
                the_dedupe_key_is_the_tenants_own,
                a_refusal_leaves_no_row,
                a_policy_is_stored_once_by_its_id,
                system_events_are_no_activity,
                the_inbox_lists_newest_first,
                texts_with_nul_survive,
                parallel_messages_merge_into_one_turn,
                parallel_duplicates_are_one_message,
            }
            effect {
                a_message_joins_a_waiting_turn,
                a_turn_of_two_senders_has_none,
                a_turn_is_closed_and_moved,
                a_dropped_turn_keeps_its_outcome,
                summaries_of_dropped_turns_lead_the_next,
                an_effect_stops_a_running_turn,
                a_command_is_finished_at_once,
                a_reset_effect_starts_a_transcript,
                a_turn_commits_where_it_was_accepted,
                the_plans_text_replaces_the_messages,
            }
            turn {
                a_claim_binds_the_first_waiting_turn,
                one_turn_runs_at_a_time,
                as_many_turns_run_as_may,
                a_turn_starts_when_due,
                a_claim_is_for_the_workers_agents,
                one_of_parallel_claims_wins,
                a_renewal_confirms_and_extends,
                a_worker_may_ask_for_another_lease,
                a_lease_ends_with_the_longest_turn,
                a_stale_fence_is_refused_everywhere,
                a_view_confirms_and_shows_the_turn,
                staging_is_idempotent_by_number,
                runnable_sessions_are_found_across_tenants,
                a_backlog_hides_nobodys_sessions,
                the_queue_shows_what_runs_and_waits,
            }
            commit {
                a_commit_appends_one_block,
                a_repeated_commit_gets_the_same_answer,
                a_commit_counts_usage,
                a_commit_says_when_the_next_turn_is_due,
                a_commit_writes_jobs,
                watermarks_only_move_forward,
            }
            turn_end {
                a_released_turn_comes_first_after_its_backoff,
                the_last_attempt_fails_for_good,
                a_failed_turn_leaves_its_messages,
                an_unconfirmed_offer_is_not_an_attempt,
                a_lost_lease_is_offered_again,
                the_last_lost_lease_fails_the_turn,
                what_a_lost_attempt_staged_is_kept_as_interrupted,
                a_resumed_turn_goes_on_with_what_was_staged,
                every_change_of_the_queue_moves_the_version,
            }
            stop {
                a_stopping_turn_cannot_commit_but_stage,
                the_deadline_ends_a_stopping_turn,
                stopping_all_empties_the_queue,
                a_commit_that_came_first_stands,
            }
            steer {
                renewals_repeat_a_steer_until_acknowledged,
                a_commit_takes_in_acknowledged_steers,
                a_reoffer_contains_acknowledged_steers,
                a_stopped_turn_ends_its_steers,
            }
            receipt {
                builds_of_a_turn_count_from_one,
                only_the_holder_keeps_receipts,
                a_commit_notes_what_the_provider_counted,
                a_turns_place_is_known_before_and_after_its_end,
                a_calibration_is_set_by_compare_and_set,
            }
            delivery {
                a_delivery_is_offered_whole,
                only_the_accounts_deliveries_are_offered,
                a_route_gets_its_deliveries_in_order,
                a_limit_is_kept,
                an_unknown_end_is_offered_again,
                a_retry_waits_for_its_delay,
                an_ended_delivery_stays_ended,
                a_bound_caller_acks_only_its_accounts_deliveries,
            }
            job {
                a_job_is_stored_whole,
                one_job_of_a_kind_is_active_per_session,
                parallel_enqueues_are_one_job,
                a_due_job_is_published_once,
                a_published_job_that_nobody_starts_is_published_again,
                the_relay_is_fair_between_tenants,
                a_job_runs_under_a_lease,
                jobs_are_listed_newest_first,
            }
            job_end {
                a_lost_run_counts_as_failed,
                a_late_failure_of_a_lost_run_does_not_count_twice,
                five_failed_runs_are_a_dead_letter,
                five_lost_runs_are_a_dead_letter,
                a_done_job_stays_done,
                a_cancelled_job_tells_its_worker,
                a_dead_or_cancelled_job_is_replayed,
            }
            compaction {
                a_compaction_starts_on_a_snapshot,
                one_compaction_runs_at_a_time,
                a_lost_marker_is_taken_over_with_its_chunks,
                an_apply_moves_the_window,
                what_came_meanwhile_stays_verbatim,
                an_apply_is_compare_and_set,
            }
            compaction_end {
                a_second_compaction_stands_on_the_first,
                an_apply_clears_the_watermarks,
                a_failure_leaves_history_untouched,
                nothing_to_do_is_done,
                a_reset_ends_the_compaction,
                a_cancelled_job_loses_its_marker,
            }
            memory {
                a_memory_is_stored_whole,
                a_memory_is_changed,
                a_deleted_memory_is_gone,
                memories_are_listed_newest_first,
                lists_and_searches_keep_to_the_filter,
                a_search_ranks_shared_terms,
                recalls_are_counted,
                an_extraction_happens_once,
                parallel_extractions_apply_one,
                a_reinforced_memory_grows_only,
                a_superseded_memory_is_kept_with_its_end,
            }
            isolation {
                sessions_of_others_do_not_exist,
                transcripts_of_others_do_not_exist,
                turns_of_others_do_not_exist,
                deliveries_of_others_do_not_exist,
                jobs_of_others_do_not_exist,
                memories_of_others_do_not_exist,
                control_data_of_others_does_not_exist,
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_list {
    ([] $($category:ident { $($case:ident),* $(,)? })*) => {
        &[$((stringify!($category), &[$(stringify!($case)),*])),*]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_stamp {
    ([$make:ident] $($category:ident { $($case:ident),* $(,)? })*) => {
        $(
            mod $category {
                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $case() {
                        if super::SKIPPED_CATEGORIES.contains(&stringify!($category)) {
                            println!("skipped: this backend opts out of {}", stringify!($category));
                        } else if let Some(fixture) = super::$make().await {
                            $crate::testsuite::$category::$case(&fixture).await;
                        }
                    }
                )*
            }
        )*
    };
}

/// Stamps the suite onto a backend; see [`testsuite`](crate::testsuite). The factory is an
/// `async fn() -> Option<Fixture>` of the module in which the macro stands.
#[macro_export]
macro_rules! conformance {
    ($make:ident) => { $crate::conformance!($make, skip []); };
    ($make:ident, skip [$($skipped:ident),*]) => {
        const SKIPPED_CATEGORIES: &[&str] = &[$(stringify!($skipped)),*];

        $crate::__conformance_cases!(__conformance_stamp, [$make]);

        #[test]
        fn the_suite_is_whole() {
            $crate::testsuite::assert_whole(SKIPPED_CATEGORIES);
        }
    };
}

/// Cases by category, as the macro stamps them.
pub const CASES: &[(&str, &[&str])] = crate::__conformance_cases!(__conformance_list, []);

/// Source of the modules, in which every public function is a case.
const SOURCES: &[(&str, &str)] = &[
    ("tenant", include_str!("tenant.rs")),
    ("key", include_str!("key.rs")),
    ("agent", include_str!("agent.rs")),
    ("account", include_str!("account.rs")),
    ("session", include_str!("session.rs")),
    ("transcript", include_str!("transcript.rs")),
    ("inbox", include_str!("inbox.rs")),
    ("effect", include_str!("effect.rs")),
    ("turn", include_str!("turn.rs")),
    ("commit", include_str!("commit.rs")),
    ("turn_end", include_str!("turn_end.rs")),
    ("stop", include_str!("stop.rs")),
    ("steer", include_str!("steer.rs")),
    ("receipt", include_str!("receipt.rs")),
    ("delivery", include_str!("delivery.rs")),
    ("job", include_str!("job.rs")),
    ("job_end", include_str!("job_end.rs")),
    ("compaction", include_str!("compaction.rs")),
    ("compaction_end", include_str!("compaction_end.rs")),
    ("memory", include_str!("memory.rs")),
    ("isolation", include_str!("isolation.rs")),
];

/// Panics when a case was written but is not stamped, when the suite has shrunk, or when a backend opts out of a
/// category that does not exist. Prints what is stamped.
pub fn assert_whole(skipped: &[&str]) {
    for name in skipped {
        assert!(
            CASES.iter().any(|(category, _)| category == name),
            "no category is named {name}"
        );
    }
    for (category, source) in SOURCES {
        let written: Vec<&str> = source
            .lines()
            .filter_map(|line| line.strip_prefix("pub async fn "))
            .filter_map(|rest| rest.split('(').next())
            .collect();
        let stamped = CASES
            .iter()
            .find(|(name, _)| name == category)
            .map_or(&[][..], |(_, cases)| *cases);
        let forgotten: Vec<_> = written.iter().filter(|case| !stamped.contains(case)).collect();
        assert!(
            forgotten.is_empty(),
            "{category}: written but not stamped: {forgotten:?}"
        );
        println!("{category}: {}", stamped.join(", "));
    }
    assert_eq!(
        CASES.len(),
        SOURCES.len(),
        "a category has no source to compare with"
    );
    assert_eq!(
        CASES.iter().map(|(_, cases)| cases.len()).sum::<usize>(),
        CASE_COUNT,
        "the suite has changed size"
    );
}
