#include "program.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace mosstalk {

namespace {

// Below this many multiplications an op is done by the calling thread alone: handing out tasks
// costs one or two microseconds.
constexpr size_t kSerialWork = 40'000;
constexpr size_t kTaskBytes = 48 * 1024;  // of weights in one task of a linear
constexpr size_t kRowTaskWork = 16'384;   // values in one task of a row-wise op
constexpr size_t kSerialLogits = 1'536;   // fewer are chosen from by the calling thread alone

}  // namespace

Program::Program(size_t max_rows, std::shared_ptr<Pool> pool, const Kernels* kernels)
    : max_rows_(max_rows), pool_(std::move(pool)), kernels_(kernels) {
    scratch_.resize(pool_->num_threads());
}

void Program::add_buffer(size_t width, size_t multiple, bool is_int, int shared_with) {
    Buffer made{width, multiple, max_rows_ * multiple, nullptr, nullptr};
    if (shared_with >= 0) {
        made.floats = buffers_.at(shared_with).floats;
    } else if (is_int) {
        int_memory_.emplace_back(made.num_rows * width);
        made.ints = int_memory_.back().data();
    } else {
        float_memory_.emplace_back(made.num_rows * width);
        made.floats = float_memory_.back().data();
    }
    buffers_.push_back(made);
}

void Program::add_weight(const Matrix& matrix) {
    weights_.push_back(matrix);
    vectors_.emplace_back();
    if (matrix.rows == 1) {
        vectors_.back().resize(matrix.cols);
        kernels_->unpack_row(vectors_.back().data(), matrix, 0);
    }
    for (Scratch& scratch : scratch_)
        scratch.panel.resize(std::max(scratch.panel.size(), panel_floats(matrix.cols)));
    unpacked_.resize(std::max(unpacked_.size(), matrix.cols));
}

void Program::add_op(int kind, std::vector<int> ints, std::vector<float> floats) {
    ops_.push_back({static_cast<Kind>(kind), std::move(ints), std::move(floats)});
}

void Program::run(size_t rows, State* state) {
    if (rows == 0 || rows > max_rows_) throw std::out_of_range("rows of a run");
    rows_ = rows;
    state_ = state;
    for (const Op& op : ops_) run_op(op);
}

void Program::run_op(const Op& op) {
    switch (op.kind) {
        case Kind::embed: return run_embed(op);
        case Kind::gather: return run_gather(op);
        case Kind::linear: return run_linear(op);
        case Kind::layer_norm:
        case Kind::rms_norm: return run_norm(op);
        case Kind::rope: return run_rope(op);
        case Kind::cache_write: return run_cache_write(op);
        case Kind::attention: return run_attention(op);
        case Kind::gelu:
        case Kind::silu_gate:
        case Kind::add: return run_elementwise(op);
        case Kind::patch_up:
        case Kind::patch_down: return run_patch(op);
        case Kind::argmax:
        case Kind::sample: return run_choice(op);
    }
}

const float* Program::vector(int weight) const {
    return weight < 0 ? nullptr : vectors_[weight].data();
}

State& Program::state() {
    if (!state_) throw std::logic_error("this program needs a state");
    return *state_;
}

void Program::each_row(size_t rows, size_t width, const std::function<void(size_t)>& body) {
    const size_t step = std::max<size_t>(1, kRowTaskWork / width);
    if (rows <= step) {
        for (size_t r = 0; r < rows; ++r) body(r);
        return;
    }
    pool_->run((rows + step - 1) / step, [&](size_t task, int) {
        for (size_t r = task * step; r < std::min(rows, (task + 1) * step); ++r) body(r);
    });
}

// out, ids, first_column, concat, tables...
void Program::run_embed(const Op& op) {
    Buffer &out = buffers_[op.ints[0]], &ids = buffers_[op.ints[1]];
    const size_t first_column = op.ints[2], num_tables = op.ints.size() - 4;
    const bool concat = op.ints[3];
    for (size_t r = 0; r < rows_ * out.multiple; ++r) {
        float* to = out.row(r);
        std::fill_n(to, out.width, 0.0f);
        for (size_t i = 0; i < num_tables; ++i) {
            const Matrix& table = weights_[op.ints[4 + i]];
            const int32_t id = ids.id(r, first_column + i);
            if (id >= 0 && static_cast<size_t>(id) < table.rows) {
                kernels_->unpack_row(unpacked_.data(), table, id);
                for (size_t c = 0; c < table.cols; ++c) to[c] += unpacked_[c];
            }
            if (concat) to += table.cols;
        }
    }
}

// out, x, index
void Program::run_gather(const Op& op) {
    Buffer &out = buffers_[op.ints[0]], &x = buffers_[op.ints[1]], &index = buffers_[op.ints[2]];
    for (size_t r = 0; r < rows_ * out.multiple; ++r) {
        const size_t from = index.id(r);
        if (from >= max_rows_ * x.multiple) throw std::out_of_range("index of a gather");
        std::copy_n(x.row(from), x.width, out.row(r));
    }
}

