"""The walk of a partition's row from the answer of etcd's watch to the hosted partition."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import msgspec
import pytest
from tests.support.cluster.leader_scene import TOPIC, LeaderScene

from tarry.base.etcd import EtcdEvent, Put
from tarry.base.partition_row import PartitionRow
from tarry.broker.broker import Broker
from tarry.cluster.rows.rows import Keys, decode_row, encode_row
from tarry.partition.leadership import Leadership

ROOT = Path(__file__).parents[3]
SOURCE = f"{ROOT}/src/tarry/"
# Digits of the row's epochs, which nothing else in the cluster has.
MARK = "76543"
MODULES_MAX = 20


class Walk:
    """Watch of one turn of a broker: which modules have the row in their hands, and as what.

    A module has it if one of its functions takes it, returns it or has it in a variable, in any
    form whose text has the digits of the mark.  The walk ends when a leadership has taken the row.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._is_turn = False
        self.has_ended = False
        self.modules: dict[str, None] = {}
        self.kinds: dict[type, None] = {}

    def profile(self, frame: FrameType, event: str, result: object) -> None:
        code = frame.f_code
        if self.has_ended or not code.co_filename.startswith(SOURCE):
            return
        if code is Broker.turn.__code__ and frame.f_locals["self"] is self._broker:
            self._is_turn = event == "call"
        if not self._is_turn or event not in ("call", "return"):
            return
        self._look(frame, result)
        if event == "return" and code is Leadership.take_row.__code__:
            self.has_ended = True
            # Functions that have not returned yet have it too.
            caller = frame.f_back
            while caller is not None and self._is_turn:
                self._look(caller, None)
                self._is_turn = caller.f_code is not Broker.turn.__code__
                caller = caller.f_back

    def _look(self, frame: FrameType, result: object) -> None:
        values = [value for name, value in frame.f_locals.items() if name != "self"]
        if self._has([*values, result]):
            self.modules[_module(frame.f_code.co_filename)] = None

    def _has(self, value: object) -> bool:
        """Return whether this value shows the row, and note as what."""
        if isinstance(value, EtcdEvent):
            value = value.answer
        if isinstance(value, dict):
            value = list(value.items())
        if isinstance(value, list | tuple):
            return sum(self._has(each) for each in value) > 0
        if MARK not in repr(value):
            return False
        if isinstance(value, msgspec.Struct):
            self.kinds[type(value)] = None
            self._has([getattr(value, name) for name in value.__struct_fields__])
        return True


def _module(filename: str) -> str:
    return filename.removeprefix(SOURCE).removesuffix(".py")


def listed_modules() -> list[str]:
    """Return the modules that ARCHITECTURE names for the walk."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.partition("| step of a partition's row |")[2].partition("\n\n")[0]
    return [name for line in table.splitlines() for name in re.findall(r"`(\w+/[^`]+)`", line)]


@pytest.mark.interpreted
def test_a_partitions_row_walks_from_etcd_to_its_host_as_architecture_lists() -> None:
    scene = LeaderScene()
    scene.create([[1, 2]])
    broker = scene.nodes[3].broker
    assert broker is not None
    row = PartitionRow(1, int(f"{MARK}1"), int(f"{MARK}2"), int(f"{MARK}3"), [1, 2, 3], [1, 2])
    key = Keys("/simulated/").part(broker.cluster.topics[TOPIC].topic_id, 0)
    walk = Walk(broker)

    assert scene.cluster.etcd_node.etcd.transact([], [Put(key, encode_row(row))])[0]
    sys.setprofile(walk.profile)
    try:
        scene.until(lambda: walk.has_ended, "the hosted partition")
    finally:
        sys.setprofile(None)

    replica = broker.topics.replica(TOPIC, 0)
    assert replica is not None
    assert replica.leadership.row == row
    # Between the bytes in etcd and the leadership, the row is an object of one kind.
    assert [kind for kind in walk.kinds if "leader_epoch" in kind.__struct_fields__] == [
        PartitionRow
    ]
    listed = listed_modules()
    kinds = {kind.__module__.removeprefix("tarry.").replace(".", "/") for kind in walk.kinds}
    assert {name for name in listed if not name.startswith("runtime/")} == {*walk.modules, *kinds}
    assert len(listed) <= MODULES_MAX


def test_the_value_of_a_partitions_row_is_its_format_and_its_fields() -> None:
    row = PartitionRow(1, 4, 2, 5, [1, 2, 3], [1, 2], [3], [1], 3)
    value = b"[1,1,4,2,5,[1,2,3],[1,2],[3],[1],3]"

    assert encode_row(row) == value
    assert decode_row("parts", b"/parts/x/0", value) == row
    # A newer release may add fields to the format; an older one passes them over.
    assert decode_row("parts", b"/parts/x/0", value[:-1] + b",7]") == row
