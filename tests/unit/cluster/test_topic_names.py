"""Names of topics: Kafka's rule."""

from __future__ import annotations

import pytest

from tarry.cluster.state.topic_names import collision_key, is_internal, name_fault


@pytest.mark.parametrize("name", ["a", "Orders_2.x-y", "0", "...", "-", "_", "x" * 249])
def test_kafkas_names_are_taken(name):
    assert name_fault(name) == ""


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("", "empty"),
        (".", "'.'"),
        ("..", "'..'"),
        ("x" * 250, "249"),
        ("a b", "ASCII"),
        ("naïve", "ASCII"),
        ("a/b", "ASCII"),
        ("a\nb", "ASCII"),
        ("٣", "ASCII"),
    ],
)
def test_other_names_are_refused_with_a_sentence(name, word):
    fault = name_fault(name)

    assert word in fault
    assert "\n" not in fault


def test_names_that_differ_in_dots_and_underscores_alone_clash():
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a.b") != collision_key("ab")


def test_the_coordinators_topics_are_internal():
    assert is_internal("__consumer_offsets")
    assert not is_internal("orders")