// out, x, weight, bias
void Program::run_linear(const Op& op) {
    Buffer &out = buffers_[op.ints[0]], &x = buffers_[op.ints[1]];
    const Matrix& matrix = weights_[op.ints[2]];
    const size_t rows = rows_ * out.multiple;
    const LinearJob job{matrix, vector(op.ints[3]), x.row(0), out.row(0), rows};
    if (matrix.rows * matrix.cols * rows < kSerialWork)
        return kernels_->linear(job, 0, matrix.rows, scratch_[0].panel.data());
    const size_t unit = kernels_->rows_per_task;
    const size_t step = std::max<size_t>(1, kTaskBytes / (matrix.row_bytes * unit)) * unit;
    pool_->run((matrix.rows + step - 1) / step, [&](size_t task, int thread) {
        kernels_->linear(job, task * step, std::min(matrix.rows, (task + 1) * step),
                         scratch_[thread].panel.data());
    });
}

// layer_norm: out, x, weight, bias; eps.  rms_norm: out, x, weight, group; eps
void Program::run_norm(const Op& op) {
    Buffer &out = buffers_[op.ints[0]], &x = buffers_[op.ints[1]];
    const float *weight = vector(op.ints[2]), eps = op.floats[0];
    each_row(rows_ * out.multiple, out.width, [&](size_t r) {
        if (op.kind == Kind::layer_norm)
            return kernels_->layer_norm(out.row(r), x.row(r), weight, vector(op.ints[3]),
                                        out.width, eps);
        const size_t group = op.ints[3];
        for (size_t c = 0; c < out.width; c += group)
            kernels_->rms_norm(out.row(r) + c, x.row(r) + c, weight, group, eps);
    });
}

// x, turns, first_column, heads, head_dim, interleaved
void Program::run_rope(const Op& op) {
    Buffer &x = buffers_[op.ints[0]], &turns = buffers_[op.ints[1]];
    const size_t heads = op.ints[3], head_dim = op.ints[4], half = head_dim / 2;
    const size_t step = op.ints[5] ? 2 : 1, apart = op.ints[5] ? 1 : half;
    each_row(rows_ * x.multiple, heads * head_dim, [&](size_t r) {
        const float *cos = turns.row(r), *sin = cos + half;
        float* head = x.row(r) + op.ints[2];
        for (size_t h = 0; h < heads; ++h, head += head_dim)
            for (size_t i = 0; i < half; ++i) {
                float &a = head[step * i], &b = head[step * i + apart];
                const float turned = a * cos[i] - b * sin[i];
                b = b * cos[i] + a * sin[i];
                a = turned;
            }
    });
}

// keys, key_column, values, value_column, cache, positions, streams
void Program::run_cache_write(const Op& op) {
    Buffer &new_keys = buffers_[op.ints[0]], &new_values = buffers_[op.ints[2]];
    Buffer &positions = buffers_[op.ints[5]], &streams = buffers_[op.ints[6]];
    const Cache& cache = state().caches.at(op.ints[4]);
    for (size_t r = 0; r < rows_ * positions.multiple; ++r) {
        const int64_t at = positions.id(r) % cache.length, stream = streams.id(r);
        const float* key = new_keys.row(r) + op.ints[1];
        const float* value = new_values.row(r) + op.ints[3];
        for (int64_t h = 0; h < cache.heads; ++h, key += cache.head_dim, value += cache.head_dim) {
            const int64_t lane = at % kKeyBlock;
            float* keys = cache.keys_of(stream, h) + (at - lane) * cache.head_dim + lane;
            for (int64_t d = 0; d < cache.head_dim; ++d) keys[d * kKeyBlock] = key[d];
            std::copy_n(value, cache.head_dim, cache.values_of(stream, h) + at * cache.head_dim);
        }
    }
}

// out, q, first_column, cache, positions, streams, heads, head_dim, window; scale
void Program::run_attention(const Op& op) {
    Buffer &positions = buffers_[op.ints[4]], &streams = buffers_[op.ints[5]];
    const size_t rows = rows_ * positions.multiple, heads = op.ints[6], head_dim = op.ints[7];
    // Rows are taken in groups of one stream; a group's rows share their loads of the cache.
    std::vector<size_t> starts;
    size_t work = 0;
    for (size_t r = 0; r < rows; ++r) {
        if (starts.empty() || r - starts.back() == AttentionJob::kMaxRows ||
            streams.id(r) != streams.id(starts.back()))
            starts.push_back(r);
        const size_t seen = positions.id(r) + 1;
        work += op.ints[8] ? std::min<size_t>(seen, op.ints[8]) : seen;
    }
    starts.push_back(rows);
    const size_t tasks = (starts.size() - 1) * heads;
    if (work * heads * head_dim < kSerialWork) {
        for (size_t task = 0; task < tasks; ++task) attend(op, starts, task, 0);
    } else {
        pool_->run(tasks, [&](size_t task, int thread) { attend(op, starts, task, thread); });
    }
}

