"""Sample: draws by the rules of compute/sampling.py, a workgroup for each row.

Thresholds are found without sorting, bit by bit from the highest: the k-th largest score is the
largest number that k scores reach, and the last chance within top-p the largest number such that
the chances from there up exceed top-p. Chances and their sums are float32 where the definition has
float64, so an id may differ only where the random number, or a limit, comes within some 1e-6 of
the edge.

Where ids join a set, rows of one stream follow each other in the workgroup of the first of them.
"""

from mosstalk.compute import ops
from mosstalk.compute.sampling import NUM_PARAMS
from mosstalk.compute.vulkan.place import Place
from mosstalk.compute.vulkan.shader import Dispatch, Grid, Shader, Slot, StateKind
from mosstalk.compute.vulkan.shaders.argmax import FIRST_LARGEST
from mosstalk.compute.vulkan.shaders.numbers import EXP
from mosstalk.compute.vulkan.shaders.sums import over_threads

_THREADS = 64

_SLOTS = (
    Slot("logits", "f32"),
    Slot("params", "f32"),
    Slot("uniforms", "f32"),
    Slot("streams", "i32"),
    Slot("chances", "f32", "read_write"),  # as the logits; scores first
    Slot("out", "i32", "read_write"),
)
_CONSTANTS = (
    "width: u32",  # of the logits
    "out_width: u32",
    "uniforms_width: u32",
    "column: u32",
    "multiple: u32",
)

_WITHOUT_SET = """
fn is_seen(stream: u32, id: u32) -> bool { return false; }
fn remember(stream: u32, id: u32) {}
fn is_first(row: u32) -> bool { return true; }
fn next_row(row: u32) -> u32 { return call.rows * op.multiple; }
"""
_WITH_SET = """
fn is_seen(stream: u32, id: u32) -> bool {
    return (seen[stream * state.words + id / 4u] >> (id % 4u * 8u) & 0xffu) != 0u;
}
fn remember(stream: u32, id: u32) {
    seen[stream * state.words + id / 4u] |= 1u << (id % 4u * 8u);
}

// Whether no row before this one is of its stream, and the next one that is.
fn is_first(row: u32) -> bool {
    for (var i = 0u; i < row; i++) {
        if (streams[i] == streams[row]) { return false; }
    }
    return true;
}
fn next_row(row: u32) -> u32 {
    var next = row + 1u;
    while (next < call.rows * op.multiple && streams[next] != streams[row]) { next++; }
    return next;
}
"""

_SCORES = """
fn score_of(row: u32, id: u32) -> f32 {
    let temperature = params[row * PARAMS + 1u];
    let penalty = params[row * PARAMS + 4u];
    var score = logits[row * op.width + id];
    if (penalty != 1.0 && is_seen(u32(streams[row]), id)) {
        score = select(score / penalty, score * penalty, score < 0.0);
    }
    return select(score / temperature, score, is_greedy(row));
}

fn is_greedy(row: u32) -> bool { return params[row * PARAMS] != 0.0; }

// The id of the largest score; scores are stored.
fn store_scores(thread: u32, row: u32) -> u32 {
    var largest = 0.0;
    var id = NOBODY;
    for (var i = thread; i < op.width; i += THREADS) {
        let score = score_of(row, i);
        chances[row * op.width + i] = score;
        if (id == NOBODY || score > largest) {
            largest = score;
            id = i;
        }
    }
    storageBarrier();
    return first_largest(thread, largest, id);
}
"""

_TOP_K = """
// A number of the same order as x.
fn order_of(x: f32) -> u32 {
    let bits = bitcast<u32>(select(x, 0.0, x == 0.0));  // -0 is 0
    return select(bits | 0x80000000u, ~bits, (bits >> 31u) != 0u);
}

// The order of the k-th largest score; 0 without a limit.
fn least_order(thread: u32, first: u32, k: u32) -> u32 {
    if (k == 0u || k >= op.width) { return 0u; }
    var least = 0u;
    for (var bit = 0x80000000u; bit > 0u; bit >>= 1u) {
        var count = 0.0;
        for (var i = thread; i < op.width; i += THREADS) {
            count += select(0.0, 1.0, order_of(chances[first + i]) >= (least | bit));
        }
        if (sum_of(thread, count) >= f32(k)) { least |= bit; }
    }
    return least;
}
"""

