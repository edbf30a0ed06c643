"""The cpu backend's thread pool: right and alive whatever else the machine does."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import numpy as np
import pytest
from compute_programs import Floats, outputs_of, random_floats, random_weight

from mosstalk.compute.backend import open_backend
from mosstalk.compute.cpu.backend import CpuBackend, default_threads, physical_cores
from mosstalk.compute.program import Program
from mosstalk.errors import UsageError

PATIENCE = 60  # seconds; the work takes a small part of one


@pytest.fixture
def busy_neighbour() -> Iterator[None]:
    """Another process that takes a core."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    process.kill()
    process.wait()


def _program() -> Program:
    """Large enough that its linears are shared among threads."""
    program = Program(2)
    x = program.input("x", 256)
    inner = program.linear(x, random_weight(1, 512, 256))
    program.output("out", program.linear(inner, random_weight(2, 256, 512)))
    return program


def _run(backend: CpuBackend, x: Floats, runs: int = 1) -> Floats:
    program = _program()
    built = backend.build(program)
    for _ in range(runs):
        built.array(program.inputs["x"])[:] = x
        built.run(2)
    out: Floats = built.array(program.outputs["out"]).copy()
    return out


def _finishes(work: Thread) -> bool:
    work.start()
    work.join(PATIENCE)
    return not work.is_alive()


def test_exact_results_beside_a_busy_process(busy_neighbour: None) -> None:
    x = random_floats(3, 2, 256)
    wanted = _run(CpuBackend(1), x)
    for threads in (1, 2, 3, 4):
        assert np.array_equal(_run(CpuBackend(threads), x, runs=100), wanted)


@pytest.mark.parametrize("threads", [2, 4])
def test_thousands_of_small_runs_never_hang(threads: int) -> None:
    x = random_floats(3, 2, 256)
    found: list[Floats] = []
    work = Thread(target=lambda: found.append(_run(CpuBackend(threads), x, 2000)), daemon=True)
    assert _finishes(work)
    assert np.array_equal(found[0], _run(CpuBackend(1), x))


def test_tasks_too_long_to_spin_for() -> None:
    """The threads that are done sleep until the last task wakes them."""
    program = Program(256)
    x = program.input("x", 4096)
    program.output("out", program.linear(x, random_weight(1, 24, 4096)))
    values = {"x": random_floats(3, 256, 4096)}
    found: list[Floats] = []

    def work() -> None:
        built = CpuBackend(3).build(program)
        built.array(x)[:] = values["x"]
        for _ in range(30):
            built.run(256)
        found.append(built.array(program.outputs["out"]).copy())

    assert _finishes(Thread(target=work, daemon=True))
    assert np.array_equal(found[0], outputs_of(CpuBackend(1), program, values, 256)["out"])


def test_pools_come_and_go() -> None:
    x = random_floats(3, 2, 256)
    work = Thread(target=lambda: [_run(CpuBackend(3), x) for _ in range(50)], daemon=True)
    assert _finishes(work)


def test_programs_built_by_several_threads() -> None:
    """Each thread with a backend of its own: results are those of one thread."""
    x = random_floats(3, 2, 256)
    wanted = _run(CpuBackend(1), x)
    with ThreadPoolExecutor(4) as executor:
        results = executor.map(lambda threads: _run(CpuBackend(threads), x, 50), [1, 2, 2, 3])
        assert all(np.array_equal(result, wanted) for result in results)
    backend = CpuBackend(2)
    with ThreadPoolExecutor(4) as executor:
        built = list(executor.map(lambda _: backend.build(_program()), range(8)))
    for program in built:
        program.array(program.program.inputs["x"])[:] = x
        program.run(2)
        assert np.array_equal(program.array(program.program.outputs["out"]), wanted)


def test_default_threads_leave_a_core_and_are_at_most_four() -> None:
    assert physical_cores() >= 1
    assert default_threads() == min(4, max(1, physical_cores() - 1))
    assert CpuBackend().threads == default_threads() == CpuBackend().pool.num_threads
    assert open_backend("cpu", 3).threads == 3


def test_backends_are_opened_by_name() -> None:
    assert open_backend("reference").name == "reference"
    with pytest.raises(UsageError, match="unknown device 'tpu'; choose one of cpu, "):
        open_backend("tpu")
    with pytest.raises(UsageError, match="number of threads is -1"):
        open_backend("cpu", -1)
    with pytest.raises(ValueError, match="cannot run the kernels 'sse9'"):
        CpuBackend(1, "sse9")


def test_a_run_of_no_or_too_many_rows_is_an_error() -> None:
    program = _program()
    for rows in (0, 3):
        with pytest.raises(IndexError, match="rows of a run"):
            outputs_of(CpuBackend(1), program, {}, rows)
