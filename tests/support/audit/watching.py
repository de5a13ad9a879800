"""Readers of an audited day: one that reads along, and the reading of everything at the end."""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.request
from collections.abc import Iterable
from typing import Final

from tests.support.audit.account import Account, FoundRecord, Listed, Place, now_ms
from tests.support.patience import PATIENCE_S, tries

from tarry.base.ids import id_from_text
from tarry.base.partition_row import PartitionRow
from tarry.client import Admin, Consumer
from tarry.client.errors import ClientError
from tarry.cluster.rows.rows import Keys, decode_row

PAGE: Final = 1_000
# Waited for what is due at the end, and so much time beyond it, in which all is read.
STUCK_S: Final = 90.0
AHEAD_MS: Final = 20_000


class Watcher(threading.Thread):
    """A consumer that reads all places along and notes when each record arrived."""

    def __init__(self, account: Account, addresses: str, places: list[Place]) -> None:
        super().__init__(name="watcher", daemon=True)
        self.account = account
        self.addresses = addresses
        self.places = places
        self.is_over = threading.Event()
        # What it has seen; only this thread writes it.
        self.seen: dict[tuple[str, int, int], tuple[str, int]] = {}

    def run(self) -> None:
        while not self.is_over.is_set():
            try:
                self._read_along()
            except ClientError as error:
                self.account.trouble(f"the consumer that reads along failed: {error!r}")
                return

    def _read_along(self) -> None:
        with Consumer(
            bootstrap_servers=self.addresses,
            auto_offset_reset="earliest",
            reconnect_backoff_max_ms=200,
        ) as consumer:
            consumer.assign(self.places)
            while not self.is_over.is_set():
                groups = consumer.poll(0.2)
                arrived_ms = now_ms()
                for group in groups:
                    for record in group.records:
                        place = (group.topic, group.partition, record.offset)
                        uid = (record.value or b"").decode(errors="replace")
                        if place in self.seen:
                            self.account.trouble(f"{place} was read twice: {uid!r}")
                        self.seen[place] = (uid, arrived_ms)

    def end(self) -> None:
        self.is_over.set()
        self.join(PATIENCE_S)
        self.account.seen = self.seen


def wait_until_nothing_is_due(admin: Admin, account: Account, topics: Iterable[str]) -> None:
    """Wait until what is due has come, and nothing is due while all is read."""
    for topic in topics:
        end_s = time.monotonic() + STUCK_S
        while True:
            due = admin.scheduled(topic, 0, now_ms() + AHEAD_MS, limit=PAGE).entries
            # What recurs is due again and again.
            due = [each for each in due if each.cron is None]
            if not due:
                break
            if time.monotonic() > end_s:
                account.trouble(
                    f"{STUCK_S:.0f} s after all was well this is due, and waits: {due[:10]}"
                )
                break
            time.sleep(0.2)


def list_all(admin: Admin, topics: Iterable[str]) -> list[Listed]:
    """Everything that waits, but what recurs."""
    found: list[Listed] = []
    for topic in topics:
        after = None
        while True:
            page = admin.scheduled(topic, limit=PAGE, after=after, with_records=True)
            for entry in page.entries:
                if entry.cron is not None:
                    continue
                values = [each.value or b"" for each in entry.records or []]
                place = (topic, entry.partition)
                found += [Listed(place, each.decode(), entry.due_ms) for each in values]
            after = page.next
            if after is None:
                break
    return found


def read_all(addresses: str, places: list[Place]) -> list[FoundRecord]:
    """Everything that is in the logs, each from its first offset to its end."""
    found: list[FoundRecord] = []
    with Consumer(bootstrap_servers=addresses, auto_offset_reset="earliest") as consumer:
        ends = consumer.end_offsets(places, PATIENCE_S)
        consumer.assign(places)
        last = {place: -1 for place, end in ends.items() if end > 0}
        for _ in tries():
            if all(last[place] >= ends[place] - 1 for place in last):
                break
            for group in consumer.poll(1.0):
                place = (group.topic, group.partition)
                for record in group.records:
                    last[place] = max(last.get(place, -1), record.offset)
                    headers = dict(record.headers)
                    told = headers.get("x-sched-due")
                    uid = (record.value or b"").decode(errors="replace")
                    found.append(
                        FoundRecord(
                            place,
                            record.offset,
                            uid,
                            record.timestamp,
                            -1 if told is None else int(told),
                        )
                    )
    return found


class Leaders:
    """Leaders of each epoch, from the history of the rows in etcd, which nobody compacts here."""

    def __init__(self, etcd_address: str, prefix: str) -> None:
        self.keys = Keys(prefix)
        # By topic id and partition index the leader of each epoch.
        self.rows: dict[tuple[bytes, int], dict[int, int]] = {}
        kind = self.keys.of_kind("parts")
        for key, value in _history(etcd_address, kind):
            _, topic, index = self.keys.place(key)
            row = decode_row("parts", key, value)
            assert isinstance(row, PartitionRow)
            if row.leader_id >= 0:
                epochs = self.rows.setdefault((id_from_text(topic), int(index)), {})
                epochs[row.leader_epoch] = row.leader_id

    def of(self, topic_id: bytes, index: int) -> dict[int, int]:
        return self.rows.get((topic_id, index), {})


def _history(address: str, prefix: bytes) -> Iterable[tuple[bytes, bytes]]:
    """Every value that was ever written below a prefix, in order."""
    end = prefix[:-1] + bytes([prefix[-1] + 1])
    asked = {"key": _text(prefix), "range_end": _text(end)}
    last = int(_post(address, "kv/range", asked)["header"]["revision"])
    wanted = {"create_request": {**asked, "start_revision": "1", "progress_notify": True}}
    body = json.dumps(wanted).encode()
    request = urllib.request.Request(f"http://{address}/v3/watch", body, method="POST")
    changed = max(
        (int(each["mod_revision"]) for each in _post(address, "kv/range", asked).get("kvs", [])),
        default=0,
    )
    if not changed:
        return
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as stream:
        for line in stream:
            result = json.loads(line)["result"]
            for event in result.get("events", []):
                pair = event["kv"]
                if event.get("type", "PUT") == "PUT" and "value" in pair:
                    yield base64.b64decode(pair["key"]), base64.b64decode(pair["value"])
            if any(int(each["kv"]["mod_revision"]) >= changed for each in result.get("events", [])):
                break
    assert last >= changed


def _post(address: str, path: str, fields: dict[str, str]) -> dict[str, object]:
    request = urllib.request.Request(
        f"http://{address}/v3/{path}", json.dumps(fields).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return dict(json.loads(answer.read()))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
