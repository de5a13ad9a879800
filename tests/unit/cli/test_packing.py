"""Forms of keys and values: bytes as text and text as bytes."""

from __future__ import annotations

import pytest

from tarry.cli.packing import BadForm, Form, Misfit, parse_form


def form_of(text: str) -> Form:
    form = parse_form(text)
    assert form is not None
    return form


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("int8", b"\xff", b"-1"),
        ("uint8", b"\xff", b"255"),
        ("int16", b"\x01\x00", b"256"),
        ("int32", b"\x00\x00\x00\x07", b"7"),
        ("int64", b"\xff" * 8, b"-1"),
        ("uint64", b"\xff" * 8, b"18446744073709551615"),
        ("double", b"\x3f\xf8" + b"\0" * 6, b"1.5"),
        ("hex", b"\x00\xfe", b"00fe"),
        ("base64", b"\x00\xfe", b"AP4="),
        # kcat's letters: several fields are parted by blanks, `<` is little-endian.
        ("<i", b"\x07\x00\x00\x00", b"7"),
        (">hi", b"\x00\x01\x00\x00\x00\x02", b"1 2"),
        ("b s", b"\x05rest of it", b"5 rest of it"),
        ("c<hs", b"x\x02\x00", b"x 2 "),
    ],
)
def test_a_form_goes_both_ways(name: str, data: bytes, text: bytes) -> None:
    form = form_of(name)

    assert form.unpack(data) == text
    assert form.pack(text) == data


def test_text_needs_no_form() -> None:
    assert parse_form("text") is None
    assert parse_form("s") is None


@pytest.mark.parametrize("name", ["", "int33", "x", "si", "i$i", "$", "<", "fd", "hex "])
def test_a_form_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(BadForm, match="unknown form"):
        parse_form(name)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("int32", b"abc", "3 bytes, too short for the form 'int32'"),
        ("int32", b"abcde", "5 bytes, too long"),
        ("i", b"a", "1 byte, too short"),
        ("i$", b"abcde", "too long"),
    ],
)
def test_bytes_that_do_not_have_the_form_are_refused(name: str, data: bytes, why: str) -> None:
    with pytest.raises(Misfit, match=why):
        form_of(name).unpack(data)


def test_bytes_behind_the_fields_are_left_out_as_kcat_does() -> None:
    assert form_of("h").unpack(b"\x00\x01tail") == b"1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("int8", b"128"),
        ("int32", b"seven"),
        ("int32", b"\xff"),
        ("uint16", b"-1"),
        ("hex", b"abc"),
        ("hex", b"zz"),
        ("base64", b"%%%"),
        ("hi", b"1"),
        ("c", b"xy"),
    ],
)
def test_text_that_does_not_fit_is_refused(name: str, text: bytes) -> None:
    with pytest.raises(Misfit):
        form_of(name).pack(text)
