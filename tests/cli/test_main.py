"""The command itself: help, version, exit status, closed streams, interruption."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runs import PROGRAM, SHORT, Command, run_process

import mosstalk

_COMMANDS = ("say", "voices", "convert", "inspect", "pull", "parity")


def test_help_names_all_commands(command: Command) -> None:
    result = command("--help")
    assert result.status == 0
    assert all(f"    {name} " in result.out for name in _COMMANDS)


@pytest.mark.parametrize("name", _COMMANDS)
def test_help_of_each_command(command: Command, name: str) -> None:
    if name == "parity":
        pytest.importorskip("mosstalk.cli.parity")
    result = command(name, "--help")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith(f"usage: mosstalk {name} ")


def test_version(command: Command) -> None:
    assert command("--version").out == f"mosstalk {mosstalk.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "command"),
        (["sing"], "invalid choice: 'sing'"),
        (["--loud", "say", "x"], "--loud"),
        (["say", "one", "two"], "unrecognized arguments: two"),
        (["say", "x", "--seeed", "1"], "--seeed"),
        (["say", "x", "--temp", "1"], "--temp"),
        (["say", "x", "--out"], "--out"),
        (["voices", "add", "ada", "x.wav", "--trans", "Words"], "--trans"),
        (["voices"], "action"),
        (["voices", "lend"], "invalid choice: 'lend'"),
        (["voices", "add", "ada"], "CLIP"),
        (["convert", "x"], "--out"),
        (["pull", "everything"], "unknown model 'everything'"),
        (["inspect", "nowhere/at/all"], "nowhere/at/all"),
    ],
)
def test_wrong_use(command: Command, arguments: list[str], words: str) -> None:
    result = command(*arguments)
    result.refuses(words, status=1 if "inspect" in arguments else 2)


def test_say_loads_nothing_that_it_does_not_use(talker: Path) -> None:
    script = (
        "import sys; from mosstalk.cli import main; status = main(sys.argv[1:]);"
        "heavy = {'torch', 'huggingface_hub', 'gguf', 'requests'} & set(sys.modules);"
        "sys.exit(status or ' '.join(sorted(heavy)) or None)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, "say", "Hi.", *SHORT, "--model", str(talker)],
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_output_that_nobody_reads() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    run = run_process("voices", "list", stdout=write_end)
    os.close(write_end)
    assert (run.returncode, run.stderr) == (141, b"")


def test_output_on_a_full_disk() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full")
    with full.open("wb") as file:
        run = run_process("voices", "list", "--json", stdout=file)
    assert run.returncode == 1
    assert run.stderr.startswith(b"mosstalk: error: cannot write standard output: ")
    assert run.stderr.count(b"\n") == 1


def test_interruption_is_told_in_a_line(say: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mosstalk.cli.say.ProgressLine.show", interrupt)
    result = say("Hello.")
    assert (result.status, result.out, result.err) == (130, "", "mosstalk: interrupted\n")
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_while_writing_leaves_nothing(talker: Path, tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    text.write_text("This sentence is said again and again. " * 3_000)
    old = Path("a.wav")
    old.write_bytes(b"what stood there before")
    options = ["--voice", "none", "--model", talker, "--max-frames", "300", "--out", old]
    process = subprocess.Popen(
        [*PROGRAM, "say", "--text-file", text, *map(str, options)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # whoever runs the tests
    )
    deadline = time.monotonic() + 30
    while len(list(Path.cwd().iterdir())) < 2:
        assert process.poll() is None, "it ended before it could be interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert (process.returncode, complaint) == (130, b"mosstalk: interrupted\n")
    assert os.listdir() == ["a.wav"]
    assert old.read_bytes() == b"what stood there before"


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_closed_standard_streams(talker: Path, stream: str) -> None:
    """As after `<&-`, `>&-` and `2>&-` in a shell."""
    descriptor = ("stdin", "stdout", "stderr").index(stream)
    text = "-" if stream == "stdin" else "Hello."
    run = run_process(
        *("say", text, *SHORT, "--model", talker, "--json"),
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: os.close(descriptor),
    )
    assert run.returncode == (2 if stream == "stdin" else 0)
    assert b"Traceback" not in run.stderr
    if stream == "stderr":
        assert run.stdout.startswith(b'{"out": ')
