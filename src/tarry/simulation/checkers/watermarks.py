"""Checkers of high watermarks and log starts: none goes back, acknowledged records count."""

from __future__ import annotations

from tarry.simulation.clients.history import ACKNOWLEDGED, Place, RunHistory, Watermarks, place_name


def check_watermarks(history: RunHistory) -> list[str]:
    """Check that no query finds a lower value than an earlier answer had (A27, A33)."""
    sentences: list[str] = []
    by_place: dict[Place, list[Watermarks]] = {}
    for watermarks in history.watermarks:
        by_place.setdefault(watermarks.place, []).append(watermarks)
    for place, seen in by_place.items():
        sentences += _going_back(
            place,
            "high watermark",
            [
                (one.high_watermark, one.exchange.delivered_turn, one.exchange.answered_turn)
                for one in seen
                if one.high_watermark >= 0
            ],
        )
        sentences += _going_back(
            place,
            "log start offset",
            [
                (one.log_start_offset, one.exchange.delivered_turn, one.exchange.answered_turn)
                for one in seen
                if one.log_start_offset >= 0
            ],
        )
    return sentences


def check_acknowledged_ends(history: RunHistory) -> list[str]:
    """Check that a query asked after an acknowledgement finds the high watermark past it."""
    sentences: list[str] = []
    facts: dict[Place, list[tuple[int, int, int]]] = {}
    for batch in history.batches:
        if batch.outcome == ACKNOWLEDGED and batch.exchange is not None:
            end = batch.base_offset + len(batch.records)
            turn = batch.exchange.answered_turn
            facts.setdefault(batch.place, []).append((end, -1, turn))
    for watermarks in history.watermarks:
        if watermarks.high_watermark >= 0 and watermarks.place in facts:
            facts[watermarks.place].append(
                (
                    watermarks.high_watermark,
                    watermarks.exchange.delivered_turn,
                    watermarks.exchange.answered_turn,
                )
            )
    for place, seen in facts.items():
        sentences += _going_back(place, "high watermark, after an acknowledgement,", seen)
    return sentences


def _going_back(place: Place, what: str, seen: list[tuple[int, int, int]]) -> list[str]:
    """Return a sentence for each value that goes back.

    `seen` holds value, delivered turn (-1: a fact, not a query) and answered turn.
    """
    by_answer = sorted(seen, key=_answered_turn)
    newest = -1
    index = 0
    for value, delivered_turn, _answered in sorted(seen, key=_delivered_turn):
        if delivered_turn < 0:
            continue
        while index < len(by_answer) and by_answer[index][2] < delivered_turn:
            newest = max(newest, by_answer[index][0])
            index += 1
        if value < newest:
            return [f"the {what} of {place_name(place)} went back from {newest} to {value}"]
    return []


def _answered_turn(fact: tuple[int, int, int]) -> int:
    return fact[2]


def _delivered_turn(fact: tuple[int, int, int]) -> int:
    return fact[1]
