"""Roff of man pages: sections, paragraphs, items and literal text, all escaped."""

from __future__ import annotations


class Page:
    """Page of section 1 as it grows."""

    def __init__(self, title: str, source: str) -> None:
        self._lines = [
            '.\\" Written by tools/generate_commands.py from the commands; change those.',
            f'.TH {title.upper()} 1 "" "{source}" "User Commands"',
        ]

    @staticmethod
    def escaped(text: str) -> str:
        """Escape the text: roff shows backslashes and dashes, and takes no line for a request."""
        found = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
        found = found.replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
        return f"\\&{found}" if found.startswith(".") else found

    def line(self, raw: str) -> None:
        """Add a line of roff."""
        self._lines.append(raw)

    def section(self, title: str) -> None:
        self.line(f'.SH "{self.escaped(title)}"')

    def subsection(self, title: str) -> None:
        self.line(f'.SS "{self.escaped(title)}"')

    def text(self, paragraph: str) -> None:
        self._lines += [".PP", self.escaped(paragraph)]

    def item(self, term: str, meaning: str) -> None:
        """Add a term with its meaning."""
        self._lines += [".TP", f"\\fB{self.escaped(term)}\\fR", self.escaped(meaning)]

    def literal(self, lines: list[str]) -> None:
        """Add lines as they are."""
        self._lines += [".PP", ".nf", *(self.escaped(line) for line in lines), ".fi"]

    def done(self) -> str:
        return "\n".join(self._lines) + "\n"