// One head of one group of rows.
void Program::attend(const Op& op, const std::vector<size_t>& starts, size_t task, int thread) {
    Buffer &out = buffers_[op.ints[0]], &q = buffers_[op.ints[1]];
    Buffer &positions = buffers_[op.ints[4]], &streams = buffers_[op.ints[5]];
    const Cache& cache = state().caches[op.ints[3]];
    const size_t heads = op.ints[6], head_dim = op.ints[7], window = op.ints[8];
    // Consecutive tasks share a head, whose keys and values stay in the core's cache.
    const size_t groups = starts.size() - 1, head = task / groups, group = task % groups;
    const size_t cache_head = head / (heads / cache.heads), first_row = starts[group];
    AttentionJob job{};
    job.num_rows = static_cast<int>(starts[group + 1] - first_row);
    int64_t oldest = INT64_MAX, newest = 0;
    for (int i = 0; i < job.num_rows; ++i) {
        const int64_t position = positions.id(first_row + i);
        job.q[i] = q.row(first_row + i) + op.ints[2] + head * head_dim;
        job.out[i] = out.row(first_row + i) + head * head_dim;
        job.last[i] = position;
        job.first[i] = window ? std::max<int64_t>(0, position - window + 1) : 0;
        oldest = std::min(oldest, job.first[i]);
        newest = std::max(newest, position);
    }
    const int64_t stream = streams.id(first_row);
    job.keys = cache.keys_of(stream, cache_head);
    job.values = cache.values_of(stream, cache_head);
    job.length = cache.length;
    job.head_dim = head_dim;
    job.scale = op.floats[0];
    Floats& scores = scratch_[thread].scores;
    const size_t needed = job.num_rows * attention_stride(oldest, newest);
    if (scores.size() < needed) scores.resize(needed + needed / 2);
    job.scratch = scores.data();
    kernels_->attention(job);
}

// gelu: out, x, is_tanh.  silu_gate: out, gate, up.  add: out, a, b, scale; factor
void Program::run_elementwise(const Op& op) {
    Buffer &out = buffers_[op.ints[0]], &x = buffers_[op.ints[1]];
    each_row(rows_ * out.multiple, out.width, [&](size_t r) {
        if (op.kind == Kind::gelu) {
            auto* gelu = op.ints[2] ? kernels_->gelu_tanh : kernels_->gelu_erf;
            gelu(out.row(r), x.row(r), out.width);
        } else if (op.kind == Kind::silu_gate) {
            kernels_->silu_gate(out.row(r), x.row(r), buffers_[op.ints[2]].row(r), out.width);
        } else {
            kernels_->add_scaled(out.row(r), x.row(r), buffers_[op.ints[2]].row(r),
                                 vector(op.ints[3]), op.floats[0], out.width);
        }
    });
}

// out, x, patch
void Program::run_patch(const Op& op) {
    const bool up = op.kind == Kind::patch_up;
    Buffer &wide = buffers_[op.ints[up ? 1 : 0]], &narrow = buffers_[op.ints[up ? 0 : 1]];
    const size_t patch = op.ints[2];
    for (size_t t = 0; t < rows_ * wide.multiple; ++t)
        for (size_t k = 0; k < patch; ++k) {
            float *many = wide.row(t) + k, *one = narrow.row(t * patch + k);
            for (size_t c = 0; c < narrow.width; ++c)
                up ? one[c] = many[c * patch] : many[c * patch] = one[c];
        }
}

// argmax: out, column, x.  sample: out, column, logits, params, uniforms, streams, seen
void Program::run_choice(const Op& op) {
    Buffer &out = buffers_[op.ints[0]], &x = buffers_[op.ints[2]];
    const size_t column = op.ints[1], rows = rows_ * out.multiple;
    const auto choose = [&](size_t r, int thread) {
        if (op.kind == Kind::argmax) {
            out.id(r, column) = argmax(x.row(r), x.width);
            return;
        }
        const float* p = buffers_[op.ints[3]].row(r);
        const SamplingRow params{p[0] != 0, p[1], static_cast<int>(p[2]), p[3], p[4]};
        const float uniform = buffers_[op.ints[4]].row(r)[column];
        uint8_t* members = nullptr;
        if (op.ints[6] >= 0) {
            const Seen& seen = state().seen.at(op.ints[6]);
            members = seen.members + buffers_[op.ints[5]].id(r) * seen.size;
        }
        SamplerScratch& scratch = scratch_[thread].sampler;
        const int chosen = sample(x.row(r), x.width, members, params, uniform, scratch);
        out.id(r, column) = chosen;
        if (members) members[chosen] = 1;
    };
    // A row must see what the rows before it have chosen in its stream.
    if (rows * x.width >= kSerialLogits && !shares_streams(op, rows))
        return pool_->run(rows, choose);
    for (size_t r = 0; r < rows; ++r) choose(r, 0);
}

// Whether two rows of a sample op use the same set of seen ids.
bool Program::shares_streams(const Op& op, size_t rows) {
    if (op.kind == Kind::argmax || op.ints[6] < 0) return false;
    Buffer& streams = buffers_[op.ints[5]];
    for (size_t r = 1; r < rows; ++r)
        for (size_t before = 0; before < r; ++before)
            if (streams.id(r) == streams.id(before)) return true;
    return false;
}

}  // namespace mosstalk
