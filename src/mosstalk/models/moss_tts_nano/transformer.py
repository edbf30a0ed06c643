"""The block that the global and the local transformer share (spec nano.md 3.2, 3.3)."""

from mosstalk.compute.ops import Buffer, GeluKind
from mosstalk.compute.program import Program
from mosstalk.models.moss_tts_nano.config import NanoConfig
from mosstalk.models.moss_tts_nano.weights import BlockWeights, StackWeights
from mosstalk.nn.attention import Heads, Rows, self_attention


def record_stack(
    program: Program,
    x: Buffer,
    stack: StackWeights,
    config: NanoConfig,
    first_cache: int,
    rows: Rows,
    taps: str | None = None,
) -> Buffer:
    """All blocks, then the final norm; block i keeps its K/V in cache first_cache + i.

    `taps` names outputs `{taps}.0` (the input), `{taps}.1` ... (after each block), for tests.
    """
    if taps is not None:
        program.output(f"{taps}.0", x)
    for i, block in enumerate(stack.blocks):
        x = _record_block(program, x, block, config, first_cache + i, rows)
        if taps is not None:
            program.output(f"{taps}.{i + 1}", x)
    return program.layer_norm(x, *stack.ln_f, config.layer_norm_epsilon)


def _record_block(
    program: Program,
    x: Buffer,
    block: BlockWeights,
    config: NanoConfig,
    cache: int,
    rows: Rows,
) -> Buffer:
    eps = config.layer_norm_epsilon
    normed = program.layer_norm(x, *block.ln_1, eps)
    heads = Heads(config.n_head, config.head_dim)
    attended = self_attention(program, normed, block.c_attn, heads, cache, rows)
    x = program.add(x, program.linear(attended, *block.c_proj))
    normed = program.layer_norm(x, *block.ln_2, eps)
    inner = program.gelu(program.linear(normed, *block.fc_in), GeluKind.TANH)
    return program.add(x, program.linear(inner, *block.fc_out))
