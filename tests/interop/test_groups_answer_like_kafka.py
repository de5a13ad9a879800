"""The same requests about groups to Apache Kafka 4.4 and to Tarry: the answers must agree.

Every field is compared, in every version; left out are sentences, addresses, orders that Kafka
leaves to its hashing, and what members were assigned in a generation that is over, which Kafka
goes on to show.  Ids are numbered in the order in which they are seen.

A group of which nothing is left is no group here; Kafka keeps it Empty until it looks at ages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.broker_process import wait_until
from tests.support.interop.both_brokers import RUN, wait_until_led
from tests.support.patience import PATIENCE_S
from tests.support.raw_client import RawClient

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.message import ZERO_UUID, Message
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest
from tarry.protocol.messages.describe_groups import DescribeGroupsRequest
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tarry.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tarry.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tarry.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tarry.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tarry.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tarry.simulation.by_hand import BrokerByHand, ClientByHand

ORDERS = f"{RUN}-orders-of-groups"
NOBODYS_ID = b"\x07" * 16
IDENTITY = re.compile(r".*-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LEFT_OUT = (
    "throttle_time_ms",
    "error_message",
    "client_id",
    "client_host",
    "unknown_tagged_fields",
)


class KafkaPeer:
    """A connection for every request, so that none waits behind another."""

    def __init__(self, address: str) -> None:
        self.topic_id = ZERO_UUID
        self.port = int(address.rpartition(":")[2])

    def send(self, key: int, version: int, request: Message) -> Callable[[], Message]:
        client = RawClient(self.port)
        client.socket.sendall(client.encode(key, version, request))

        def answer() -> Message:
            found = client.answer(key, version)
            client.close()
            return found

        return answer


class TarryPeer:
    """The same over a broker by hand."""

    def __init__(self) -> None:
        self.topic_id = ZERO_UUID
        self.hand = BrokerByHand({"group.initial.rebalance.delay.ms": "0"})

    def send(self, key: int, version: int, request: Message) -> Callable[[], Message]:
        client: ClientByHand = self.hand.connect()
        client.send(key, version, request)

        def answer() -> Message:
            self.hand.settle()
            (found,) = client.answers()
            return found

        return answer


class Script:
    """Asks one peer, and keeps what it says with every member id as a number."""

    def __init__(self, peer: KafkaPeer | TarryPeer) -> None:
        self.peer = peer
        self.said: list[object] = []
        self._numbers: dict[str, str] = {}

    def keep(self, what: str, answer: Message) -> Any:
        self.said.append((what, self._plain(answer)))
        return answer

    def ask(self, what: str, key: int, version: int, request: Message) -> Any:
        return self.keep(f"{what} v{version}", self.peer.send(key, version, request)())

    def _plain(self, value: Any) -> object:
        if isinstance(value, list | tuple):
            return sorted((self._plain(each) for each in value), key=repr)
        if isinstance(value, str):
            if IDENTITY.fullmatch(value):
                return self._numbers.setdefault(value, f"member {len(self._numbers)}")
            return value.removeprefix(f"{RUN}-")
        if not isinstance(value, Message | object) or isinstance(value, bytes | int | None):
            return value
        fields = {name: getattr(value, name) for name in names_of(value) if name not in LEFT_OUT}
        if fields.get("group_state") not in (None, "Stable"):
            fields["members"] = [each.member_id for each in value.members]
        if fields.get("topic_id") == self.peer.topic_id:
            fields["topic_id"] = "the topic's"
        if "error_code" in fields:
            fields["error_code"] = errors.error_name(fields["error_code"])
        return {name: self._plain(each) for name, each in fields.items()}

    # --- Requests.

    def join(
        self,
        group: str,
        version: int,
        what: str = "join",
        protocols: tuple[str, ...] = ("range",),
        **terms: Any,
    ) -> Any:
        request = join_request(group, version, protocols, **terms)
        return self.ask(what, api_keys.JOIN_GROUP, version, request)

    def sync(
        self,
        group: str,
        member_id: str,
        generation_id: int,
        version: int = 5,
        assignments: dict[str, bytes] | None = None,
        what: str = "sync",
        **terms: Any,
    ) -> Any:
        if version >= 5:
            terms = {"protocol_type": "consumer", "protocol_name": "range", **terms}
        request = SyncGroupRequest(
            group_id=f"{RUN}-{group}",
            generation_id=generation_id,
            member_id=member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=data)
                for name, data in (assignments or {}).items()
            ],
            **terms,
        )
        return self.ask(what, api_keys.SYNC_GROUP, version, request)

    def heartbeat(
        self, group: str, member_id: str, generation_id: int, version: int = 4, **terms: Any
    ) -> Any:
        request = HeartbeatRequest(
            group_id=f"{RUN}-{group}",
            generation_id=generation_id,
            member_id=member_id,
            **terms,
        )
        return self.ask("heartbeat", api_keys.HEARTBEAT, version, request)

    def leave(self, group: str, *members: tuple[str, str | None], version: int = 5) -> None:
        request = LeaveGroupRequest(group_id=f"{RUN}-{group}")
        if version >= 3:
            request.members = [
                MemberIdentity(member_id=member_id, group_instance_id=instance_id)
                for member_id, instance_id in members
            ]
        else:
            request.member_id = members[0][0]
        self.ask("leave", api_keys.LEAVE_GROUP, version, request)

    def describe(self, group: str, version: int = 6) -> None:
        request = DescribeGroupsRequest(groups=[f"{RUN}-{group}"])
        self.ask("describe", api_keys.DESCRIBE_GROUPS, version, request)

    def commit(
        self, group: str, generation_id: int, member_id: str, version: int = 9, **terms: Any
    ) -> None:
        rows = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=5)
            for index in (0, 9)
        ]
        request = OffsetCommitRequest(
            group_id=f"{RUN}-{group}",
            generation_id_or_member_epoch=generation_id,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(name=ORDERS, partitions=rows)],
            **terms,
        )
        self.ask("commit", api_keys.OFFSET_COMMIT, version, request)

    def fetch(self, group: str, version: int, topics: dict[str, list[int]] | None) -> None:
        group_id = f"{RUN}-{group}"
        request: OffsetFetchRequest
        if version >= 8:
            asked = OffsetFetchRequestGroup(group_id=group_id, topics=None)
            if topics is not None:
                asked.topics = [
                    OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                    for name, indexes in topics.items()
                ]
            request = OffsetFetchRequest(groups=[asked])
        else:
            request = OffsetFetchRequest(group_id=group_id, topics=None)
            if topics is not None:
                request.topics = [
                    OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                    for name, indexes in topics.items()
                ]
        self.ask("fetch", api_keys.OFFSET_FETCH, version, request)

    def commit_by_ids(self, group: str, generation_id: int, member_id: str) -> None:
        """Commit for the topic, for an id of no topic, and for no id."""
        rows = [OffsetCommitRequestPartition(index, 5) for index in (0, 9)]
        ids = (self.peer.topic_id, NOBODYS_ID, ZERO_UUID)
        request = OffsetCommitRequest(
            group_id=f"{RUN}-{group}",
            generation_id_or_member_epoch=generation_id,
            member_id=member_id,
            topics=[OffsetCommitRequestTopic(topic_id=each, partitions=rows) for each in ids],
        )
        self.ask("commit", api_keys.OFFSET_COMMIT, 10, request)

    def fetch_by_ids(self, group: str, indexes: list[int] | None) -> None:
        """Fetch likewise; None: all topics."""
        asked = OffsetFetchRequestGroup(group_id=f"{RUN}-{group}", topics=None)
        if indexes is not None:
            ids = (self.peer.topic_id, NOBODYS_ID, ZERO_UUID)
            asked.topics = [OffsetFetchRequestTopics("", each, indexes) for each in ids]
        self.ask("fetch", api_keys.OFFSET_FETCH, 10, OffsetFetchRequest(groups=[asked]))

    def delete_offsets(self, group: str, topics: dict[str, list[int]]) -> None:
        request = OffsetDeleteRequest(
            group_id=f"{RUN}-{group}",
            topics=[
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                    ],
                )
                for name, indexes in topics.items()
            ],
        )
        self.ask("delete offsets", api_keys.OFFSET_DELETE, 0, request)

    def delete(self, *groups: str) -> None:
        request = DeleteGroupsRequest(groups_names=[f"{RUN}-{group}" for group in groups])
        self.ask("delete", api_keys.DELETE_GROUPS, 2, request)

    def wait_for_rebalance(self, group: str, member_id: str, generation_id: int) -> None:
        """Until somebody else's join has arrived, which this member hears of."""

        def look() -> str:
            request = HeartbeatRequest(
                group_id=f"{RUN}-{group}", generation_id=generation_id, member_id=member_id
            )
            answer = self.peer.send(api_keys.HEARTBEAT, 4, request)()
            assert isinstance(answer, HeartbeatResponse)
            return "yes" if answer.error_code == errors.REBALANCE_IN_PROGRESS else ""

        wait_until(look, "a rebalance")


