"""The page of APIs says what the broker routes."""

from __future__ import annotations

import re
from pathlib import Path

from tarry.protocol.api_keys import APIS
from tarry.simulation.by_hand import BrokerByHand

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/apis.md"
CELLS = re.compile(r"\| (\w+) \| (\d+)(?:\u2013(\d+))?(?: \([^|]*\))? (?=\|)")


def test_the_table_of_apis_is_what_is_served() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("An API is advertised")[0]

    told = {name: (int(low), int(high or low)) for name, low, high in CELLS.findall(table)}

    assert told == {
        APIS[key].name: (route.version_min, route.version_max)
        for key, route in BrokerByHand().broker.routes.items()
    }
