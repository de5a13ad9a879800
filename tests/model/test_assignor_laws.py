"""Laws of the assignors, whatever a group looks like and however it changes."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.assignors import ASSIGNORS
from tarry.client.core.group.assignment.consumer_protocol import SubscribedMember, Subscription

NAMES = ["a", "b", "c", "d", "e", "f"]
TOPICS = ["t0", "t1", "t2"]

counts_of_topics = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 6), min_size=1)
wishes = st.dictionaries(
    st.sampled_from(NAMES), st.sets(st.sampled_from(TOPICS), min_size=1), min_size=1
)

# Rounds of a cooperative group need no more than this to come to rest.
ROUNDS_MAX = 3


def group_of(
    wanted: dict[str, set[str]], owned: dict[str, list[TopicPartition]], generation_id: int
) -> list[SubscribedMember]:
    members = []
    for name in sorted(wanted):
        topics = sorted(wanted[name])
        has = [place for place in owned.get(name, []) if place[0] in wanted[name]]
        members.append(SubscribedMember(name, None, Subscription(topics, None, has, generation_id)))
    return members


def topics_in(wanted: dict[str, set[str]], counts: dict[str, int]) -> dict[str, int]:
    return {
        topic: count
        for topic, count in counts.items()
        if any(topic in topics for topics in wanted.values())
    }


@settings(max_examples=80, deadline=None)
@given(wishes, counts_of_topics, st.sampled_from(sorted(ASSIGNORS)))
def test_every_wanted_partition_has_one_reader_who_wants_it(
    wanted: dict[str, set[str]], counts: dict[str, int], name: str
) -> None:
    counts = topics_in(wanted, counts)

    assignment = ASSIGNORS[name].assign(group_of(wanted, {}, -1), counts)

    places = sorted(place for given in assignment.values() for place in given)
    assert places == sorted((topic, i) for topic in counts for i in range(counts[topic]))
    for member_id, given_places in assignment.items():
        assert all(topic in wanted[member_id] for topic, _ in given_places)


@settings(max_examples=80, deadline=None)
@given(st.lists(wishes, min_size=2, max_size=4), counts_of_topics)
def test_a_cooperative_group_never_owns_a_partition_twice_and_comes_to_rest(
    changes: list[dict[str, set[str]]], counts: dict[str, int]
) -> None:
    owned: dict[str, list[TopicPartition]] = {}
    generation_id = 0
    for wanted in changes:
        known = topics_in(wanted, counts)
        # Who is gone or does not want a topic any more has given it up.
        owned = {
            name: [place for place in owned.get(name, []) if place[0] in wanted[name]]
            for name in wanted
        }
        for _ in range(ROUNDS_MAX):
            generation_id += 1
            members = group_of(wanted, owned, generation_id)
            target = ASSIGNORS["cooperative-sticky"].assign(members, known)
            # Members hear of it one after the other: a newcomer before the old owner.
            for name in wanted:
                others = [place for other in owned if other != name for place in owned[other]]
                assert not any(place in others for place in target[name])
            is_at_rest = all(sorted(owned[name]) == sorted(target[name]) for name in wanted)
            owned = target
            if is_at_rest:
                break
        places = sorted(place for given_places in owned.values() for place in given_places)
        assert places == sorted((topic, i) for topic in known for i in range(known[topic]))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(0, 12), st.integers(0, 6))
def test_members_who_want_the_same_differ_by_one_at_most(
    member_count: int, partition_count: int, gone: int
) -> None:
    counts = {"t": partition_count}
    wanted = {name: {"t"} for name in NAMES[:member_count]}
    owned = ASSIGNORS["cooperative-sticky"].assign(group_of(wanted, {}, -1), counts)
    left = {name: wanted[name] for name in sorted(wanted)[gone % member_count :]}

    again = ASSIGNORS["cooperative-sticky"].assign(group_of(left, owned, 1), counts)

    sizes = sorted(len(places) for places in again.values())
    assert sizes[-1] - sizes[0] <= 1
    for name in left:
        # Nothing of the living moved: the dead left enough.
        assert [place for place in owned[name] if place not in again[name]] == []
