// A recorded program and the state it runs on, as compute/ops.py describes them.
#pragma once
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "kernels.hpp"
#include "pool.hpp"
#include "sampler.hpp"

namespace mosstalk {

// Floats on cache lines of their own: a 64-byte load that crosses two lines costs two.
template <class T>
struct LineAllocator {
    using value_type = T;
    static constexpr std::align_val_t kLine{64};
    LineAllocator() = default;
    template <class U>
    LineAllocator(const LineAllocator<U>&) {}
    T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
    void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
    bool operator==(const LineAllocator&) const { return true; }
};
using Floats = std::vector<float, LineAllocator<float>>;

enum class Kind : int {  // in the order of _KINDS in cpu/backend.py
    embed, gather, linear, layer_norm, rms_norm, rope, cache_write, attention, gelu, silu_gate,
    add, patch_up, patch_down, argmax, sample
};

struct Op {
    Kind kind;
    std::vector<int> ints;  // buffers, weights, columns ...: each run_* names them in order
    std::vector<float> floats;
};

struct Buffer {
    size_t width, multiple, num_rows;
    float* floats;  // one of the two is used
    int32_t* ints;
    float* row(size_t r) { return floats + r * width; }
    int32_t& id(size_t r, size_t column = 0) { return ints[r * width + column]; }
};

struct Cache {
    float* keys;    // [streams, heads, length / kKeyBlock, head_dim, kKeyBlock]
    float* values;  // [streams, heads, length, head_dim]
    int64_t heads, head_dim, length;
    float* keys_of(int64_t stream, int64_t head) const {
        return keys + (stream * heads + head) * head_dim * length;
    }
    float* values_of(int64_t stream, int64_t head) const {
        return values + (stream * heads + head) * head_dim * length;
    }
};

struct Seen {
    uint8_t* members;  // [streams, size]
    int64_t size;
};

struct State {
    std::vector<Cache> caches;
    std::vector<Seen> seen;
};

class Program {
  public:
    Program(size_t max_rows, std::shared_ptr<Pool> pool, const Kernels* kernels);

    // `shared_with`: an earlier buffer of the same size whose memory this one uses; -1 for none.
    void add_buffer(size_t width, size_t multiple, bool is_int, int shared_with);
    void add_weight(const Matrix& matrix);
    void add_op(int kind, std::vector<int> ints, std::vector<float> floats);
    Buffer& buffer(size_t index) { return buffers_.at(index); }
    void run(size_t rows, State* state);

  private:
    struct Scratch {  // of one thread
        Floats panel, scores;
        SamplerScratch sampler;
    };
    void run_op(const Op& op);
    void run_embed(const Op& op);
    void run_gather(const Op& op);
    void run_linear(const Op& op);
    void run_norm(const Op& op);
    void run_rope(const Op& op);
    void run_cache_write(const Op& op);
    void run_attention(const Op& op);
    void run_elementwise(const Op& op);
    void run_patch(const Op& op);
    void run_choice(const Op& op);
    bool shares_streams(const Op& op, size_t rows);
    void each_row(size_t rows, size_t width, const std::function<void(size_t)>& body);
    void attend(const Op& op, const std::vector<size_t>& starts, size_t task, int thread);
    const float* vector(int weight) const;
    State& state();

    size_t max_rows_, rows_ = 0;
    std::shared_ptr<Pool> pool_;
    const Kernels* kernels_;
    std::vector<Buffer> buffers_;
    std::vector<Floats> float_memory_;
    std::vector<std::vector<int32_t>> int_memory_;
    std::vector<Matrix> weights_;
    std::vector<std::vector<float>> vectors_;  // weights of one row, unpacked
    std::vector<Op> ops_;
    std::vector<Scratch> scratch_;
    std::vector<float> unpacked_;
    State* state_ = nullptr;
};

}  // namespace mosstalk
