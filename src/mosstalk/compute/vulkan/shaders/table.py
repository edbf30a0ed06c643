"""What each op of the table dispatches."""

from collections.abc import Callable
from typing import Any

from mosstalk.compute import ops
from mosstalk.compute.ops import Op
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch
from mosstalk.compute.vulkan.shaders import (
    add,
    argmax,
    attention,
    cache_write,
    embed,
    gather,
    gelu,
    layer_norm,
    linear,
    patch,
    rms_norm,
    rope,
    sample,
    silu_gate,
)

_RECORD: dict[type[Op], Callable[[Any, Place], list[Dispatch]]] = {
    ops.Embed: embed.record,
    ops.Gather: gather.record,
    ops.Linear: linear.record,
    ops.LayerNorm: layer_norm.record,
    ops.RmsNorm: rms_norm.record,
    ops.Rope: rope.record,
    ops.CacheWrite: cache_write.record,
    ops.Attention: attention.record,
    ops.Gelu: gelu.record,
    ops.SiluGate: silu_gate.record,
    ops.Add: add.record,
    ops.PatchUp: patch.record_up,
    ops.PatchDown: patch.record_down,
    ops.Argmax: argmax.record,
    ops.Sample: sample.record,
}


def record(op: Op, place: Place) -> list[Dispatch]:
    """The dispatches that compute `op`, to run in order."""
    return _RECORD[type(op)](op, place)
