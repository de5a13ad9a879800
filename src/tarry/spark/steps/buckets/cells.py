"""Cells of Spark's state that hold the trees of buckets, and the timers that visit them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic

import msgspec

from tarry.spark.steps.buckets.tree import LAYOUT, BucketTree, Entry, LeafKind, Root
from tarry.spark.steps.refused import StepRefused
from tarry.spark.steps.states import MILLISECOND_US

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle

ROOT_DECODER: Final = msgspec.msgpack.Decoder(Root)
ROOT_ENCODER: Final = msgspec.msgpack.Encoder()


class MapLeaves:
    """Leaves in a map of Spark's state."""

    def __init__(self, cells: MapState) -> None:
        self._cells = cells

    def get(self, begin: int) -> bytes:
        """Read a leaf that is there."""
        found = self._cells.getValue((begin,))
        assert found is not None
        return bytes(found[0])

    def put(self, begin: int, leaf: bytes) -> None:
        """Write a leaf."""
        self._cells.updateValue((begin,), (leaf,))

    def remove(self, begin: int) -> None:
        """Remove a leaf that is there."""
        self._cells.removeKey((begin,))


class BucketCells(Generic[Entry]):
    """State of the bucket that Spark asks for at the moment."""

    def __init__(self, handle: StatefulProcessorHandle, kind: LeafKind[Entry]) -> None:
        self._handle = handle
        self._kind = kind
        self._root = handle.getValueState("root", "root binary")
        self._leaves = MapLeaves(handle.getMapState("leaves", "begin bigint", "leaf binary"))

    def read(self) -> tuple[BucketTree[Entry], bytes]:
        """Return the tree of the bucket, and its root as it is stored."""
        found = self._root.get()
        stored = bytes(found[0]) if found else b""
        root = ROOT_DECODER.decode(stored) if stored else None
        if root is not None and root.layout != LAYOUT:
            raise StepRefused(
                f"the checkpoint holds state in the layout {root.layout}, and this version of "
                f"Tarry reads the layout {LAYOUT}: go on with the version that wrote it, or begin "
                "with another checkpoint"
            )
        return BucketTree(root, self._leaves, self._kind), stored

    def write(self, tree: BucketTree[Entry], stored: bytes, watermark_us: int) -> None:
        """Store the root of a tree, and have Spark call when its first leaf wants a visit."""
        root, due = tree.root, tree.next_due
        if root.timer_ms is not None and root.timer_ms * MILLISECOND_US <= watermark_us:
            # It has fired, or does in this micro-batch.
            root.timer_ms = None
        if due is not None:
            # Whole milliseconds, not before the time itself.
            wanted_ms = -(-due // MILLISECOND_US)
            if root.timer_ms is None or wanted_ms < root.timer_ms:
                self._handle.registerTimer(wanted_ms)
                root.timer_ms = wanted_ms
        if tree.is_empty:
            if stored:
                self._root.clear()
            return
        encoded = ROOT_ENCODER.encode(root)
        if encoded != stored:
            self._root.update((encoded,))
