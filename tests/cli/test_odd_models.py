"""Model files that are damaged, of another kind, or hostile."""

import json
import pickle
import shutil
import zipfile
from pathlib import Path

import pytest
from cli_runs import Command
from tiny_model import edit_json


@pytest.fixture
def broken(talker: Path, tmp_path: Path) -> Path:
    """A copy of the talker, to be damaged."""
    return Path(shutil.copytree(talker, tmp_path / "broken"))


class Hostile:
    """Runs code when it is unpickled by a careless reader."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("owned"),)  # type: ignore[return-value]


@pytest.mark.parametrize("part", ["", "audio_tokenizer"])
@pytest.mark.parametrize("keep", [0.0, 0.001, 0.5, 0.999])
def test_truncated_safetensors(say: Command, broken: Path, part: str, keep: float) -> None:
    weights = broken / part / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: int(len(whole) * keep)])
    say("Hello.", "--model", broken).refuses("model.safetensors", status=1)


@pytest.mark.parametrize("keep", [0.0, 0.00001, 0.001, 0.3, 0.6, 0.9999])
def test_truncated_gguf(say: Command, gguf: Path, keep: float) -> None:
    whole = gguf.read_bytes()
    Path("cut.gguf").write_bytes(whole[: int(len(whole) * keep)])
    say("Hello.", "--model", "cut.gguf").refuses("cut.gguf", status=1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "web page"),
        (b"just words", "not a safetensors, PyTorch or GGUF file"),
        (b"\x00" * 4096, "not a safetensors, PyTorch or GGUF file"),
        (b"\xff" * 8 + b"{", "not a safetensors, PyTorch or GGUF file"),
    ],
    ids=["LFS", "HTML", "text", "zeros", "huge header"],
)
def test_file_of_another_kind(say: Command, broken: Path, content: bytes, words: str) -> None:
    (broken / "model.safetensors").write_bytes(content)
    say("Hello.", "--model", broken).refuses(words, status=1)
    Path("model.gguf").write_bytes(content)
    say("Hello.", "--model", "model.gguf").refuses(words, status=1)


@pytest.mark.parametrize("form", ["zip", "stream"])
def test_hostile_pickle(say: Command, broken: Path, form: str) -> None:
    payload = pickle.dumps({"transformer.wte.weight": Hostile()}, protocol=2)
    (broken / "model.safetensors").unlink()
    weights = broken / "pytorch_model.bin"
    if form == "zip":
        with zipfile.ZipFile(weights, "w") as archive:
            archive.writestr("archive/data.pkl", payload)
            archive.writestr("archive/version", b"3\n")
    else:
        weights.write_bytes(payload)
    say("Hello.", "--model", broken).refuses("pytorch_model.bin", status=1)
    assert not Path("owned").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"model_type": "llama"}', '{"model_type": ["x"]}', "null", "\x00"]
)
def test_config_of_another_model(say: Command, broken: Path, text: str) -> None:
    (broken / "config.json").write_text(text)
    result = say("Hello.", "--model", broken)
    result.refuses("", status=1)
    assert "config.json" in result.err or "no family runs models" in result.err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", 64),
        ("hidden_size", -1),
        ("hidden_size", "wide"),
        ("n_vq", 5),
        ("vocab_size", 8),
        ("audio_codebook_sizes", []),
        ("audio_pad_token_id", 3),
        ("max_position_embeddings", 0),
        ("im_start_token_id", 10**9),
        ("audio_end_token_id", 16_384),
        ("audio_user_slot_token_id", -1),
        ("audio_tokenizer_sample_rate", 48_000),
        ("unheard_of", 1),
    ],
)
def test_config_that_does_not_fit(say: Command, broken: Path, key: str, value: object) -> None:
    edit_json(broken / "config.json", lambda config: config.update({key: value}))
    say("Hello.", "--model", broken).refuses("", status=1)


def test_damaged_tokenizer(say: Command, broken: Path) -> None:
    tokenizer = broken / "tokenizer.model"
    whole = tokenizer.read_bytes()
    for content in (b"", b"words", whole[: len(whole) // 2]):
        tokenizer.write_bytes(content)
        say("Hello.", "--model", broken).refuses("tokenizer.model", status=1)
    tokenizer.unlink()
    say("Hello.", "--model", broken).refuses("tokenizer.model is missing", status=1)


def test_wrong_codec(say: Command, broken: Path, talker: Path) -> None:
    (broken / "config.json").unlink()
    for codec, words in (
        ("nowhere", "nowhere does not exist"),
        (broken, "no config.json"),
        (talker / "tokenizer.model", "tokenizer.model"),
    ):
        say("Hello.", "--codec", codec).refuses(words, status=1)
    other = broken / "audio_tokenizer"
    edit_json(other / "config.json", lambda config: config.update(sampling_rate=24_000))
    say("Hello.", "--codec", other).refuses("the codec has 4 at 24000 Hz", status=1)
    edit_json(other / "config.json", lambda config: config.update(model_type="encodec"))
    say("Hello.", "--codec", other).refuses("encodec", status=1)


def test_model_that_is_a_codec(say: Command, talker: Path) -> None:
    say("Hello.", "--model", talker / "audio_tokenizer").refuses("", status=1)


def test_voice_of_another_codec(command: Command, talker: Path, broken: Path, clip: Path) -> None:
    codec = broken / "audio_tokenizer" / "config.json"
    edit_json(codec, lambda config: config.update(causal_transformer_context_duration=9.0))
    assert command("voices", "add", "ada", clip, "--model", broken).status == 0
    result = command("say", "Hello.", "--voice", "ada", "--model", talker)
    result.refuses("voice 'ada' was made with another codec")


def test_model_without_audio(say: Command, mute: Path) -> None:
    say("Hello.", "--model", mute, "--seed", "3").refuses("another seed than 3", status=1)
    result = say("Hello.", "--model", mute, "--json")
    assert json.loads(result.out)["kind"] == "OutputError"
    assert list(Path.cwd().iterdir()) == []
