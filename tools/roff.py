"""Roff of man pages: sections, paragraphs, items and literal text, with all that is special in
roff escaped."""

from __future__ import annotations


class Page:
    """One page of section 1 as it grows."""

    def __init__(self, title: str, source: str) -> None:
        self._lines = [
            '.\\" Written by tools/generate_commands.py from the commands; change those.',
            f'.TH {title.upper()} 1 "" "{source}" "User Commands"',
        ]

    @staticmethod
    def escaped(text: str) -> str:
        """The text as roff shows it: backslashes and dashes as they are, no line a request."""
        found = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
        found = found.replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
        return f"\\&{found}" if found.startswith(".") else found

    def line(self, raw: str) -> None:
        """A line of roff."""
        self._lines.append(raw)

    def section(self, title: str) -> None:
        self.line(f'.SH "{self.escaped(title)}"')

    def subsection(self, title: str) -> None:
        self.line(f'.SS "{self.escaped(title)}"')

    def text(self, paragraph: str) -> None:
        self._lines += [".PP", self.escaped(paragraph)]

    def item(self, term: str, meaning: str) -> None:
        """A term, and what it is."""
        self._lines += [".TP", f"\\fB{self.escaped(term)}\\fR", self.escaped(meaning)]

    def literal(self, lines: list[str]) -> None:
        """Lines as they are."""
        self._lines += [".PP", ".nf", *(self.escaped(line) for line in lines), ".fi"]

    def done(self) -> str:
        return "\n".join(self._lines) + "\n"
