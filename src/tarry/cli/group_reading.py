"""Reading as a member, for `tarry consume --group`: records of the partitions that we are given.

A record counts as read once it is written out: commits never run ahead of the output, and what
was not written is read again by whoever has the partition next.
"""

from __future__ import annotations

import re
import shlex
import time
from typing import Final, NamedTuple

import click

from tarry.base.errors import TarryError
from tarry.base.ids import TopicPartition
from tarry.cli.outlet import Outlet
from tarry.cli.partitions import places_text
from tarry.cli.reading import (
    POLL_RECORDS_MAX,
    POLL_SECONDS,
    Output,
    ReadingProgress,
    chosen_records,
)
from tarry.cli.rendering import rendered
from tarry.cli.tables import complain
from tarry.cli.trouble import Trouble
from tarry.client import ClientError, Consumer, Listener, RecordGroup
from tarry.client.errors import CommitFailed

# Time between two commits while records come: each costs a request and a record of the broker.
COMMIT_SECONDS: Final = 1.0


class NoPlaceInGroup(TarryError):
    """The group did not take this member in, or had nothing for it, within the time given."""


class GroupLimits(NamedTuple):
    """Limits of a reading; `follow` means: do not end at the end of the partitions."""

    count_max: int | None = None
    follow: bool = False
    commits: bool = True


