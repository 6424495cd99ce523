//! The table of rules, causes before consequences.

use super::rule::Rule;

/// Every rule. The order is the precedence: a finding can be explained by those of rules before it.
pub static RULES: &[Rule] = &[
    super::revision_reuse::RULE,
    super::revision_rewind::RULE,
    super::split_timeline::RULE,
    super::lost_write::RULE,
    super::broken_compare::RULE,
    super::identity_break::RULE,
    super::stale_consistent_read::RULE,
    super::below_minimum::RULE,
    super::wrong_snapshot::RULE,
    super::torn_snapshot::RULE,
    super::false_compaction::RULE,
    super::delete_version::RULE,
    super::bad_initial_state::RULE,
    super::watch_prehistory::RULE,
    super::watch_filter::RULE,
    super::watch_before_write::RULE,
    super::watch_duplicate::RULE,
    super::watch_reorder::RULE,
    super::watch_split::RULE,
    super::false_progress::RULE,
    super::watch_gap::RULE,
    super::watch_type::RULE,
    super::watch_prev_value::RULE,
    super::monotonic_reads::RULE,
    super::read_your_writes::RULE,
    super::monotonic_writes::RULE,
    super::writes_follow_reads::RULE,
    super::unsafe_first_read::RULE,
    super::unsafe_relist::RULE,
    super::resume_backwards::RULE,
    super::resume_from_item::RULE,
    super::ignored_gone::RULE,
    super::relist_gap::RULE,
    super::legacy_exact_limit::RULE,
    super::inconsistent_continue::RULE,
    super::name_reuse::RULE,
    super::blind_write::RULE,
    super::read_skew::RULE,
    super::false_absence::RULE,
    super::stale_premise::RULE,
    super::intermediate_state::RULE,
    super::unfenced_leader::RULE,
    super::ghost_actor::RULE,
    super::dangling_reference::RULE,
    super::overlapping_lives::RULE,
    super::double_bind::RULE,
    super::dead_binding::RULE,
    super::premature_gc::RULE,
    super::duplicate_child::RULE,
    super::double_allocation::RULE,
    super::linearizability::RULE,
];

/// The rule with a slug.
pub fn find(slug: &str) -> Option<&'static Rule> {
    RULES.iter().find(|r| r.slug == slug)
}