def names_of(value: object) -> list[str]:
    """The fields of a message."""
    # Compiled messages have neither a dictionary nor slots to ask.
    return [
        name
        for name in dir(value)
        if not name.startswith("_") and not callable(getattr(value, name))
    ]


def join_request(
    group: str, version: int, protocols: tuple[str, ...], **terms: Any
) -> JoinGroupRequest:
    settled = {
        "session_timeout_ms": PATIENCE_S * 1_000,
        "rebalance_timeout_ms": PATIENCE_S * 1_000 if version >= 1 else -1,
        "protocol_type": "consumer",
        **terms,
    }
    return JoinGroupRequest(
        group_id=f"{RUN}-{group}" if group else "",
        protocols=[JoinGroupRequestProtocol(name=name, metadata=b"m") for name in protocols],
        **settled,
    )


# --- What is asked.


def whole_lives(script: Script) -> None:
    """One member from its first join to its leave, in every version."""
    for version in range(10):
        group = f"life-{version}"
        joined = script.join(group, version)
        if joined.error_code == errors.MEMBER_ID_REQUIRED:
            joined = script.join(group, version, member_id=joined.member_id)
        member_id = joined.member_id
        script.sync(group, member_id, 1, max(0, min(version, 5) - 1), {member_id: b"mine"})
        script.heartbeat(group, member_id, 1, min(version, 4))
        script.describe(group, min(version, 6))
        script.join(group, version, "the leader again", member_id=member_id)
        script.leave(group, (member_id, None), version=min(version, 5))
        script.describe(group, min(version, 6))
        script.heartbeat(group, member_id, 2, min(version, 4))


