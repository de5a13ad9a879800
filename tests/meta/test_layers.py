"""What pyproject.toml enforces is what ARCHITECTURE.md draws."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# From the top; siblings of a line never import each other.
LAYERS = [
    ["cli"],
    ["console", "spark", "testing", "bench"],
    ["simulation"],
    ["runtime", "client"],
    ["broker"],
    ["partition", "group", "schedule", "cluster", "link"],
    ["log"],
    ["protocol", "records", "purgatory"],
    ["wire", "timer"],
    ["base"],
]

BANNED = ["asyncio", "os", "random", "secrets", "socket", "threading", "time", "uuid"]


def tables() -> dict[str, object]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        tool: dict[str, object] = tomllib.load(file)["tool"]
    return tool


def test_import_linter_holds_the_layers() -> None:
    contracts = tables()["importlinter"]["contracts"]  # type: ignore[index]
    (contract,) = (each for each in contracts if each["type"] == "layers")

    enforced = [re.findall(r"\w+", layer) for layer in contract["layers"]]

    assert enforced == LAYERS
    assert contract["exhaustive"]


def test_architecture_draws_the_layers_that_are_enforced() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()

    drawn = re.findall(r"^(\d)  ([a-z]+(?: \| [a-z]+)*)", text, re.MULTILINE)

    assert [int(number) for number, _ in drawn] == list(range(9, -1, -1))
    assert [layer.split(" | ") for _, layer in drawn] == LAYERS


def test_architecture_names_every_package_that_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = sorted(path.parent.name for path in ROOT.glob("src/tarry/*/__init__.py"))

    missing = [name for name in packages if f"`{name}/`" not in text]

    assert missing == []


def test_every_folder_of_the_package_is_a_package_of_a_layer() -> None:
    known = [name for layer in LAYERS for name in layer]
    folders = sorted({path.relative_to(ROOT / "src/tarry").parts[0] for path in modules()})

    assert [name for name in folders if name not in known] == []


def test_the_banned_modules_are_banned() -> None:
    banned = tables()["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]  # type: ignore[index]

    assert [name for name in BANNED if name not in banned] == []


def modules() -> list[Path]:
    return [path for path in ROOT.glob("src/tarry/*/**/*.py") if "__pycache__" not in path.parts]
