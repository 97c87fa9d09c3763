"""Expansion: a language model words the query in other ways, which are then searched for as well.

wordings    when the model is asked, and what it answers
guardrails  which of its wordings may be searched for
"""
