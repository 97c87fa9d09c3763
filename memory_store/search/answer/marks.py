"""What a search marks in a memory, for a page that shows all of its text.

Boundary: reads opened text; what leaves is where the words stand in it.
"""

from __future__ import annotations

from memory_store.records import Memory, SearchRequest
from memory_store.search.answer.previews import Marker
from memory_store.search.context import SearchContext
from memory_store.search.query.analysis import FALLBACK_LANGUAGE, analyse
from memory_store.search.query.language import PATTERN_MODES, parse, resolve_mode
from memory_store.search.query.word_matcher import WordMatcher


def marker(context: SearchContext, request: SearchRequest, memory: Memory) -> Marker:
    """Finds in parts of ``memory`` the words of the query, as corrected, and its phrases; for a
    pattern what that matches in it. Raises :class:`BadInputError`."""
    mode = resolve_mode(request)
    if mode in PATTERN_MODES:
        from memory_store.search.query.patterns import PATTERNS

        pattern = PATTERNS[mode](request.query, request.language)
        return pattern.marker(pattern.found(memory, titled=True) or ())
    parsed, ordinal = parse(request), context.snapshot.ordinal_of(memory.id)
    language = FALLBACK_LANGUAGE if ordinal is None else context.snapshot.language(ordinal)
    keywords = analyse(parsed, context, request, ("keyword",)).keywords if parsed.words else ()
    phrases = [phrase.text for phrase in parsed.required]
    return WordMatcher(keywords, phrases, language, parsed.text)
