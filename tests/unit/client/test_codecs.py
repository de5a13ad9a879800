"""Codecs: objects in, bytes out, and back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tarry.client.codecs import Json, Text, check_codec, encoded


class Order(msgspec.Struct):
    number: int
    text: str = ""


@pytest.mark.parametrize(
    ("codec", "content"),
    [
        (Text(), "grüße"),
        (Text(), ""),
        (Text("latin-1"), "grüße"),
        (Json(), {"a": [1, None, "ü"]}),
        (Json(Order), Order(7, "x")),
        (Json(int), 2**60),
    ],
)
def test_what_a_codec_encodes_it_decodes(codec: Any, content: object) -> None:
    assert codec.decode(codec.encode(content)) == content


def test_an_encoding_that_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(LookupError):
        Text("utf-9")


def test_text_encodes_text_only() -> None:
    with pytest.raises(TypeError, match="Text encodes a str, not b'x'"):
        Text().encode(b"x")  # type: ignore[arg-type]


def test_json_of_a_class_takes_no_other() -> None:
    with pytest.raises(msgspec.ValidationError):
        Json(Order).decode(b'{"number": "seven"}')


@pytest.mark.parametrize("codec", [None, 1, "utf-8", Text, Json, object()])
def test_what_is_no_codec_is_refused_with_the_right_form(codec: object) -> None:
    with pytest.raises(TypeError, match=r"value=.* such as Text\(\) or Json\(\)"):
        check_codec("value", codec)


def test_null_stays_null_and_a_codec_gives_bytes() -> None:
    class Wrong:
        def encode(self, content: object) -> Any:
            return "text"

        def decode(self, data: bytes) -> object:
            return data

    assert encoded(Text(), "value", None) is None
    assert encoded(Text(), "value", "x") == b"x"
    with pytest.raises(TypeError, match="made 'text' of a value: encode returns bytes"):
        encoded(Wrong(), "value", 1)
