"""Which topics a name, a pattern or a regular expression means."""

from __future__ import annotations

from tarry.cli.topic_choice import matcher, regex_of

NAMES = ["orders", "orders-1", "my-orders-1", "orders.1", "log"]


def meant(*texts: str) -> list[str]:
    return [name for name in NAMES if regex_of(texts).search(name)]


def test_a_name_means_itself_and_a_pattern_of_a_shell_the_whole_name() -> None:
    assert meant("orders") == ["orders"]
    assert meant("orders.1") == ["orders.1"]
    assert meant("orders-*") == ["orders-1"]
    assert meant("order?") == ["orders"]


def test_a_regular_expression_is_searched_for() -> None:
    assert meant("^orders") == ["orders", "orders-1", "orders.1"]
    assert meant("^.*-1$") == ["orders-1", "my-orders-1"]


def test_several_are_one() -> None:
    assert meant("log", "^orders$|^my") == ["orders", "my-orders-1", "log"]


def test_one_at_a_time_means_the_same() -> None:
    for text in ("orders", "orders-*", "^orders"):
        is_meant = matcher(text)
        assert [name for name in NAMES if is_meant(name)] == meant(text)