_TOP_P = """
fn sum_from(thread: u32, first: u32, least: u32) -> f32 {
    var sum = 0.0;
    for (var i = thread; i < op.width; i += THREADS) {
        let chance = chances[first + i];
        sum += select(0.0, chance, bitcast<u32>(chance) >= least);
    }
    return sum_of(thread, sum);
}

// Set to 0 the chances before which, in falling order, more than top_p of all has passed.
fn keep_nucleus(thread: u32, first: u32, top_p: f32) {
    let limit = top_p * sum_from(thread, first, 0u);
    var last = 0u;  // bits of the least chance that is kept
    for (var bit = 0x40000000u; bit > 0u; bit >>= 1u) {
        if (sum_from(thread, first, last | bit) > limit) { last |= bit; }
    }
    let passed = sum_from(thread, first, last + 1u);
    var equal = 0.0;
    for (var i = start_of(thread); i < start_of(thread + 1u); i++) {
        equal += select(0.0, 1.0, bitcast<u32>(chances[first + i]) == last);
    }
    joined[thread] = equal;
    workgroupBarrier();
    var rank = 0.0;  // of a chance among its equals
    for (var i = 0u; i < thread; i++) { rank += joined[i]; }
    for (var i = start_of(thread); i < start_of(thread + 1u); i++) {
        let bits = bitcast<u32>(chances[first + i]);
        let is_out = bits < last || (bits == last && passed + rank * bitcast<f32>(last) > limit);
        if (bits == last) { rank += 1.0; }
        if (is_out) { chances[first + i] = 0.0; }
    }
    storageBarrier();
    workgroupBarrier();  // of `joined`, which `draw` writes
}
"""

_DRAW = """
// Each thread has its share of the ids, one after the other.
fn start_of(thread: u32) -> u32 {
    return min(op.width, thread * ((op.width + THREADS - 1u) / THREADS));
}

// The first id at which the running sum exceeds `uniform` of the whole, else the last possible one.
fn draw(thread: u32, first: u32, uniform: f32) -> u32 {
    var sum = 0.0;
    for (var i = start_of(thread); i < start_of(thread + 1u); i++) { sum += chances[first + i]; }
    joined[thread] = sum;
    workgroupBarrier();
    var before = 0.0;
    var total = 0.0;
    for (var i = 0u; i < THREADS; i++) {
        if (i == thread) { before = total; }
        total += joined[i];
    }
    let target_sum = uniform * total;
    var found = NOBODY;
    var last = NOBODY;
    for (var i = start_of(thread); i < start_of(thread + 1u); i++) {
        let chance = chances[first + i];
        before += chance;
        if (chance > 0.0) {
            last = i;
            if (found == NOBODY && before > target_sum) { found = i; }
        }
    }
    best_ids[thread] = found;
    workgroupBarrier();
    var drawn = NOBODY;
    for (var i = THREADS; i > 0u; i--) {
        if (best_ids[i - 1u] != NOBODY) { drawn = best_ids[i - 1u]; }
    }
    workgroupBarrier();
    best_ids[thread] = last;
    workgroupBarrier();
    for (var i = THREADS; i > 0u && drawn == NOBODY; i--) { drawn = best_ids[i - 1u]; }
    workgroupBarrier();
    return min(drawn, op.width - 1u);  // where no chance is a number
}
"""

_MAIN = f"""
@compute @workgroup_size({_THREADS})
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32
) {{
    let first_row = group_number(workgroup);
    if (first_row >= call.rows * op.multiple || !is_first(first_row)) {{ return; }}
    for (var row = first_row; row < call.rows * op.multiple; row = next_row(row)) {{
        let first = row * op.width;
        var id = store_scores(thread, row);
        if (!is_greedy(row)) {{
            let largest = chances[first + id];
            let least = least_order(thread, first, u32(params[row * PARAMS + 2u]));
            storageBarrier();
            for (var i = thread; i < op.width; i += THREADS) {{
                let score = chances[first + i];
                chances[first + i] =
                    select(0.0, exp_of(score - largest), order_of(score) >= least);
            }}
            storageBarrier();
            let top_p = params[row * PARAMS + 3u];
            if (top_p > 0.0 && top_p < 1.0) {{ keep_nucleus(thread, first, top_p); }}
            id = draw(thread, first, uniforms[row * op.uniforms_width + op.column]);
        }}
        if (thread == 0u) {{
            out[row * op.out_width + op.column] = i32(id);
            remember(u32(streams[row]), id);
        }}
        storageBarrier();
    }}
}}
"""


def _shader(name: str, sets: str, state: StateKind) -> Shader:
    numbers = f"const THREADS = {_THREADS}u;\nconst PARAMS = {NUM_PARAMS}u;\n"
    parts = (numbers, EXP, over_threads(_THREADS), FIRST_LARGEST, sets)
    rules = (_SCORES, _TOP_K, _TOP_P, _DRAW, _MAIN)
    return Shader(name, _SLOTS, _CONSTANTS, "".join((*parts, *rules)), state)


_ALONE = _shader("sample", _WITHOUT_SET, "")
_WITH_SEEN = _shader("sample with a set", _WITH_SET, "seen")


def record(op: ops.Sample, place: Place) -> list[Dispatch]:
    multiple, width = op.logits.multiple, op.logits.width
    inputs = (op.logits, op.params, op.uniforms, op.streams)
    scratch = place.scratch(width, multiple)
    buffers = (*(place.buffer(buffer) for buffer in inputs), scratch, place.buffer(op.out))
    constants = (width, op.out.width, op.uniforms.width, op.column, multiple)
    shader = _ALONE if op.seen < 0 else _WITH_SEEN
    return [Dispatch(shader, buffers, constants, Grid(multiple), max(0, op.seen))]
