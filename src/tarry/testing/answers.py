"""Error answers of every API, made from its schema, which says where an answer has error codes.

A place is the path to a field, such as `responses.partition_responses.error_code`.  A refusal is
made from the request: where an array of the answer has codes, the request has an array that names
the same things, and the answer gets an element with the code for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, NamedTuple

from tarry.protocol.api_keys import APIS
from tarry.protocol.message import Message
from tarry.protocol.registry import MESSAGES
from tarry.protocol.schema import ApiSchema, Field, Struct, Versions, load

CODE: Final = "error_code"
MESSAGE: Final = "error_message"
MESSAGE_TEXT: Final = "a fault of the test"

# Fields that say what an element of an answer is about.
IDENTITY: Final = frozenset(
    [
        "group_id",
        "group_instance_id",
        "index",
        "key",
        "member_id",
        "name",
        "partition",
        "partition_index",
        "resource_name",
        "resource_type",
        "topic",
        "topic_id",
    ]
)
TOPIC_NAMES: Final = ("name", "topic", "resource_name")
RESOURCE_TOPIC: Final = 2

# Kafka's values for fields that are not known in a refused element.
REFUSED: Final = {"base_offset": -1, "high_watermark": -1}

# Places of the codes that are most usual in an API, though it has others that lie deeper.
USUAL: Final = {"LeaveGroup": (CODE,), "OffsetFetch": (CODE, f"groups.{CODE}")}

# Function that chooses topics, called with a topic's name, or its id if the message has no name.
IsChosen = Callable[[str | None, bytes], bool]


class CodePlace(NamedTuple):
    """Field of an answer that holds an error code; `path` are the arrays around it."""

    path: tuple[str, ...]
    field: str
    versions: Versions

    def __str__(self) -> str:
        return ".".join((*self.path, self.field))


class ApiRefusal(NamedTuple):
    """Refusal in one version of an API: the code, its place, and topics or all."""

    version: int
    place: CodePlace
    code: int
    is_chosen: IsChosen | None = None


# Part of a request with its struct; the struct is None for a bare string or number.
Asked = tuple[object, Struct | None]
NOTHING: Final[Asked] = (None, None)


class ErrorAnswers:
    """The answers of one API that hold an error code."""

    def __init__(self, api_key: int) -> None:
        self.api_key = api_key
        self.name = APIS[api_key].name
        self.schema: ApiSchema = load(self.name)
        self.places = list(self._places_in(self.schema.response, ()))
        self._classes = import_module(f"tarry.protocol.messages.{self.schema.snake_name}")

    def _places_in(self, struct: Struct, path: tuple[str, ...]) -> Iterator[CodePlace]:
        for field in struct.fields:
            if field.is_array and field.is_struct:
                inner = self.schema.structs[field.type_name]
                for place in self._places_in(inner, (*path, field.name)):
                    yield place._replace(versions=place.versions.within(field.versions))
            elif field.name == CODE or field.name.endswith(f"_{CODE}"):
                yield CodePlace(path, field.name, field.versions)

    # --- Places

    def place(self, version: int, wanted: str | None, *, by_topic: bool) -> CodePlace | None:
        """Return the wanted place, or the usual one; None if this version has none."""
        found = [place for place in self.places if version in place.versions]
        if wanted is not None:
            return next((place for place in found if str(place) == wanted), None)
        found = [place for place in found if place.field == CODE]
        if by_topic:
            found = [place for place in found if self.topic_depth(place) >= 0]
        else:
            for usual in USUAL.get(self.name, ()):
                for place in found:
                    if str(place) == usual:
                        return place
        found.sort(key=lambda place: (self._named_depth(place, version), -len(place.path)))
        return found[-1] if found else None

    def topic_depth(self, place: CodePlace) -> int:
        """Return the depth, from 0, of the array around the place whose elements are topics; -1 if
        there is none."""
        struct = self.schema.response
        for depth, name in enumerate(place.path):
            struct = self._element(_field(struct, name))
            if any(field.name in TOPIC_NAMES for field in struct.fields):
                return depth
        return -1

    def _named_depth(self, place: CodePlace, version: int) -> int:
        """Return how many outer arrays of the place have elements that a request names."""
        asked: Struct | None = self.schema.request
        struct = self.schema.response
        for depth, name in enumerate(place.path):
            field = _field(struct, name)
            struct = self._element(field)
            named_by = None if asked is None else self._named_by(asked, field, version)
            if named_by is None:
                return depth
            asked = self._element(named_by) if named_by.is_struct else None
        return len(place.path)

    def _element(self, field: Field) -> Struct:
        return self.schema.structs[field.type_name]

    def _named_by(self, asked: Struct, field: Field, version: int) -> Field | None:
        """Return the array of a request's struct that names the elements of an answer's array."""
        arrays = [one for one in asked.fields if one.is_array and version in one.versions]
        for one in arrays:
            if one.name == field.name:
                return one
        element = self._element(field)
        names = [one.name for one in element.fields if one.name in IDENTITY]
        for one in arrays:
            if one.is_struct:
                if any(inner.name in names for inner in self._element(one).fields):
                    return one
            elif _scalar_identity(element, one.type_name) is not None:
                return one
        return None

    # --- Answers made from requests

    def refuse(self, request: Message, refusal: ApiRefusal) -> Message:
        """Make an answer with the code for everything that the request names."""
        response = MESSAGES[self.api_key].response_type()
        self._fill(response, self.schema.response, (request, self.schema.request), refusal, 0)
        self.overwrite(response, refusal)
        return response

    def split(self, request: Message, refusal: ApiRefusal) -> Message | None:
        """Take the chosen topics out of a request and return the answer that refuses them; None if
        the request names none of them."""
        name = self._topics_of(refusal).name
        values = list(getattr(request, name) or [])
        chosen = [_is_topic_chosen(value, refusal.is_chosen) for value in values]
        if not any(chosen):
            return None
        setattr(request, name, [one for one, out in zip(values, chosen, strict=True) if out])
        refused = self.refuse(request, refusal._replace(is_chosen=None))
        setattr(request, name, [one for one, out in zip(values, chosen, strict=True) if not out])
        return refused

    def is_empty(self, request: Message, refusal: ApiRefusal) -> bool:
        """Return whether all topics were taken out of a request."""
        return not getattr(request, self._topics_of(refusal).name)

    def join(self, response: Message, refused: Message, refusal: ApiRefusal) -> None:
        """Add the refused topics to the answer for the other topics of the request."""
        name = refusal.place.path[0]
        setattr(response, name, [*getattr(response, name), *getattr(refused, name)])

    def _topics_of(self, refusal: ApiRefusal) -> Field:
        field = _field(self.schema.response, refusal.place.path[0])
        named_by = self._named_by(self.schema.request, field, refusal.version)
        assert named_by is not None, refusal.place
        return named_by

    def _fill(
        self, made: object, struct: Struct, asked: Asked, refusal: ApiRefusal, depth: int
    ) -> None:
        """Fill the array around the place with one element for each thing that the request names,
        or one element if it names none."""
        for name, value in REFUSED.items():
            if any(field.name == name for field in struct.fields):
                setattr(made, name, value)
        if depth == len(refusal.place.path):
            return
        field = _field(struct, refusal.place.path[depth])
        element = self._element(field)
        make: Callable[[], Any] = getattr(self._classes, element.name)
        elements = []
        for one in self._named(asked, field, refusal.version):
            inner = make()
            _copy_identity(inner, element, one)
            self._fill(inner, element, one, refusal, depth + 1)
            elements.append(inner)
        setattr(made, field.name, elements)

    def _named(self, asked: Asked, field: Field, version: int) -> list[Asked]:
        """Return the parts of the request that name the elements of an answer's array, each with
        its struct."""
        message, struct = asked
        named_by = None if struct is None else self._named_by(struct, field, version)
        if named_by is None:
            return [NOTHING]
        inner = self._element(named_by) if named_by.is_struct else None
        return [(value, inner) for value in getattr(message, named_by.name) or []] or [NOTHING]

    # --- Codes in answers

    def overwrite(self, response: Message, refusal: ApiRefusal) -> int:
        """Write the code into the place, for the chosen topics or all; return how many times."""
        return self._overwrite(response, self.schema.response, refusal, 0)

    def _overwrite(self, made: object, struct: Struct, refusal: ApiRefusal, depth: int) -> int:
        place = refusal.place
        if depth == len(place.path):
            setattr(made, place.field, refusal.code)
            self._tell(made, struct, refusal.version, is_element=depth > 0)
            return 1
        field = _field(struct, place.path[depth])
        chooses = refusal.is_chosen is not None and depth == self.topic_depth(place)
        count = 0
        for element in getattr(made, field.name) or []:
            if not chooses or _is_topic_chosen(element, refusal.is_chosen):
                count += self._overwrite(element, self._element(field), refusal, depth + 1)
        return count

    def _tell(self, made: object, struct: Struct, version: int, *, is_element: bool) -> None:
        """Set the error message, and empty all arrays of a refused element."""
        for field in struct.fields:
            if field.name == MESSAGE and version in field.versions:
                setattr(made, MESSAGE, MESSAGE_TEXT)
            elif is_element and field.is_array and version in field.versions:
                setattr(made, field.name, [])


def _field(struct: Struct, name: str) -> Field:
    return next(field for field in struct.fields if field.name == name)


def _scalar_identity(element: Struct, type_name: str) -> str | None:
    """Return the field of an element that a bare string or number of a request names."""
    for field in element.fields:
        if field.type_name == type_name and not field.is_array and field.name in IDENTITY:
            return field.name
    return None


def _copy_identity(made: object, element: Struct, one: Asked) -> None:
    asked, struct = one
    if asked is None:
        return
    if struct is None:
        type_name = "string" if isinstance(asked, str) else "i32"
        name = _scalar_identity(element, type_name)
        assert name is not None, element.name
        setattr(made, name, asked)
        return
    for field in element.fields:
        if field.name in IDENTITY:
            value = getattr(asked, field.name, None)
            if value is None and field.name == "partition_index":
                value = getattr(asked, "partition", None)
            if value is not None:
                setattr(made, field.name, value)


def _is_topic_chosen(element: object, is_chosen: IsChosen | None) -> bool:
    assert is_chosen is not None
    if isinstance(element, str):
        return is_chosen(element, b"")
    if getattr(element, "resource_type", RESOURCE_TOPIC) != RESOURCE_TOPIC:
        return False
    name = next((found for one in TOPIC_NAMES if (found := getattr(element, one, None))), None)
    return is_chosen(name, getattr(element, "topic_id", b""))
