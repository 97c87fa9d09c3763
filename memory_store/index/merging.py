"""Many segments into one, without the rows that died."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from memory_store.index.columns import Array
from memory_store.index.layout import Late, Pairs, Postings, Segment
from memory_store.index.postings import collect, collect_pairs


def merge(segments: Sequence[tuple[Segment, npt.NDArray[np.bool_]]]) -> Segment:
    """One segment of the rows that each ``alive`` mask marks, in order.

    The arrays are new: the sources may be wiped afterwards. Raises ``ValueError`` when there is
    nothing to merge, or when the vectors have different dimensions.
    """
    if not segments:
        raise ValueError("there is no segment to merge")
    parts = [_Part(segment, alive) for segment, alive in segments]
    total = 0
    for part in parts:
        part.first_row = total
        total += len(part.keep)
    types, type_codes = _names([(p.segment.types, p.row("type_codes")) for p in parts])
    languages, language_codes = _names(
        [(p.segment.languages, p.row("language_codes")) for p in parts]
    )
    terms, titles, bodies = _terms(parts, total)
    windows = [np.diff(part.segment.window_offsets)[part.keep] for part in parts]
    return Segment(
        count=total,
        dimensions=_dimensions(parts),
        ids=_joined(parts, "ids"),
        versions=_joined(parts, "versions"),
        types=types,
        type_codes=type_codes,
        languages=languages,
        language_codes=language_codes,
        created=_joined(parts, "created"),
        updated=_joined(parts, "updated"),
        valid_from=_joined(parts, "valid_from"),
        valid_to=_joined(parts, "valid_to"),
        content_tags=_joined(parts, "content_tags"),
        row_tags=_joined(parts, "row_tags"),
        lengths=_joined(parts, "lengths"),
        terms=terms,
        title_counts=titles,
        body_counts=bodies,
        topics=_topics(parts, total),
        window_offsets=np.concatenate([[0], np.cumsum(np.concatenate(windows))]).astype(np.int64),
        window_starts=np.concatenate([p.segment.window_starts[p.windows] for p in parts]),
        window_ends=np.concatenate([p.segment.window_ends[p.windows] for p in parts]),
        late_vectors=Late(None, _vectors(parts)),
        late_pairs=Late(None, _pairs(parts, total)),
    )


class _Part:
    """One source: ``keep`` holds the rows that live, ``first_row`` their place in the result."""

    def __init__(self, segment: Segment, alive: npt.NDArray[np.bool_]) -> None:
        if len(alive) != segment.count:
            raise ValueError("the mask does not fit the segment")
        self.segment = segment
        self.alive = alive
        self.keep = np.flatnonzero(alive)
        self.first_row = 0
        self.windows = np.flatnonzero(alive[segment.window_rows])

    def row(self, name: str) -> Array:
        """The living rows of one column."""
        column: Array = getattr(self.segment, name)
        return column[self.keep]

    def moved(self, docs: Array) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Which of ``docs`` live, and the row numbers those have in the result."""
        new_rows = np.cumsum(self.alive, dtype=np.int64) - 1 + self.first_row
        kept = self.alive[docs]
        return kept, new_rows[docs[kept]]

    def loose(self, postings: Postings) -> tuple[npt.NDArray[np.bool_], Array, Array]:
        """Postings as loose (key, document) rows of the result."""
        kept, docs = self.moved(postings.docs)
        return kept, np.repeat(postings.keys, np.diff(postings.offsets))[kept], docs


def _joined(parts: Sequence[_Part], name: str) -> Array:
    return np.concatenate([part.row(name) for part in parts])


def _dimensions(parts: Sequence[_Part]) -> int:
    found = {part.segment.dimensions for part in parts if len(part.windows)}
    if len(found) > 1:
        raise ValueError("segments of different dimensions cannot be merged")
    return found.pop() if found else parts[0].segment.dimensions


def _vectors(parts: Sequence[_Part]) -> npt.NDArray[np.float16]:
    holding = [part for part in parts if len(part.windows)]
    if not holding:
        return np.zeros((0, _dimensions(parts)), dtype=np.float16)
    ends = np.cumsum([len(part.windows) for part in holding])
    vectors = np.empty((ends[-1], _dimensions(parts)), dtype=np.float16)
    for part, piece in zip(holding, np.split(vectors, ends[:-1]), strict=True):
        # mode: with "raise" NumPy writes to a copy, which would stay in freed memory
        part.segment.vectors.take(part.windows, axis=0, out=piece, mode="clip")
    return vectors


def _names(
    columns: Sequence[tuple[tuple[str, ...], Array]],
) -> tuple[tuple[str, ...], npt.NDArray[np.uint16]]:
    """Codes in the order in which the living rows first use them."""
    codes: dict[str, int] = {}
    renamed = []
    for names, column in columns:
        table = np.zeros(len(names) + 1, dtype=np.uint16)
        _, firsts = np.unique(column, return_index=True)
        for old in column[np.sort(firsts)]:
            table[old] = codes.setdefault(names[old], len(codes))
        renamed.append(table[column])
    return tuple(codes), np.concatenate(renamed)


def _terms(parts: Sequence[_Part], total: int) -> tuple[Postings, Array, Array]:
    rows = [part.loose(part.segment.terms) for part in parts]
    titles, bodies = [], []
    for part, (kept, _, _) in zip(parts, rows, strict=True):
        titles.append(part.segment.title_counts[kept].astype(np.int64))
        bodies.append(part.segment.body_counts[kept].astype(np.int64))
    counts = (np.concatenate(titles), np.concatenate(bodies))
    postings, (title_counts, body_counts) = collect(*_stacked(rows), total, counts)
    return postings, title_counts, body_counts


def _topics(parts: Sequence[_Part], total: int) -> Postings:
    return collect(*_stacked([part.loose(part.segment.topics) for part in parts]), total)[0]


def _stacked(rows: Sequence[tuple[Array, Array, Array]]) -> tuple[Array, Array]:
    keys = np.concatenate([keys for _, keys, _ in rows])
    return keys, np.concatenate([docs for _, _, docs in rows])


def _pairs(parts: Sequence[_Part], total: int) -> Pairs:
    hashes, rows = [], []
    for part in parts:
        pairs = part.segment.pairs
        kept, docs = part.moved(pairs.docs)
        hashes.append(pairs.hashes[kept])
        rows.append(docs)
    return collect_pairs(np.concatenate(hashes), np.concatenate(rows), total)
