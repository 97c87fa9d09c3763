"""What is pinned: where it can be worked out here, it is what it says it is."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from memory_store.models import offline, pins
from memory_store.models.pins import KnownModel, known_models

SHA256 = re.compile(r"[0-9a-f]{64}")
COMMIT = re.compile(r"[0-9a-f]{40}")
WINDOWS = {0: 256, 1: 128}  # tokens, by the revision of all-MiniLM-L6-v2
SPECIAL = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}


@pytest.mark.parametrize("model", known_models(), ids=lambda one: one.name)
def test_every_pin_is_whole_and_names_its_source(model: KnownModel) -> None:
    for revision in model.revisions:
        assert COMMIT.fullmatch(revision.id)
        assert revision.source
        assert all(SHA256.fullmatch(file.sha256) for file in (*revision.files, *revision.wanted))
        names = {file.name for file in revision.files}
        assert {model.graph, "tokenizer.json", "tokenizer_config.json", "config.json"} <= names
        assert (revision.archive is None) == (model.kind == "embedding")


def _default() -> KnownModel:
    known = pins.known_model(offline.MODEL_NAME)
    assert known is not None
    return known


@pytest.mark.model
@pytest.mark.parametrize("revision", WINDOWS)
def test_the_json_files_of_the_hub_follow_from_the_package_byte_for_byte(revision: int) -> None:
    """A person who changed a pin of theirs would have to change the published package, too."""
    source = offline.weights_folder()
    if source is None:
        pytest.skip("the offline extra is not installed")
    pinned = _default().revisions[revision].digests
    made = _as_published(source, WINDOWS[revision])
    assert {name: hashlib.sha256(text.encode()).hexdigest() for name, text in made.items()} == {
        name: digest for name, digest in pinned.items() if name != "model.onnx"
    }


def _as_published(source: Path, window: int) -> dict[str, str]:
    """What transformers 4.36 writes of the package's tokenizer and configuration."""
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.enable_truncation(window)
    config = json.loads((source / "config.json").read_text("utf-8"))
    config |= {
        "_name_or_path": offline.MODEL_NAME,
        "classifier_dropout": None,
        "transformers_version": "4.36.2",
    }
    plain = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    tokens = {token.strip("[]").lower(): {"content": token, **plain} for token in SPECIAL.values()}
    written = {
        "added_tokens_decoder": {
            str(number): {"content": token, **plain, "special": True}
            for number, token in SPECIAL.items()
        },
        "clean_up_tokenization_spaces": True,
        "cls_token": "[CLS]",
        "do_basic_tokenize": True,
        "do_lower_case": True,
        "mask_token": "[MASK]",
        **({"max_length": 128} if window == 128 else {}),
        "model_max_length": 512 if window == 128 else 256,
        "never_split": None,
        "pad_to_multiple_of": None,
        "pad_token": "[PAD]",
        "pad_token_type_id": 0,
        "padding_side": "right",
        "sep_token": "[SEP]",
        "stride": 0,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "tokenizer_class": "BertTokenizer",
        "truncation_side": "right",
        "truncation_strategy": "longest_first",
        "unk_token": "[UNK]",
    }
    return {
        "tokenizer.json": tokenizer.to_str(pretty=True),
        "tokenizer_config.json": json.dumps(written, indent=2) + "\n",
        "special_tokens_map.json": json.dumps(
            {f"{name}_token": tokens[name] for name in sorted(tokens)}, indent=2
        )
        + "\n",
        "config.json": json.dumps(dict(sorted(config.items())), indent=2) + "\n",
    }


@pytest.mark.model
def test_what_is_built_from_the_package_is_what_is_pinned(minilm: dict[str, Path]) -> None:
    package = _default().package
    assert package is not None
    built = {file.name: file.sha256 for file in package.built}
    assert pins.digests_of(minilm["int8"], built) == built