def strangers(script: Script) -> None:
    """Groups that are not there, and joins that are refused."""
    for version in (0, 4, 9):
        script.join("nowhere", version, member_id="stranger")
    for version in (0, 3, 5):
        script.sync("nowhere", "stranger", 1, version)
        script.heartbeat("nowhere", "stranger", 1, min(version, 4))
        script.leave("nowhere", ("stranger", None), version=version)
        script.describe("nowhere", version)
    script.leave("nowhere", ("", None), ("", "instance"))
    for version in (0, 3, 5, 7, 9):
        # Each in a group of its own: Kafka keeps an Empty one of some that it refuses.
        script.join(f"short-{version}", version, "short session", session_timeout_ms=1)
        script.join(f"no-protocols-{version}", version, "no protocols", ())
        script.join(f"no-type-{version}", version, "no type", protocol_type="")
        script.join("", version, "no group")
    for version in (2, 8, 9):
        script.commit("nowhere", 3, "stranger", version)
    script.delete_offsets("nowhere", {ORDERS: [0]})
    script.delete("nowhere", "nowhere")


def wrong_words(script: Script) -> None:
    """A Stable group, and requests that are wrong in one thing."""
    joined = script.join("stable", 3)
    member_id = joined.member_id
    script.sync("stable", member_id, 1, 3, {member_id: b"mine"})
    for generation_id, name in (
        (1, "no"),
        (2, member_id),
        (0, member_id),
        (-1, member_id),
        (1, ""),
    ):
        script.heartbeat("stable", name, generation_id)
        script.sync("stable", name, generation_id)
        for version in (2, 7, 9):
            script.commit("stable", generation_id, name, version)
    script.commit("stable", -1, "")
    script.commit("stable", 1, member_id)
    script.commit("stable", 1, member_id, group_instance_id="instance")
    script.sync("stable", member_id, 1)
    script.sync("stable", member_id, 1, protocol_name="other")
    script.sync("stable", member_id, 1, protocol_type="connect")
    script.sync("stable", member_id, 1, group_instance_id="instance")
    script.heartbeat("stable", member_id, 1, group_instance_id="instance")
    script.join("stable", 9, "nothing in common", ("other",))
    script.join("stable", 9, "another type", protocol_type="connect")
    script.join("stable", 5, member_id=member_id, group_instance_id="instance")
    script.delete_offsets("stable", {ORDERS: [0, 9], "nowhere": [0]})
    script.delete("stable")


