"""Explain: each result's way through the stages, as data.

Boundary: tells places, scores and names of adjustments; no text, and it opens nothing.
"""

from __future__ import annotations

from typing import Any

from memory_store.search.adjustments import Scored


def explained(position: int, result: Scored) -> dict[str, Any]:
    """One result's way through the stages, as data."""
    candidate = result.candidate
    return {
        "rank": position,
        "id": candidate.id,
        "fusion_rank": candidate.fusion_rank,
        "keyword_rank": candidate.keyword_rank,
        "topic_rank": candidate.topic_rank,
        "vector_rank": candidate.vector_rank,
        "fusion_score": round(candidate.share, 4),
        "fusion_boost": candidate.boost,
        "rerank_score": None if result.rerank_score is None else round(result.rerank_score, 4),
        "steps": [[name, round(score, 4)] for name, score in result.steps],
        "score": round(result.score, 4),
    }
