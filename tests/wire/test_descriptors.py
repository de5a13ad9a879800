"""Our schema against Kafka's own descriptors, field by field, when a Kafka client jar is there.

Jars are looked for in TARRY_KAFKA_JARS (a folder or a jar) and in Maven's repository.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tarry.protocol.api_names import OWN_KEY_MIN, OWN_TAG_MIN
from tarry.protocol.schema import ApiSchema, Field, Versions, load_all
from tarry.protocol.schema.notation import SCALARS, VERSION_LAST, parse_versions, snake_case

# The release whose descriptors our schema follows; newer jars have more versions.
RELEASE = "4.4"

TYPES = {
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint16": "u16",
    "uint32": "u32",
    "float64": "f64",
    "uuid": "uuid",
    "string": "string",
    "bytes": "bytes",
    "records": "records",
}
ZERO_DEFAULTS = (None, "", "0", "false")

APIS = [api for api in load_all() if api.key < OWN_KEY_MIN]


def client_jar() -> Path:
    """The kafka-clients jar of the release we follow, else the newest 4.x; skips if none."""
    named = os.environ.get("TARRY_KAFKA_JARS", "")
    roots = [Path(named)] if named else []
    roots.append(Path.home() / ".m2" / "repository" / "org" / "apache" / "kafka")
    jars = []
    for root in roots:
        if root.is_file():
            jars.append(root)
        elif root.is_dir():
            jars += sorted(root.rglob("kafka-clients-4.*.jar"))
    jars = [jar for jar in jars if re.search(r"-4\.\d+\.\d+\.jar$", jar.name)]
    if not jars:
        pytest.skip("no kafka-clients jar in TARRY_KAFKA_JARS or Maven's repository")
    matching = [jar for jar in jars if f"-{RELEASE}." in jar.name]
    return (matching or jars)[-1]


@pytest.fixture(scope="module")
def jar() -> Path:
    return client_jar()


def descriptor(jar: Path, name: str) -> dict[str, Any]:
    with zipfile.ZipFile(jar) as archive:
        text = archive.read(f"common/message/{name}.json").decode("utf-8")
    text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\s//.*$", "", text, flags=re.MULTILINE)
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def default_of(field: dict[str, Any]) -> str | None:
    default = field.get("default")
    if default is None:
        return None
    text = str(default).lower() if isinstance(default, bool) else str(default)
    if text.startswith("0x"):
        text = str(int(text, 16))
    return None if text in ZERO_DEFAULTS else text


def facts_of_descriptor(field: dict[str, Any], around: Versions) -> dict[str, Any]:
    versions = parse_versions(field["versions"]).within(around)
    nullable = field.get("nullableVersions", "none")
    tagged = field.get("taggedVersions", "none")
    type_name = field["type"].removeprefix("[]")
    if tagged != "none":
        assert parse_versions(tagged).within(around) == versions
    if nullable != "none":
        nullable = parse_versions(nullable).within(versions)
    return {
        "name": snake_case(field["name"]),
        "type": TYPES.get(type_name, type_name),
        "is_array": field["type"].startswith("[]"),
        "versions": versions,
        "nullable": None if nullable == "none" or nullable.first > nullable.last else nullable,
        "default": default_of(field),
        "tag": field.get("tag"),
        "is_key": bool(field.get("mapKey", False)),
        "is_ignorable": bool(field.get("ignorable", False)),
    }


def facts_of_schema(item: Field) -> dict[str, Any]:
    return {
        "name": item.name,
        "type": item.type_name,
        "is_array": item.is_array,
        "versions": item.versions,
        "nullable": item.nullable,
        "default": None if item.default in ZERO_DEFAULTS else item.default,
        "tag": item.tag,
        "is_key": item.is_key,
        "is_ignorable": item.is_ignorable,
    }


def compare_fields(
    api: ApiSchema, items: list[Field], theirs: list[dict[str, Any]], around: Versions, common: Any
) -> None:
    present = [
        field
        for field in theirs
        if (versions := parse_versions(field["versions"]).within(around)).first <= versions.last
    ]
    items = [item for item in items if item.tag is None or item.tag < OWN_TAG_MIN]
    assert [item.name for item in items] == [snake_case(field["name"]) for field in present]
    for item, field in zip(items, present, strict=True):
        ours, facts = facts_of_schema(item), facts_of_descriptor(field, around)
        if item.type_name not in SCALARS:
            # Kafka may give one name to different structs of a request and its response; ours are
            # one namespace, so one of them bears a longer name.
            assert facts["type"] in ours.pop("type")
            name = facts.pop("type")
        assert ours == facts
        if item.type_name not in SCALARS:
            inner = field.get("fields") or common[name]
            compare_fields(api, api.structs[item.type_name].fields, inner, item.versions, common)


@pytest.mark.parametrize("kind", ["Request", "Response"])
@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
def test_the_schema_agrees_with_kafkas_descriptor(api: ApiSchema, kind: str, jar: Path) -> None:
    theirs = descriptor(jar, f"{api.name}{kind}")
    struct = api.request if kind == "Request" else api.response
    common = {item["name"]: item["fields"] for item in theirs.get("commonStructs", [])}
    flexible = theirs["flexibleVersions"]

    assert theirs["apiKey"] == api.key
    assert theirs["name"] == struct.name
    assert api.flexible == (
        None if flexible == "none" else parse_versions(flexible).within(api.versions)
    )
    compare_fields(api, struct.fields, theirs["fields"], api.versions, common)


@pytest.mark.parametrize("api", APIS, ids=[api.name for api in APIS])
def test_the_schema_has_every_stable_version(api: ApiSchema, jar: Path) -> None:
    theirs = descriptor(jar, f"{api.name}Request")
    versions = parse_versions(theirs["validVersions"])
    last = versions.last - 1 if theirs.get("latestVersionUnstable") else versions.last
    if f"-{RELEASE}." not in jar.name:
        pytest.skip(f"{jar.name} is not of release {RELEASE}")

    assert last < VERSION_LAST
    assert api.versions == Versions(versions.first, last)


def test_no_descriptor_of_our_apis_has_the_headers_changed(jar: Path) -> None:
    request = descriptor(jar, "RequestHeader")
    response = descriptor(jar, "ResponseHeader")

    assert [(field["name"], field["type"]) for field in request["fields"]] == [
        ("RequestApiKey", "int16"),
        ("RequestApiVersion", "int16"),
        ("CorrelationId", "int32"),
        ("ClientId", "string"),
    ]
    assert request["fields"][3]["flexibleVersions"] == "none"
    assert [(field["name"], field["type"]) for field in response["fields"]] == [
        ("CorrelationId", "int32")
    ]
