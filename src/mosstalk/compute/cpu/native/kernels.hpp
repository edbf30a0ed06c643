// The kernels of one instruction set, as a table of functions; `best_kernels` picks the table.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mosstalk {

enum class Storage : int { f32, f16, bf16, q8_0 };
constexpr int64_t kKeyBlock = 16;  // positions whose keys lie together, see compute/state.py
constexpr size_t kQ8Len = 32, kQ8Bytes = 34;  // GGUF Q8_0 block: f16 scale, 32 int8

struct Matrix {  // [rows, cols], row-major, packed as `storage`
    const uint8_t* data;
    size_t rows, cols, row_bytes;
    Storage storage;
};

struct LinearJob {  // out[n] = matrix @ x[n] + bias for `num_rows` rows
    Matrix matrix;
    const float* bias;  // or null
    const float* x;
    float* out;
    size_t num_rows;
};

struct AttentionJob {  // several rows of one stream and head that see overlapping positions
    static constexpr int kMaxRows = 4;
    const float* q[kMaxRows];
    float* out[kMaxRows];
    int64_t first[kMaxRows], last[kMaxRows];  // positions seen
    int num_rows;
    const float* keys;    // [length / kKeyBlock, head_dim, kKeyBlock]
    const float* values;  // [length, head_dim]
    int64_t length;       // position p lies at p % length
    size_t head_dim;
    float scale;
    float* scratch;  // [num_rows, attention_stride(min(first), max(last))]
};

// Floats that the scores of one row take, whole blocks.
inline size_t attention_stride(int64_t first, int64_t last) {
    return static_cast<size_t>(last / kKeyBlock - first / kKeyBlock + 1) * kKeyBlock;
}

struct Kernels {
    const char* name;
    // Weight rows [first, last) of a linear; panel is scratch of `panel_floats(cols)`.
    void (*linear)(const LinearJob&, size_t first, size_t last, float* panel);
    void (*attention)(const AttentionJob&);
    void (*layer_norm)(float* out, const float* x, const float* weight, const float* bias,
                       size_t n, float eps);
    void (*rms_norm)(float* out, const float* x, const float* weight, size_t n, float eps);
    void (*gelu_tanh)(float* out, const float* x, size_t n);
    void (*gelu_erf)(float* out, const float* x, size_t n);
    void (*silu_gate)(float* out, const float* gate, const float* up, size_t n);
    void (*add_scaled)(float* out, const float* a, const float* b, const float* scale,
                       float factor, size_t n);
    void (*unpack_row)(float* out, const Matrix&, size_t row);
    float (*read)(const float* x, size_t n);  // the sum, as fast as memory gives it
    size_t rows_per_task;  // a linear's tasks are multiples of this many weight rows
};

inline size_t panel_floats(size_t cols) { return 8 * (cols + 16); }

// The best table that this processor can run, or the one called `name` (null if it cannot).
const Kernels* best_kernels();
const Kernels* kernels_named(const char* name);

extern const Kernels kPlainKernels;
#if defined(MOSSTALK_X86)
extern const Kernels kAvx2Kernels, kAvx512Kernels;
#elif defined(MOSSTALK_ARM)
extern const Kernels kNeonKernels;
#endif

}  // namespace mosstalk