def static_members(script: Script) -> None:
    """One that comes back under three versions, and whoever had its place before."""
    joined = script.join("static", 5, group_instance_id="one")
    member_id = joined.member_id
    script.sync("static", member_id, 1, assignments={member_id: b"mine"}, group_instance_id="one")
    for version in (5, 8, 9):
        again = script.join("static", version, "came back", group_instance_id="one")
        script.heartbeat("static", member_id, 1, group_instance_id="one")
        script.sync("static", member_id, 1, group_instance_id="one")
        script.commit("static", 1, member_id, group_instance_id="one")
        script.join("static", version, member_id=member_id, group_instance_id="one")
        script.leave("static", (member_id, "one"))
        member_id = again.member_id
        script.sync("static", member_id, 1, group_instance_id="one")
    script.describe("static")
    script.leave("static", ("", "two"), ("", "one"), ("nobody", None))
    script.describe("static")


def a_second_member(script: Script) -> None:
    """A rebalance from its beginning to the next one's end."""
    first = script.join("two", 3).member_id
    script.sync("two", first, 1, 3, {first: b"a"})
    request = join_request("two", 3, ("range",))
    second_join = script.peer.send(api_keys.JOIN_GROUP, 3, request)
    script.wait_for_rebalance("two", first, 1)
    script.heartbeat("two", first, 1)
    script.sync("two", first, 1)
    script.commit("two", 1, first)
    first_join = script.peer.send(
        api_keys.JOIN_GROUP, 9, join_request("two", 9, ("range",), member_id=first)
    )
    second_answer = script.keep("the second", second_join())
    assert isinstance(second_answer, JoinGroupResponse)
    second = second_answer.member_id
    script.keep("the first", first_join())
    script.describe("two")
    script.heartbeat("two", first, 2)
    script.heartbeat("two", second, 1)
    script.commit("two", 2, first)
    script.join("two", 9, "a leader's lost answer", member_id=first)
    script.join("two", 9, "a lost answer", member_id=second)
    script.sync("two", first, 2, assignments={second: b"b", "stranger": b"s"})
    script.sync("two", second, 2)
    script.describe("two")
    script.join("two", 9, "nothing new", member_id=second)
    request = join_request("two", 9, ("other", "range"), member_id=second)
    changed = script.peer.send(api_keys.JOIN_GROUP, 9, request)
    script.wait_for_rebalance("two", first, 2)
    script.leave("two", (first, None))
    script.keep("alone", changed())
    pending = script.join("two", 9, "an id").member_id
    script.heartbeat("two", pending, 3)
    script.sync("two", pending, 3)
    script.commit("two", 3, pending)
    script.leave("two", (pending, None))
    script.leave("two", (pending, None))