class GroupReading(Listener):
    """Run of `consume --group`."""

    def __init__(
        self,
        consumer: Consumer,
        topics: list[str] | re.Pattern[str],
        output: Output,
        timeout: float,
    ) -> None:
        self.consumer = consumer
        self.topics = topics
        self.output = output
        self.outlet = Outlet(output.stream, self._keep_alive)
        self.timeout = timeout
        self.limits = GroupLimits()
        self.printed = 0
        self.seen = 0
        # Offset behind the last written record of each partition that this member has.
        self._written: dict[TopicPartition, int] = {}
        # Partitions whose records the consumer has returned: positions may be ahead of the output.
        self._handed_out: dict[TopicPartition, None] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._commit_due = 0.0
        # End offset of each partition at its assignment: reading ends there without `follow`.
        self._bounds: dict[TopicPartition, int] = {}
        # False between a revocation and the next assignment: the own partitions are not known.
        self._is_settled = False
        self._is_blocked = False
        self._trouble = Trouble()
        self._progress = ReadingProgress(output)

    # --- The run

    def run(self, limits: GroupLimits) -> None:
        """Print records until the limits are reached; what was printed is committed, also when
        Ctrl-C or an error ends it."""
        self.limits = limits
        for topic in self.topics if isinstance(self.topics, list) else ():
            # Report a missing topic at once: a member would wait for it.
            self.consumer.partitions_of(topic, self.timeout)
        self.consumer.subscribe(self.topics, listener=self)
        click.echo(f"{self.consumer.group.group_id}: joining the group", err=True)
        if self.output.head:
            self.outlet.write(self.output.head)
        patience_ends = time.monotonic() + self.timeout
        try:
            while not self._is_over():
                is_busy = self._step()
                self._look()
                if is_busy or limits.follow:
                    patience_ends = time.monotonic() + self.timeout
                elif time.monotonic() > patience_ends:
                    raise NoPlaceInGroup(self._stuck())
        except BrokenPipeError:
            # The reader of the pipe is gone, and records in the pipe are lost: do not commit them.
            raise
        except BaseException:
            self._commit(is_last=True)
            raise
        finally:
            self._progress.clear()
        self._commit(is_last=True)

    def _look(self) -> None:
        """Report trouble if there is any; otherwise show the progress."""
        trouble = self._trouble_now()
        if trouble:
            self._progress.clear()
        self._trouble.look(trouble)
        if not trouble:
            self._progress.show(self.seen, self.printed, lambda: None)

    def _trouble_now(self) -> str:
        return self.consumer.trouble or self.consumer.group.trouble

    def _step(self) -> bool:
        """Poll once; return true if it brought anything."""
        groups = self.consumer.poll(POLL_SECONDS, POLL_RECORDS_MAX)
        for group in groups:
            self._handed_out[group.topic, group.partition] = None
        for group in groups:
            self._print(group)
        self._close_done()
        if self._commit_due <= time.monotonic():
            self._commit()
        return bool(groups)

    def _is_over(self) -> bool:
        count_max = self.limits.count_max
        if count_max is not None and self.printed >= count_max:
            return True
        if self.limits.follow or not self._is_settled:
            return False
        return all(self._is_done(place) for place in self.consumer.assignment())

    def _is_done(self, place: TopicPartition) -> bool:
        bound = self._bounds.get(place)
        return bound is not None and self.consumer.position(place) >= bound

    def _close_done(self) -> None:
        """Look up the ends of new partitions, and stop reading there."""
        if self.limits.follow:
            return
        new = [place for place in self.consumer.assignment() if place not in self._bounds]
        if new:
            self._bounds.update(self.consumer.end_offsets(new, self.timeout))
        self.consumer.pause([place for place in self.consumer.assignment() if self._is_done(place)])

    def _stuck(self) -> str:
        group = self.consumer.group
        trouble = self._trouble_now()
        if not self._is_settled and trouble:
            return f"joining group {group.group_id!r} timed out after {self.timeout:g} s: {trouble}"
        if not self._is_settled:
            return (
                f"joining group {group.group_id!r} timed out after {self.timeout:g} s: the "
                "rebalance has not finished, because it waits for other members; see "
                f"tarry groups describe {shlex.quote(group.group_id)}"
            )
        left = [place for place in self.consumer.assignment() if not self._is_done(place)]
        return (
            f"no record came for {self.timeout:g} s, although {places_text(left)} is not at its end"
        )

    # --- Out

    def _print(self, group: RecordGroup) -> None:
        place = (group.topic, group.partition)
        count_max = self.limits.count_max
        left = None if count_max is None else count_max - self.printed
        search = self.output.search
        chosen = chosen_records(group.records, self._bounds.get(place), left, search)
        if not chosen.seen:
            return
        if chosen.records:
            self._progress.clear()
            data = rendered(self.output.renderer, *place, chosen.records)
            if not self.outlet.write(data):
                self._go_on()
        self.seen += chosen.seen
        self.printed += len(chosen.records)
        if place in self.consumer.assignment():
            self._written[place] = chosen.next_offset

    def _keep_alive(self) -> None:
        """Keep the membership while the output is blocked, without reading records."""
        if not self._is_blocked:
            self._is_blocked = True
            self.consumer.pause(self.consumer.assignment())
        groups = self.consumer.poll(0)
        # All assigned partitions are paused, new ones as well, so no records come.
        assert not groups

    def _go_on(self) -> None:
        self._is_blocked = False
        places = self.consumer.assignment()
        self.consumer.resume([place for place in places if not self._is_done(place)])

    # --- The group

    def on_assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._is_settled = True
        self._progress.clear()
        if self._is_blocked:
            consumer.pause(places)
        owned = consumer.assignment()
        view = consumer.group
        reads = f"reads {places_text(owned)}" if owned else "has nothing to read"
        click.echo(
            f"{view.group_id}: {reads} (generation {view.generation_id}, {view.protocol})", err=True
        )

    def on_revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._commit(is_last=True)
        self._forget(places)

    def on_lost(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        complain(
            f"{places_text(places)} went to others, because this member was not heard of in time; "
            "what was read since the last commit is read again"
        )
        self._forget(places)

    def _forget(self, places: list[TopicPartition]) -> None:
        self._is_settled = False
        for place in places:
            self._written.pop(place, None)
            self._handed_out.pop(place, None)
            self._committed.pop(place, None)
            self._bounds.pop(place, None)

    def _read_up_to(self) -> dict[TopicPartition, int]:
        """Behind what was written; where nothing came yet, where reading began.  That counts as
        well: whoever began at the end goes on from there and not from a later end."""
        offsets = dict(self._written)
        for place in self.consumer.assignment():
            if place not in self._handed_out:
                begin = self.consumer.position(place)
                if begin >= 0:
                    offsets[place] = begin
        return offsets

    def _commit(self, *, is_last: bool = False) -> None:
        """Commit what was written.  A rebalance puts it off; at the end it is told."""
        news = {
            place: offset
            for place, offset in self._read_up_to().items()
            if self._committed.get(place) != offset
        }
        if not news or not self.limits.commits:
            return
        self._commit_due = time.monotonic() + COMMIT_SECONDS
        try:
            self.consumer.commit(news, self.timeout)
        except CommitFailed as error:
            if is_last or not error.is_retriable:
                self._tell_uncommitted(error)
        except ClientError as error:
            if not error.is_retriable:
                raise
            self._tell_uncommitted(error)
        else:
            self._committed.update(news)

    def _tell_uncommitted(self, error: ClientError) -> None:
        complain(f"not committed, and so read again: {error}")
