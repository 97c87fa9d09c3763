"""Work in the background, when the process ends under it."""

from __future__ import annotations

from pathlib import Path

from own_process import python

ENDS_WHILE_MODELS_LOAD = """
import sys, threading
from onnxruntime import InferenceSession
from datasette_hybrid import background

loading = threading.Event()

def load():
    for _ in range(60):
        InferenceSession(sys.argv[1])
        loading.set()
    print("loaded", flush=True)

background.begin("loading", load)
loading.wait()
"""


def test_the_end_of_the_process_waits_for_a_model_that_loads(tiny_model: Path) -> None:
    model = next(tiny_model.rglob("*.onnx"))
    ended = python("-c", ENDS_WHILE_MODELS_LOAD, str(model))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "loaded\n", "")