def offsets_by_topic_id(script: Script) -> None:
    """Commits and fetches of version 10: ids of a topic, of none, and the id of zeros."""
    for generation_id, member_id in ((-1, ""), (3, "stranger")):
        script.commit_by_ids("by-id", generation_id, member_id)
        script.fetch_by_ids("by-id", [0, 1, 9])
        script.fetch_by_ids("by-id", None)
        script.fetch_by_ids("nobody", [0])
        script.fetch_by_ids("nobody", None)
        script.fetch("by-id", 9, None)
    script.fetch_by_ids("by-id", [])
    script.commit("by-name", -1, "")
    script.fetch_by_ids("by-name", None)
    script.fetch_by_ids("by-name", [0, 1])


def offsets(script: Script) -> None:
    """Commits without members, and every way to fetch them."""
    for version in range(2, 10):
        script.commit("simple", -1, "", version)
    for version in range(1, 10):
        script.fetch("simple", version, {ORDERS: [0, 1, 9], "nowhere": [0]})
        script.fetch("nobody", version, {ORDERS: [0]})
        script.fetch("simple", version, {})
        if version >= 2:
            script.fetch("simple", version, None)
            script.fetch("nobody", version, None)
    script.describe("simple")
    script.delete_offsets("simple", {ORDERS: [1, 9], "nowhere": [0]})
    script.fetch("simple", 9, None)
    script.delete("simple", "nobody")
    script.describe("simple")


# --- The tests.


@pytest.fixture(scope="module")
def kafka(apache_kafka: str) -> KafkaPeer:
    peer = KafkaPeer(apache_kafka)
    prepare(peer)
    return peer


@pytest.fixture(scope="module")
def tarry() -> TarryPeer:
    peer = TarryPeer()
    prepare(peer)
    return peer


def prepare(peer: KafkaPeer | TarryPeer) -> None:
    """A topic, and a coordinator that serves all groups."""
    topic = CreatableTopic(name=ORDERS, num_partitions=4, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=PATIENCE_S * 1_000)
    answer = peer.send(api_keys.CREATE_TOPICS, 7, request)()
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code == errors.NONE
    peer.topic_id = answer.topics[0].topic_id
    wait_until_led(lambda key, version, request: peer.send(key, version, request)(), ORDERS)

    def look() -> str:
        request = FindCoordinatorRequest(key=RUN, key_type=0)
        found = peer.send(api_keys.FIND_COORDINATOR, 3, request)()
        assert isinstance(found, FindCoordinatorResponse)
        if found.error_code != errors.NONE:
            return ""
        asked = [OffsetFetchRequestGroup(group_id=f"{RUN}-{n}", topics=None) for n in range(50)]
        fetched = peer.send(api_keys.OFFSET_FETCH, 9, OffsetFetchRequest(groups=asked))()
        assert isinstance(fetched, OffsetFetchResponse)
        return "" if any(each.error_code for each in fetched.groups) else "yes"

    wait_until(look, "a coordinator")


@pytest.mark.parametrize(
    "scene",
    [
        whole_lives,
        strangers,
        wrong_words,
        static_members,
        a_second_member,
        offsets,
        offsets_by_topic_id,
    ],
)
def test_both_say_the_same(
    kafka: KafkaPeer, tarry: TarryPeer, scene: Callable[[Script], None]
) -> None:
    theirs, ours = Script(kafka), Script(tarry)

    scene(theirs)
    scene(ours)

    assert len(ours.said) > 15
    assert ours.said == theirs.said
