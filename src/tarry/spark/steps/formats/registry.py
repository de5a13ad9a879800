"""Schemas of a registry, by id, over its HTTP API.

A schema of an id never changes, so it is kept: in the process and in a directory of the user's.  A
registry that is down stops only what needs a schema that nobody has asked for yet.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable
from functools import lru_cache
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from tarry.spark.steps.formats.values import BadValue

log = logging.getLogger("tarry.spark")

ANSWER_SECONDS_MAX: Final = 10
# Pauses between attempts.
PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0)
# So long an id that the registry does not know is not asked for again.
UNKNOWN_S: Final = 60.0
NOT_FOUND: Final = 404
# So many of them are remembered: frames may have any number.
UNKNOWN_MAX: Final = 10_000
# Of an answer: no schema comes near it.
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024

# What a registry says of an id that it does not have, in the body beside HTTP's 404.
UNKNOWN_SCHEMA: Final = 40_403

# What to look at, by HTTP's code.
HINTS: Final = {
    401: "; give the address a user, as in http://USER:PASSWORD@HOST",
    403: "; the user of the address may not read schemas",
    NOT_FOUND: "; it does not answer as a registry does, so see that the address is right",
}


class RegistryUnreachable(Exception):
    """Registry that does not answer; the records are well, so the task fails and is run again."""


class SchemaRegistry:
    """Schemas of one registry."""

    def __init__(self, url: str, cache: Path, pause: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        # Without the password: it is told in sentences.
        self.url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if parts.username is not None:
            # An address has signs such as "@" by their numbers.
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(user).decode()}"
        self._pause = pause
        self._directory = cache / hashlib.sha256(self.url.encode()).hexdigest()[:16]
        self._known: dict[int, dict[str, Any]] = {}
        self._unknown_s: dict[int, float] = {}

    def find(self, schema_id: int) -> dict[str, Any]:
        """Return what the registry says of an id: `schema`, `schemaType`, `references`.

        Raises BadValue for an id that it does not know, RegistryUnreachable where it is not told.
        What else answers at its address, such as a proxy while it is away, knows nothing of ids:
        no record is rejected for that.
        """
        found = self._known.get(schema_id) or self._read_file(schema_id)
        if found is None:
            asked_s = self._unknown_s.get(schema_id)
            if asked_s is None or time.monotonic() - asked_s >= UNKNOWN_S:
                found = self._ask(schema_id)
            if found is None:
                if len(self._unknown_s) >= UNKNOWN_MAX:
                    del self._unknown_s[next(iter(self._unknown_s))]
                self._unknown_s.setdefault(schema_id, time.monotonic())
                raise BadValue(f"the registry {self.url} knows no schema {schema_id}")
            self._write_file(schema_id, found)
        self._known[schema_id] = found
        return found

    def _ask(self, schema_id: int) -> dict[str, Any] | None:
        self._unknown_s.pop(schema_id, None)
        request = Request(f"{self.url}/schemas/ids/{schema_id}", headers=self._headers)
        told = ""
        for pause_s in (*PAUSES_S, 0.0):
            try:
                with urlopen(request, timeout=ANSWER_SECONDS_MAX) as answer:
                    found = json.loads(answer.read(ANSWER_BYTES_MAX))
                if isinstance(found, dict) and isinstance(found.get("schema"), str):
                    return found
                told = "its answer has no schema"
            except HTTPError as flaw:
                if flaw.code == NOT_FOUND and _is_of_a_registry(flaw):
                    return None
                told = f"HTTP {flaw.code} {flaw.reason}{HINTS.get(flaw.code, '')}"
            except (URLError, HTTPException, OSError, ValueError, RecursionError) as flaw:
                told = str(getattr(flaw, "reason", flaw)) or type(flaw).__name__
            self._pause(pause_s)
        raise RegistryUnreachable(
            f"the schema registry {self.url} does not tell schema {schema_id}: {told}. The records "
            "wait in their topic; see that it runs, and start the query again"
        )

    def _file(self, schema_id: int) -> Path:
        return self._directory / f"{schema_id}.json"

    def _read_file(self, schema_id: int) -> dict[str, Any] | None:
        try:
            found = json.loads(self._file(schema_id).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "schema" in found else None

    def _write_file(self, schema_id: int, found: dict[str, Any]) -> None:
        """Keep a schema for the next process; where that fails, it will ask."""
        path = self._file(schema_id)
        new = path.with_suffix(f".{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(json.dumps(found), encoding="utf-8")
            new.replace(path)
        except OSError as flaw:
            log.info("a schema is not kept in %s: %s", path.parent, flaw)


def _is_of_a_registry(flaw: HTTPError) -> bool:
    """Tell whether a registry itself says that it does not have a schema."""
    try:
        found = json.loads(flaw.read(ANSWER_BYTES_MAX))
    except (HTTPException, OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("error_code") == UNKNOWN_SCHEMA


@lru_cache(maxsize=8)
def registry_at(url: str) -> SchemaRegistry:
    """Return this process's view of a registry."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return SchemaRegistry(url, Path(base) / "tarry" / "schemas")
