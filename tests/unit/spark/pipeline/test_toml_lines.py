"""Lines of keys in TOML."""

from __future__ import annotations

import tomllib

import pytest

from tarry.spark.pipeline.file.toml_lines import key_lines

ALL_KINDS = '''\
# a comment with = and [brackets]
name = "orders" # "and" another
texts = [
    "one",  # [
    'tw#o',
    """
three = 3
""", ]

a.b = { c = "}", "d e" = [1, 2], f = """x"y""" }
when = 2026-11-22 08:00:00

[check]
"quoted.name" = "x = '\\"' # no comment"
other = \'\'\'
[not a table]''\'\'\'

[[aggregate]]
name = 'first'
[aggregate.values]
sum = "1"
[[aggregate]]
  name = "second"
  values = { "x" = '''
ALL_KINDS = ALL_KINDS.rstrip() + " 1.5e3 }\n"


def paths_of(value, path=()):
    if isinstance(value, (dict, list)):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, name)
            yield from paths_of(each, (*path, name))


def test_every_key_has_its_line():
    lines = key_lines(ALL_KINDS)

    assert sorted(lines, key=str) == sorted(paths_of(tomllib.loads(ALL_KINDS)), key=str)
    assert lines["name",] == 2
    assert [lines["texts", place] for place in range(3)] == [4, 5, 6]
    assert lines["a", "b", "d e"] == 10
    assert lines["when",] == 11
    assert lines["check", "quoted.name"] == 14
    assert lines["check", "other"] == 15
    assert lines["aggregate", 0, "values", "sum"] == 21
    assert lines["aggregate", 1, "name"] == 23
    assert lines["aggregate", 1, "values", "x"] == 24


@pytest.mark.parametrize(
    "text", ["", "\n", "# only\n# comments", "a=1", "a = '''\n'''", "[a]\n[b]"]
)
def test_short_texts_are_read_to_their_end(text):
    assert sorted(key_lines(text)) == sorted(paths_of(tomllib.loads(text)))
