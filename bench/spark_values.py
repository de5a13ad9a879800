"""Values of JSON that `bench/spark.py` has read as columns."""

from __future__ import annotations

import json
from typing import Final

# Ten fields, as both sides are told them.
JSON_FIELDS: Final = (
    "event_id STRING, order_id BIGINT, kind STRING, amount DOUBLE, currency STRING, at TIMESTAMP, "
    "customer STRUCT<id: BIGINT, mail: STRING>, quantity INT, is_paid BOOLEAN, note STRING"
)


def json_value(number: int) -> bytes:
    """Return an order of some 220 bytes."""
    order = {
        "event_id": f"e{number:012}",
        "order_id": number * 7,
        "kind": ("placed", "paid", "sent")[number % 3],
        "amount": number % 10_000 / 100,
        "currency": "EUR",
        "at": f"2026-11-29T{number % 24:02}:{number % 60:02}:00Z",
        "customer": {"id": number % 5_000, "mail": f"c{number % 5_000}@example.org"},
        "quantity": number % 9,
        "is_paid": number % 3 > 0,
        "note": None if number % 4 else "leave it at the door",
    }
    return json.dumps(order, separators=(",", ":")).encode()
