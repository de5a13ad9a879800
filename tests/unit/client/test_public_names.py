"""What a user imports and writes: names of `tarry.client`, and settings as arguments."""

from __future__ import annotations

from inspect import signature
from typing import Any, Unpack, get_args, get_type_hints

import pytest

import tarry.client
from tarry.client.setting_arguments import ClientArguments, ConsumerArguments, ProducerArguments


def test_every_public_name_is_there_and_says_where_it_comes_from() -> None:
    for module, names in tarry.client.MODULES.items():
        for name in names:
            assert getattr(tarry.client, name) is getattr(__import__(module, fromlist=[name]), name)
            assert name in dir(tarry.client)


def test_every_error_of_the_client_is_a_public_name() -> None:
    from tarry.client import errors

    raised = [
        name
        for name, one in vars(errors).items()
        if isinstance(one, type) and one.__module__ == errors.__name__
    ]

    assert sorted(raised) == sorted(tarry.client.MODULES["tarry.client.errors"])


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Prodcuer'"):
        _ = tarry.client.Prodcuer  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("face", "arguments"),
    [
        ("Producer", ProducerArguments),
        ("Consumer", ConsumerArguments),
        ("Admin", ClientArguments),
    ],
)
def test_a_face_takes_the_settings_of_its_kind(face: str, arguments: Any) -> None:
    made = getattr(tarry.client, face)

    hint = get_type_hints(made.__init__)["arguments"]

    assert get_args(hint) == get_args(Unpack[arguments])
    assert signature(made).parameters["arguments"].kind.name == "VAR_KEYWORD"
