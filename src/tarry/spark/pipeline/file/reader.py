"""Pipeline file: read, typed, and refused with all of its mistakes before anything starts."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tarry.base.spelling import Spelling
from tarry.spark.pipeline.file.clashes import clashes_of
from tarry.spark.pipeline.file.keys import REQUIRED, SECTIONS, TOP, FileKey, FileSection
from tarry.spark.pipeline.file.mistakes import Mistake, PipelineRefused
from tarry.spark.pipeline.file.sections import (
    AggregateSection,
    ArchiveSection,
    CleanSection,
    DecodeSection,
    DeduplicateSection,
    Pipeline,
    SourceSection,
    WaitSection,
    make_mistake,
)
from tarry.spark.pipeline.file.toml_lines import KeyPath, key_lines
from tarry.spark.pipeline.file.values import NAME, toml_word

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE: Final = "TARRY_BOOTSTRAP_SERVERS"

AT_LINE: Final = re.compile(r" \(at line (\d+), column \d+\)$")


def read_pipeline(path: Path, environment: Mapping[str, str] = os.environ) -> Pipeline:
    """Read a pipeline file.  Raises PipelineRefused with every mistake, or OSError."""
    text = path.read_bytes()
    try:
        # Editors of some systems write a mark at the begin.
        decoded = text.decode("utf-8-sig")
        parsed = tomllib.loads(decoded)
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise PipelineRefused(path, [Mistake(line, "", "the text is not UTF-8")]) from None
    except tomllib.TOMLDecodeError as error:
        raise PipelineRefused(path, [_not_toml(str(error))]) from None
    except RecursionError:
        raise PipelineRefused(path, [Mistake(0, "", "the text is nested too deeply")]) from None
    reader = _FileReader(path, key_lines(decoded.replace("\r\n", "\n")))
    pipeline = reader.pipeline(parsed, environment)
    if pipeline is None or reader.mistakes:
        raise PipelineRefused(path, reader.mistakes)
    return pipeline


def _not_toml(told: str) -> Mistake:
    found = AT_LINE.search(told)
    sentence = AT_LINE.sub("", told).removesuffix(" (at end of document)")
    return Mistake(int(found[1]) if found else 0, "", f"not TOML: {sentence}")


class _FileReader:
    """Reader of one file: it notes mistakes and goes on."""

    def __init__(self, path: Path, lines: Mapping[KeyPath, int]) -> None:
        self.mistakes: list[Mistake] = []
        self._path = path
        self._folder = path.absolute().parent
        self._lines = lines

    def pipeline(self, parsed: dict[str, Any], environment: Mapping[str, str]) -> Pipeline | None:
        known = {section.name: section for section in SECTIONS}
        names = [*known, *(key.name for key in TOP.keys)]
        for name in parsed:
            if name not in names:
                self._unknown((name,), "key or table", names)
        top = self._values(TOP, {key.name: parsed.get(key.name) for key in TOP.keys}, ())
        found = {name: self._section(section, parsed) for name, section in known.items()}
        if self.mistakes:
            return None
        source = found["source"]
        source["bootstrap"] = (
            source["bootstrap"] or environment.get(BOOTSTRAP_VARIABLE, "") or DEFAULT_BOOTSTRAP
        )
        source["start"] = source.pop("from")
        for one in found["wait"]:
            one["start"] = one.pop("from")
        archive = found["archive"]
        if archive is not None and archive["topics"] is None:
            archive["topics"] = source["topics"]
        pipeline = Pipeline(
            **top,
            path=self._path,
            lines=self._lines,
            source=SourceSection(**source),
            decode=None if found["decode"] is None else DecodeSection(**found["decode"]),
            spark=found["spark"] or {},
            derive=found["derive"] or {},
            check=found["check"] or {},
            deduplicate=(
                None if found["deduplicate"] is None else DeduplicateSection(**found["deduplicate"])
            ),
            aggregates=tuple(AggregateSection(**one) for one in found["aggregate"]),
            waits=tuple(WaitSection(**one) for one in found["wait"]),
            clean=None if found["clean"] is None else CleanSection(**found["clean"]),
            archive=None if archive is None else ArchiveSection(**archive),
        )
        self.mistakes += clashes_of(pipeline)
        return pipeline

    def _section(self, section: FileSection, parsed: Mapping[str, Any]) -> Any:
        """Return the values of a section; None if it is not there."""
        given = parsed.get(section.name)
        if section.is_many:
            return self._many(section, [] if given is None else given)
        if given is None:
            if section.is_required:
                self._note((section.name,), "is missing: it says what is read")
            return None
        if not isinstance(given, dict):
            self._note((section.name,), f"is {toml_word(given)}, and it must be a table")
            return None
        if section.names is not None:
            return self._named(section, section.names.read, given)
        return self._table(section, given, (section.name,))

    def _many(self, section: FileSection, given: Any) -> list[dict[str, Any]]:
        """Return the values of each section of this name."""
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            self._note((section.name,), f"must be written as [[{section.name}]], once for each")
            return []
        places = enumerate(given)
        return [self._table(section, one, (section.name, place)) for place, one in places]

    def _table(self, section: FileSection, given: Mapping[str, Any], at: KeyPath) -> dict[str, Any]:
        names = [key.name for key in section.keys]
        for name in given:
            if name not in names:
                self._unknown((*at, name), "key", names)
        return self._values(section, given, at)

    def _values(
        self, section: FileSection, given: Mapping[str, Any], at: KeyPath
    ) -> dict[str, Any]:
        return {key.name: self._value(key, given.get(key.name), at) for key in section.keys}

    def _value(self, key: FileKey, value: Any, at: KeyPath) -> Any:
        if value is None and key.default is REQUIRED:
            self._note((*at, key.name), f"is missing. {key.about}")
            return None
        if value is None:
            return key.default
        return self._read(key.kind.read, value, (*at, key.name))

    def _named(self, section: FileSection, read: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return values under the user's own names."""
        for name in given:
            if not NAME.fullmatch(name):
                sentence = "a name may have letters, digits, dots, dashes and underscores"
                self._note((section.name, name), sentence)
        return {name: self._read(read, each, (section.name, name)) for name, each in given.items()}

    def _read(self, read: Any, value: Any, at: KeyPath) -> Any:
        try:
            return read(value, self._folder)
        except ValueError as error:
            self._note(at, str(error))
            return None

    def _unknown(self, at: KeyPath, what: str, known: list[str]) -> None:
        near = Spelling(known).near(str(at[-1]))
        hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
        self._note(at, f"there is no such {what}; {hint}")

    def _note(self, at: KeyPath, sentence: str) -> None:
        self.mistakes.append(make_mistake(self._lines, at, sentence))
