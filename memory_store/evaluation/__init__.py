"""Which ranking is best, measured with judgements: queries, and what ought to answer them.

    from memory_store.evaluation import evaluate, read_judgements, read_queries

    evaluation = evaluate(
        store,
        read_queries("queries.jsonl"),
        read_judgements("qrels.tsv"),
        {"default": {}, "keyword": {"mode": "keyword"}},
    )
    print(evaluation.run("default").estimate("ndcg@10"))
    print(evaluation.comparison("keyword", "ndcg@10"))

Boundary: queries and refs pass through in clear, texts do not. What a run opens is what the same
search would open to decide the order.
"""

from memory_store.evaluation.folders import (
    EvaluationFolder,
    evaluation_folders,
    one_evaluation_folder,
)
from memory_store.evaluation.judgements import (
    Judgements,
    parse_judgements,
    parse_queries,
    read_judgements,
    read_queries,
)
from memory_store.evaluation.measures import MEASURES, ndcg, recall, reciprocal_rank
from memory_store.evaluation.runs import Evaluation, RunResult, evaluate
from memory_store.evaluation.statistics import Comparison, Estimate, compare, estimate
