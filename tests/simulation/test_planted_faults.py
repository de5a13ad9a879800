"""The simulation's grade: each planted fault is found within as many seeds as run in `make test`.

The faults replace functions of the product in processes of their own, two at a time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

from tarry.simulation.run import run_seed

SEEDS = {"records": 200, "groups": 300, "clients": 100, "members": 100}
PROGRAMS = {
    "records": "planted_faults.py",
    "groups": "planted_group_faults.py",
    "clients": "planted_client_faults.py",
    "members": "planted_client_faults.py",
}

RECORDS = (
    "acknowledge_before_the_flush",
    "ignore_a_failed_flush",
    "keep_a_torn_tail",
    "cut_a_flushed_byte",
    "recompress_without_the_producer",
    "know_one_batch_of_a_producer",
    "forget_producers_in_a_restart",
    "high_watermark_past_the_flush",
    "keep_the_leader_epoch_over_a_crash",
    "trust_the_index_after_a_crash",
    "lose_the_wake_up_of_a_fetch",
    "answer_a_fetch_only_when_it_expires",
    "apply_metadata_before_it_is_durable",
    "answer_a_duplicate_before_the_original_is_durable",
    "show_a_log_start_that_is_not_durable",
    "forget_the_names_of_a_killed_life",
    "start_uncleanly_without_taking_the_marker_away",
    "count_a_stop_of_the_process_as_waiting",
    "answer_a_deletion_of_records_before_it_is_durable",
    "delete_one_record_more_than_was_asked",
    "serve_damaged_batches",
    "read_on_behind_damage",
    "forget_changed_settings_in_a_restart",
    "handle_requests_while_one_before_them_waits",
    "count_a_produce_without_an_answer_as_done_at_once",
    "keep_the_place_of_answers_that_have_left",
    "name_an_epoch_in_which_nothing_was_written",
    "keep_what_waits_for_a_lost_connection",
    "keep_the_watch_of_a_lost_connection",
)

GROUPS = (
    "commit_without_the_generation_check",
    "leave_static_fencing_out",
    "tell_a_fenced_member_that_it_is_unknown",
    "answer_a_commit_before_it_is_durable",
    "answer_a_deletion_before_it_is_durable",
    "sync_completes_at_the_leaders_word",
    "keep_a_stale_heartbeat_operation",
    "forget_pending_members",
    "let_pending_ids_expire_never",
    "lose_the_tombstones_of_a_deletion",
    "load_what_was_committed_first",
    "compaction_drops_the_last_value",
    "compaction_forgets_what_a_tombstone_deletes",
    "apply_an_offset_before_it_is_durable",
    "remove_members_for_the_brokers_own_absence",
    "forget_sessions_in_a_restart",
    "end_a_join_phase_with_the_first_who_rejoins",
    "serve_the_groups_of_a_damaged_log",
    "take_commits_of_nobody_into_a_working_group",
    "count_the_age_of_offsets_from_their_commits",
)

CLIENTS = (
    "number_a_batch_anew_when_it_is_repeated",
    "count_a_lost_answer_as_an_acknowledgement",
    "take_the_answer_for_the_batch_of_another_partition",
    "send_the_next_batch_while_one_is_repeated",
    "count_a_fetch_that_left_before_a_seek",
)

MEMBERS = (
    "commit_what_was_only_fetched",
    "revoke_without_a_commit",
    "take_a_refused_heartbeat_for_a_good_one",
    "hand_out_without_knowing_the_coordinators_mind",
    "begin_at_the_end_instead_of_the_commit",
    "begin_anew_at_every_assignment",
)

FAULTS = [
    (workload, name)
    for workload, names in (
        ("records", RECORDS),
        ("groups", GROUPS),
        ("clients", CLIENTS),
        ("members", MEMBERS),
    )
    for name in names
]

pytestmark = [pytest.mark.interpreted, pytest.mark.process, pytest.mark.slow]


def search(workload: str, name: str) -> str:
    """The seed and the sentence that the search prints."""
    program = Path(__file__).parents[1] / "support" / "simulation" / PROGRAMS[workload]
    done = subprocess.run(
        [sys.executable, str(program), name, str(SEEDS[workload])],
        env={**os.environ, "TARRY_PURE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def searches(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[str]]]:
    """Search for the faults of all tests that were chosen."""
    chosen = [item.callspec.params for item in request.session.items if item.path == request.path]
    with ThreadPoolExecutor(2) as pool:
        yield {
            params["name"]: pool.submit(search, params["workload"], params["name"])
            for params in chosen
        }


@pytest.mark.parametrize(("workload", "name"), FAULTS)
def test_a_planted_fault_is_found(
    workload: str, name: str, searches: dict[str, Future[str]]
) -> None:
    seed, _, sentence = searches[name].result().partition(" ")

    assert int(seed) >= 1, f"{SEEDS[workload]} seeds do not find it"
    assert sentence
    assert run_seed(int(seed), workload=workload).failure == "", (
        "the seed fails without the fault as well"
    )
