"""Runs of a program captured as CUDA graphs, the ones used last."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import torch

_MOST_GRAPHS = 8  # of one program
_MOST_REMEMBERED = 64  # runs that may be captured when they come again


class GraphMemory:
    """What all graphs of a device share: memory for what is alive inside a run, and a stream.

    Runs follow each other on one device, so that the memory is never used by two at a time.
    """

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream()


class Graphs:
    """Captured runs of one program.

    A run is known by its key: its number of rows and the addresses it is bound to. The first run of
    a key is computed op by op, which also sets up the libraries; the second is captured. So rows of
    a prompt's last call, whose number seldom comes again, cost no capture.
    """

    def __init__(self, memory: GraphMemory) -> None:
        self._memory = memory
        self._captured: OrderedDict[Hashable, Any] = OrderedDict()
        self._seen: OrderedDict[Hashable, None] = OrderedDict()

    def run(self, key: Hashable, compute: Callable[[], None]) -> None:
        """Do what `compute` does, by its graph if there is one."""
        if key not in self._captured:
            if key not in self._seen:
                self._seen[key] = None
                _keep(self._seen, _MOST_REMEMBERED)
                self._run_apart(compute)
                return
            self._captured[key] = self._capture(compute)
            _keep(self._captured, _MOST_GRAPHS)
        self._captured.move_to_end(key)
        self._captured[key].replay()

    def _run_apart(self, compute: Callable[[], None]) -> None:
        """On the stream of captures, for which the libraries prepare themselves."""
        apart, current = self._memory.stream, torch.cuda.current_stream()
        apart.wait_stream(current)
        with torch.cuda.stream(apart):
            compute()
        current.wait_stream(apart)

    def _capture(self, compute: Callable[[], None]) -> Any:
        graph = torch.cuda.CUDAGraph()
        # Other threads of the process may use the device meanwhile.
        with torch.cuda.graph(
            graph,
            pool=self._memory.pool,
            stream=self._memory.stream,
            capture_error_mode="thread_local",
        ):
            compute()
        return graph


def _keep(items: OrderedDict[Hashable, Any], most: int) -> None:
    while len(items) > most:
        items.popitem(last=False)
