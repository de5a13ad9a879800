"""`tarry timer picture`: what it draws of a wheel, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from tarry.cli import main
from tarry.cli.picture.page import PALETTE, draw, span, style
from tarry.cli.picture.rings import DOT_STEP, rows_for
from tarry.cli.picture.steps import steps_of, wheel_of
from tarry.cli.picture.svg import Point, Sector
from tarry.cli.timer import picture

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*arguments: str) -> ElementTree.Element:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return ElementTree.fromstring(result.stdout)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(picture, arguments)


def texts(root: ElementTree.Element, class_: str) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text") if one.get("class") == class_]


def classes(root: ElementTree.Element, class_: str) -> int:
    return sum(1 for one in root.iter() if one.get("class") == class_)


# --- What is drawn


def test_without_options_it_is_the_cascade_of_an_entry_due_in_445_ms() -> None:
    root = drawn()

    assert texts(root, "ink") == [
        "start at 0 ms",
        "advance to 400 ms",
        "advance to 440 ms",
        "advance to 445 ms",
    ]
    assert texts(root, "time") == ["0", "400", "440", "445"]
    assert texts(root, "count") == ["400 ms", "440 ms", "445 ms"]
    assert texts(root, "place") == ["level 2, slot 1", "level 1, slot 2", "level 0, slot 5"]


def test_the_steps_tell_where_the_entry_went() -> None:
    steps = steps_of(wheel_of(0, 1, 20), 0, [445], None)

    assert [step.sentences() for step in steps] == [
        [
            "the entry due at 445 ms goes to level 2, slot 1",
            "for what is due from 400 to 799 ms",
        ],
        [
            "the entry due at 445 ms falls to level 1, slot 2",
            "for what is due from 440 to 459 ms",
        ],
        ["the entry due at 445 ms falls to level 0, slot 5", "for what is due at 445 ms"],
        ["the entry due at 445 ms is handed out"],
    ]


def test_several_moves_are_counted() -> None:
    steps = steps_of(wheel_of(0, 1, 20), 0, [-3, 5, 5, 445, 450], [4, 400])

    assert [step.sentences() for step in steps] == [
        ["4 added, 1 due; 4 pending"],
        ["nothing happened; 4 pending"],
        ["2 fell, 2 due; 2 pending"],
    ]


def test_entries_that_go_one_way_together_are_told_together() -> None:
    steps = steps_of(wheel_of(0, 1, 20), 0, [7, 7, 7], [7])

    assert [step.sentences() for step in steps] == [
        ["3 entries go to level 0, slot 7", "for what is due at 7 ms"],
        ["3 entries are handed out"],
    ]


def test_an_entry_that_was_due_already_is_told() -> None:
    (step,) = steps_of(wheel_of(100, 1, 20), 100, [99], [])

    assert step.sentences() == ["the entry due at 99 ms was due before being added"]
    assert len(step.view) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("-d", "1..500/7", "-a", "100,200"),
        ("-d", "1..9000/3,1..60,900,900,900"),
        ("-d", "1..300", "--size", "2", "--tick", "3"),
        ("-d", "1..300", "--size", "60"),
        ("-d", "5", "--now", "-20"),
    ],
    ids=" ".join,
)
def test_every_pending_entry_is_a_dot_or_counted(arguments: tuple[str, ...]) -> None:
    root = drawn(*arguments)

    # The last dot is the legend's.
    dots = classes(root, "entry") - 1
    numbers = sum(int(count) for count in texts(root, "count") if " ms" not in count)
    headings = texts(root, "muted")
    pending = sum(int(found) for line in headings for found in re.findall(r"(\d+) pending", line))
    single = sum(1 for line in headings if line.startswith("the entry due"))
    assert dots + numbers == pending + single


def test_a_picture_with_many_entries_has_room_for_all_its_dots() -> None:
    sector = Sector(Point(0, 0), 60, 96, 0, 18)

    fitting = [count for count in range(1, 200) if rows_for(sector, count)]

    assert fitting == list(range(1, len(fitting) + 1))
    for count in fitting:
        rows = rows_for(sector, count)
        assert sum(rows) == count
        assert (sector.outer - sector.inner) / len(rows) >= DOT_STEP


def test_a_long_queue_tells_how_much_is_not_shown() -> None:
    root = drawn("-d", "1..19")

    assert len(texts(root, "place")) == 7
    assert "and 12 more" in texts(root, "muted")


def test_an_arrow_shows_each_fall_unless_there_are_too_many() -> None:
    few, many = drawn("-d", "1..8", "-a", "8"), drawn("-d", "1..9", "-a", "9")

    # A polygon is the head of an arrow.
    assert len(list(few.iter(f"{SVG}polygon"))) == 8
    assert list(many.iter(f"{SVG}polygon")) == []


def test_lengths_of_time_are_told_in_the_largest_unit_that_is_exact() -> None:
    told = [span(time_ms) for time_ms in (1, 400, 8000, 160_000, 120_000, 7_200_000, 86_400_000)]

    assert told == ["1 ms", "400 ms", "8 s", "160 s", "2 min", "2 h", "1 d"]


# --- What kind of file it is


def test_it_has_a_title_and_a_description_that_readers_of_screens_are_led_to() -> None:
    root = drawn()

    ids = (root.get("aria-labelledby") or "").split()
    named = [one.text or "" for one in root if one.get("id") in ids]
    assert root.get("role") == "img"
    assert len(named) == 2
    assert named[0] == "An entry due at 445 ms in a wheel of 20 buckets of 1 ms"
    assert "advance to 440 ms: the entry due at 445 ms falls to level 0, slot 5" in named[1]


def test_the_same_wheel_gives_the_same_bytes() -> None:
    arguments = ("-d", "1..2000/3", "-a", "77,500")

    assert run(*arguments).stdout_bytes == run(*arguments).stdout_bytes


def test_a_file_holds_what_stdout_would(tmp_path: Path) -> None:
    file = tmp_path / "wheel.svg"

    result = run("-d", "5,6", "-o", str(file))

    assert result.stdout == ""
    assert file.read_bytes() == run("-d", "5,6").stdout_bytes


def test_every_colour_has_its_dark_one_and_text_can_be_read_on_what_it_stands_on() -> None:
    grounds = {
        "ink": "card",
        "time": "hub",
        "count": "held",
        "place": "held",
        "muted": "card",
        "small": "hub",
        "slot": "card",
    }
    for scheme in (2, 3):
        fills = {row[0]: row[scheme] for row in PALETTE if row[1] == "fill"}
        for words, ground in grounds.items():
            assert contrast(fills[words], fills[ground]) >= 4.5, (words, scheme)


def contrast(first: str, second: str) -> float:
    """The ratio of WCAG 2: 1 for the same colour, 21 for black on white."""
    brighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_its_style_touches_nothing_of_a_page_around_it() -> None:
    rules = re.findall(r"([^{}]+)\{", style().replace("@media(prefers-color-scheme:dark){", ""))

    selectors = [selector.strip() for rule in rules for selector in rule.split(",")]
    assert selectors
    assert [one for one in selectors if not one.startswith(".tarry-wheel ")] == []


def test_every_class_that_is_drawn_has_a_rule() -> None:
    steps = steps_of(wheel_of(0, 1, 20), 0, [*range(1, 300), 445, 445], [3, 20])
    root = ElementTree.fromstring(draw(steps))

    used = {name for one in root.iter() for name in (one.get("class") or "").split()}
    missing = [name for name in sorted(used - {"tarry-wheel"}) if f".{name}" not in style()]
    assert missing == []


# --- What is refused


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["-d", "soon"], 2, "'soon' is no time; write milliseconds: 445, or 10..500"),
        (["-d", "1.5"], 2, "'1.5' is no time"),
        (["-d", "5/2"], 2, "'5/2' is no time"),
        (["-d", "1..9/0"], 2, "'1..9/0' is no time"),
        (["-d", ""], 2, "'' is no time"),
        (["-d", "9..1"], 2, "'9..1' holds no time; write the smaller one first"),
        (["-d", "9" * 30], 2, "more than 100 years away"),
        (["-d", "1.." + "9" * 30], 2, "more than 100 years away"),
        (["-d", "1..99999"], 2, "more than the 10,000 times"),
        (["-d", "1..6000", "-d", "1..6000"], 2, "more than the 10,000 entries"),
        (["--now", "1" + "0" * 15], 2, "more than 100 years away"),
        (["-a", "5,4"], 2, "--advance 4 comes after 5; time goes forward"),
        (["--now", "9", "-a", "4"], 2, "--advance 4 comes after 9"),
        (["-a", "5", "--cascade"], 2, "exclude each other"),
        (["--tick", "0"], 2, "a tick of 0 ms; take 1 to 3600000"),
        (["--size", "1"], 2, "at least 2"),
        (["--size", "61"], 2, "at most 60"),
        (["-d", "1..300", "--cascade"], 2, "more than the 12 steps"),
        (["-d", "99999999999", "--size", "3"], 2, "24 levels and a picture has room for 8"),
        (["-o", "nowhere/at/all.svg"], 1, "cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(
    arguments: list[str], code: int, sentence: str
) -> None:
    result = run(*arguments)

    assert result.exit_code == code
    assert sentence in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


# --- How it is found


def test_a_mistyped_command_names_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["timer", "pictures"])

    assert code == 2
    assert "did you mean 'picture'?" in capsys.readouterr().err


def test_its_help_shows_the_examples_as_they_were_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main.run(["timer", "picture", "--help"])

    written = (picture.epilog or "").replace("\b", "").strip().splitlines()
    shown = capsys.readouterr().out.splitlines()
    assert code == 0
    assert [line for line in written if ("  " + line).rstrip() not in shown] == []


@pytest.mark.parametrize("line", re.findall(r"tarry timer picture(.*)", picture.epilog or ""))
def test_every_example_of_the_help_runs(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = line.split("  ", maxsplit=1)[0].partition(">")[0].split()

    result = run(*arguments)

    assert result.exit_code == 0
