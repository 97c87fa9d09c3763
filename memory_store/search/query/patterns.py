"""Patterns: what a literal and a structural search try on opened texts, and what they look up.

Boundary: reads opened text; keeps of it what it matched, for one call. Patterns may be secrets and
are never logged or quoted.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Protocol

from memory_store.errors import BadInputError
from memory_store.records import Match, Memory, base_type
from memory_store.search.query.language import is_delimited
from memory_store.search.query.regular_expressions import Needs, needs
from memory_store.text.identifiers import CODE
from memory_store.text.words import words as words_of

if TYPE_CHECKING:
    from memory_store.code.patterns import StructuralPattern

MOST_PATTERN = 1_000  # characters: more is a program, not a pattern
BY_LINES = "(?m)"  # RE2 has no option for it
MAX_MEMORY = 8 << 20  # bytes RE2 may take for one pattern
MOST_MATCHES = 200  # marked in one text, and named of one memory
MOST_CONTEXT, LEAD = 200, 60  # characters of a line that a match is shown in, and before it
ALL_MATCHES = 10_000  # named of one memory where all are asked for
MOST_SHOWN = 2_000  # characters of a match
LEAST_MARKED = 2  # characters
MOST_NAMED = 4  # languages of a message


class Marks(Protocol):
    """See :class:`memory_store.search.answer.previews.Marker`."""

    def spans(self, text: str) -> list[tuple[int, int]]: ...

    def met(self, text: str) -> set[str]: ...

    def called(self, path: str) -> set[str]: ...

    def most(self, text: str) -> float: ...

    def hits(self, text: str) -> list[tuple[int, int, str]]: ...


class Pattern(Protocol):
    """What a search for a pattern asks of one."""

    needed: Needs
    """What a memory that it matches is sure to hold."""

    def found(
        self, memory: Memory, *, titled: bool, most: int = MOST_MATCHES
    ) -> tuple[Match, ...] | None:
        """What it matches in a memory, the first ``most``; by its title, too, where that is no
        file's mere name (``titled``); ``None`` where it matches nothing."""
        ...

    def marker(self, matches: Sequence[Match]) -> Marks:
        """What marks in parts of a memory what it has matched there."""
        ...

    def unread(self) -> str:
        """Why memories were not compared with it; empty where all were."""
        ...


class PatternMarker:
    """Marks what a pattern matches (see :class:`memory_store.search.answer.previews.Marker`)."""

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern

    def matches(self, text: str) -> bool:
        """Whether it is anywhere in a text."""
        return self._pattern.search(text) is not None

    def spans(self, text: str, most: int = MOST_MATCHES) -> list[tuple[int, int]]:
        spans = (match.span() for match in self._pattern.finditer(text))
        return [*islice((one for one in spans if one[0] < one[1]), most)]

    def met(self, text: str) -> set[str]:
        return {text[start:end] for start, end in self.spans(text)}

    called = met

    def most(self, text: str) -> float:
        return len(text)  # what it matches does not overlap

    def hits(self, text: str) -> list[tuple[int, int, str]]:
        match = self._pattern.search(text)
        return [] if match is None else [(*match.span(), match.group())]


class Expression:
    """A regular expression, as RE2 reads it."""

    def __init__(self, query: str) -> None:
        """Raises :class:`BadInputError` (parameter ``q``) for one that is malformed or too long."""
        source, self._marker = compiled(query)
        self.needed = needs(source)

    def found(
        self, memory: Memory, *, titled: bool, most: int = MOST_MATCHES
    ) -> tuple[Match, ...] | None:
        spans = self._marker.spans(memory.text, most)
        tried = [memory.text, memory.title][: 1 + titled]
        if not spans and not any(map(self._marker.matches, tried)):
            return None
        return tuple(matches_at(memory.text, spans))

    def marker(self, matches: Sequence[Match]) -> PatternMarker:
        return self._marker

    def unread(self) -> str:
        return ""


