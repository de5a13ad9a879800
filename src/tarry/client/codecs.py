"""Codecs: keys and values as objects instead of bytes.

    Producer(value=Json(Order))        Consumer("orders", key=Text(), value=Json(Order))

Any object with `encode` and `decode` is a codec.  Null stays null: a tombstone has no content that
a codec could see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, overload

if TYPE_CHECKING:
    # Type checkers know the package without its import; a bare `Consumer` means one of bytes.
    from typing_extensions import TypeVar

    Key = TypeVar("Key", default=bytes)
    Value = TypeVar("Value", default=bytes)
    # Types that records return after a codec has decoded them.
    KeyOut_co = TypeVar("KeyOut_co", default=bytes, covariant=True)
    ValueOut_co = TypeVar("ValueOut_co", default=bytes, covariant=True)
    # Types that producers accept for a codec to encode.
    KeyIn_contra = TypeVar("KeyIn_contra", default=bytes, contravariant=True)
    ValueIn_contra = TypeVar("ValueIn_contra", default=bytes, contravariant=True)
else:
    from typing import TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")
    KeyOut_co = TypeVar("KeyOut_co", covariant=True)
    ValueOut_co = TypeVar("ValueOut_co", covariant=True)
    KeyIn_contra = TypeVar("KeyIn_contra", contravariant=True)
    ValueIn_contra = TypeVar("ValueIn_contra", contravariant=True)

Content = TypeVar("Content")

RIGHT_FORM: Final = "give an object with encode(object) and decode(bytes), such as Text() or Json()"


class Codec(Protocol[Content]):
    """Codec between objects of one class and bytes."""

    def encode(self, content: Content, /) -> bytes:
        """Return the bytes of an object; what it raises comes out of `send`."""

    def decode(self, data: bytes, /) -> Content:
        """Return the object of the bytes; an exception here becomes a DecodeError."""


class Text:
    """Codec of text, in UTF-8 unless another encoding is named."""

    def __init__(self, encoding: str = "utf-8") -> None:
        # An unknown encoding raises LookupError here, and not at the first record.
        "".encode(encoding)
        self.encoding = encoding

    def encode(self, content: str, /) -> bytes:
        """Return the bytes of a text; TypeError for anything else."""
        if not isinstance(content, str):
            raise TypeError(f"Text encodes a str, not {content!r:.60}")
        return content.encode(self.encoding)

    def decode(self, data: bytes, /) -> str:
        """Return the text of the bytes; UnicodeDecodeError if they are not in the encoding."""
        return data.decode(self.encoding)

    def __repr__(self) -> str:
        return f"Text({self.encoding!r})"


class Json(Generic[Content]):
    """Codec of JSON: of one class (a msgspec.Struct, a dataclass, a TypedDict ..), or of what JSON
    itself has, if no class is named."""

    @overload
    def __init__(self: Json[Any], kind: None = None) -> None: ...

    @overload
    def __init__(self, kind: type[Content]) -> None: ...

    def __init__(self, kind: Any = None) -> None:
        # Imported here, because most programs use no JSON codec.
        from msgspec import json

        self.kind = kind
        self._encoder = json.Encoder()
        self._decoder = json.Decoder(Any if kind is None else kind)

    def encode(self, content: Content, /) -> bytes:
        """Return the object as JSON in UTF-8."""
        return self._encoder.encode(content)

    def decode(self, data: bytes, /) -> Content:
        """Return the object; msgspec.DecodeError if the bytes are no JSON, or no object of the
        class."""
        # Only msgspec knows the type of the decoder's result, so it is Any here.
        found: Any = self._decoder.decode(data)
        return found  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return "Json()" if self.kind is None else f"Json({self.kind!r})"


def check_codec(argument: str, codec: object) -> None:
    """Raise TypeError if the object is no codec, before anything has changed."""
    for method in ("encode", "decode"):
        if not callable(getattr(codec, method, None)):
            raise TypeError(f"{argument}={codec!r:.60} is no codec: {RIGHT_FORM}")
    if isinstance(codec, type):
        raise TypeError(f"{argument}={codec!r:.60} is a class: {RIGHT_FORM}")


def encoded(codec: Codec[Any], argument: str, content: object) -> bytes | None:
    """Return the bytes of a key or value as the codec encodes it; None stays None."""
    if content is None:
        return None
    data = codec.encode(content)
    if not isinstance(data, bytes):
        raise TypeError(f"{codec!r:.60} made {data!r:.60} of a {argument}: encode returns bytes")
    return data