class Structure:
    """Code with holes, as ast-grep reads it; ``language`` is the one it is in (``None``: that of
    each file)."""

    def __init__(self, query: str, language: str | None) -> None:
        """Raises :class:`BadInputError`, and ExtraMissingError where ast-grep is not there."""
        from memory_store.code.patterns import (
            LANGUAGES,
            StructuralPattern,
            known_language,
            literal_part,
        )

        _refuse_long(query)
        self._pattern: StructuralPattern = StructuralPattern(query.strip())
        self._language = None if language is None else known_language(language)
        self._languages = LANGUAGES if self._language is None else (self._language,)
        self._unread = Counter[str]()  # language → files
        self._refuse_unclosed()
        if not any(map(self._pattern.reads, self._languages)):
            raise BadInputError(f"q: {self._why_unread(self._language)}", "q")
        words = words_of(literal_part(query))
        self.needed = Needs(frozenset(word.text for word in words))

    def found(
        self, memory: Memory, *, titled: bool, most: int = MOST_MATCHES
    ) -> tuple[Match, ...] | None:
        if base_type(memory.type) != CODE:
            return None
        language = str(memory.metadata.get("language", ""))
        if language not in self._languages:
            return None
        if not self._pattern.reads(language):
            self._unread[language] += 1
            return None
        nodes = self._pattern.matches(memory.text, language, most)
        places = [(one.start, one.end) for one in nodes]
        captured = [one.captures for one in nodes]
        return tuple(matches_at(memory.text, places, captured)) or None

    def _refuse_unclosed(self) -> None:
        """Grammars that take nearly any text would take half a pattern, too, and match nothing."""
        from memory_store.code.patterns import STRICT, unclosed

        source = self._pattern.source
        place = unclosed(source) if self._language in (None, *STRICT) else None
        if place is not None:
            (at,) = matches_at(source, [(place, place + 1)])
            raise BadInputError(
                f"q: this pattern does not close the {at.text} in line {at.line}, column "
                f"{at.column}; $$$ stands for any number of parts, as in f($$$)",
                "q",
            )

    def unread(self) -> str:
        if not self._unread:
            return ""
        ((language, files),) = self._unread.most_common(1)
        many = f"{files:,} {'file was' if files == 1 else 'files were'} not compared"
        return f"{many}: {self._why_unread(language)}"

    def _why_unread(self, language: str | None) -> str:
        """In what it cannot be read, from where on, and what would work."""
        from memory_store.code.patterns import STRICT

        how = (
            "write code with $NAME for one part and $$$NAME for any number of them, as in "
            "except $E: $$$BODY"
        )
        if language is None:
            return f"this pattern cannot be read as code of any language; {how}"
        fault = self._pattern.first_fault(language)
        where = f", from line {fault[0]}, column {fault[1]} on" if fault else ""
        others = [one for one in STRICT if self._pattern.reads(one)]
        can = f"; it can be as {', '.join(others[:MOST_NAMED])}" if others else f"; {how}"
        return f"this pattern cannot be read as {language}{where}{can}"

    def marker(self, matches: Sequence[Match]) -> TextMarker:
        return TextMarker([one.text for one in matches[:MOST_MATCHES]])


class TextMarker:
    """Marks the first lines of some matched texts wherever they stand."""

    def __init__(self, texts: Sequence[str]) -> None:
        lines = dict.fromkeys(text.split("\n", 1)[0].rstrip() for text in texts)
        self._texts = [line for line in lines if len(line) >= LEAST_MARKED]

    def spans(self, text: str) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for one in self._texts:
            at = text.find(one)
            while at >= 0 and len(found) < MOST_MATCHES:
                found.append((at, at + len(one)))
                at = text.find(one, at + len(one))
        kept: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if not kept or start >= kept[-1][1]:
                kept.append((start, end))
        return kept

    def met(self, text: str) -> set[str]:
        return {text[start:end] for start, end in self.spans(text)}

    called = met

    def most(self, text: str) -> float:
        return len(text)  # what it matches does not overlap

    def hits(self, text: str) -> list[tuple[int, int, str]]:
        return [(start, end, text[start:end]) for start, end in self.spans(text)[:1]]


PATTERNS: dict[str, Callable[[str, str | None], Pattern]] = {
    "literal": lambda query, language: Expression(query),
    "structural": Structure,
}
"""Mode → what makes its pattern of a query and a language."""


def matches_at(
    text: str, places: Sequence[tuple[int, int]], captures: Sequence[dict[str, str]] = ()
) -> Iterator[Match]:
    """Matches by their places: lines and columns count from 1."""
    lines = [0, *(one.end() for one in re.finditer("\n", text))] if places else []
    for (start, end), held in zip(places, captures or repeat({}), strict=False):
        line = bisect_right(lines, start)
        begin = lines[line - 1]
        stop = lines[line] - 1 if line < len(lines) else len(text)
        around = max(begin, min(start - LEAD, stop - MOST_CONTEXT))
        context = text[around : min(stop, around + MOST_CONTEXT)].rstrip("\r")
        yield Match(line, start - begin + 1, text[start:end][:MOST_SHOWN], held, context)


def compiled(query: str) -> tuple[str, PatternMarker]:
    """The pattern's source (without ``/…/``) and the compiled pattern, which goes line by line:
    ``^`` and ``$`` are the ends of lines, ``\\A`` and ``\\z`` those of the text.

    Raises :class:`BadInputError` (parameter ``q``) for a pattern that is malformed or too long.
    """
    import re2

    source = query.strip()
    delimited = is_delimited(source)
    if delimited:
        source = source[1:-1]
    _refuse_long(source)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        return source, PatternMarker(re2.compile(BY_LINES + source, options=options))
    except re2.error as error:
        reason = error.args[0] if error.args else "malformed"
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        shown = shown.replace(f": {BY_LINES}", ": ", 1)  # which was not typed
        raise BadInputError(
            f"q: not a regular expression: {shown}. To look for a sign itself, put \\ before it",
            parameter="q",
        ) from None


def _refuse_long(source: str) -> None:
    if len(source) > MOST_PATTERN:
        raise BadInputError(
            f"q: the pattern has more than {MOST_PATTERN:,} characters", parameter="q"
        )
