// All kernels, written over `Vec`; included once for each instruction set, inside its namespace.
// Order of every sum is fixed by the two numbers it belongs to, never by the tile around it.

namespace {

// Not std::min and std::max: an inline function shared by all translation units could be linked
// in the form compiled for the largest instruction set.
template <class T>
inline T smaller(T a, T b) {
    return b < a ? b : a;
}
template <class T>
inline T larger(T a, T b) {
    return a < b ? b : a;
}

// ---- packed weights as pairs of Vec: 32 values at column k ----

struct F32Row {
    static constexpr bool kFlat = true;
    static Vec load(const uint8_t* row, size_t k) {
        return Vec::load(reinterpret_cast<const float*>(row) + k);
    }
    static void load(const uint8_t* row, size_t k, Vec& a, Vec& b) {
        a = load(row, k);
        b = load(row, k + 16);
    }
    static float one(const uint8_t* row, size_t k) {
        return reinterpret_cast<const float*>(row)[k];
    }
    static constexpr size_t bytes(size_t k) { return 4 * k; }
};

struct F16Row {
    static constexpr bool kFlat = false;
    static void load(const uint8_t* row, size_t k, Vec& a, Vec& b) {
        auto* p = reinterpret_cast<const uint16_t*>(row) + k;
        a = Vec::load_f16(p);
        b = Vec::load_f16(p + 16);
    }
    static float one(const uint8_t* row, size_t k) {
        return f16_to_f32(reinterpret_cast<const uint16_t*>(row)[k]);
    }
    static constexpr size_t bytes(size_t k) { return 2 * k; }
};

struct Bf16Row {
    static constexpr bool kFlat = false;
    static void load(const uint8_t* row, size_t k, Vec& a, Vec& b) {
        auto* p = reinterpret_cast<const uint16_t*>(row) + k;
        a = Vec::load_bf16(p);
        b = Vec::load_bf16(p + 16);
    }
    static float one(const uint8_t* row, size_t k) {
        uint32_t bits = static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(row)[k]) << 16;
        float x;
        std::memcpy(&x, &bits, sizeof x);
        return x;
    }
    static constexpr size_t bytes(size_t k) { return 2 * k; }
};

struct Q8Row {  // scale * int8 has at most 19 significant bits: exact in float32
    static constexpr bool kFlat = false;
    static float scale(const uint8_t* block) {
        uint16_t h;
        std::memcpy(&h, block, sizeof h);
        return f16_to_f32(h);
    }
    static void load(const uint8_t* row, size_t k, Vec& a, Vec& b) {
        const uint8_t* block = row + bytes(k);
        Vec s = Vec::set(scale(block));
        auto* q = reinterpret_cast<const int8_t*>(block + 2);
        a = Vec::load_i8(q) * s;
        b = Vec::load_i8(q + 16) * s;
    }
    static float one(const uint8_t* row, size_t k) {
        const uint8_t* block = row + bytes(k);
        return scale(block) * static_cast<float>(static_cast<int8_t>(block[2 + k % kQ8Len]));
    }
    static constexpr size_t bytes(size_t k) { return k / kQ8Len * kQ8Bytes; }
};

// ---- linear ----

// out[n * ldo + m] for M weight rows and N activation rows.
template <class Row, int M, int N>
inline void tile(const Matrix& w, size_t row, const float* x, float* out, size_t ldo,
                 const float* bias, bool ahead) {
    Vec acc[M][N];
    for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n) acc[m][n] = Vec::zero();
    const uint8_t* base = w.data + row * w.row_bytes;
    const size_t cols = w.cols;
    size_t k = 0;
    for (; k + 32 <= cols; k += 32) {
        if (ahead)  // the same place of the next tile's rows
            for (int m = 0; m < M; ++m) {
                const uint8_t* next = base + (M + m) * w.row_bytes + Row::bytes(k);
                for (size_t i = 0; i < Row::bytes(32); i += 64) prefetch(next + i);
            }
        if constexpr (Row::kFlat) {  // sixteen columns at a time: M * N + N + 1 registers
            for (size_t h = k; h < k + 32; h += 16) {
                Vec xs[N];
                for (int n = 0; n < N; ++n) xs[n] = Vec::load(x + n * cols + h);
                for (int m = 0; m < M; ++m) {
                    const Vec a = Row::load(base + m * w.row_bytes, h);
                    for (int n = 0; n < N; ++n) acc[m][n] = Vec::fma(a, xs[n], acc[m][n]);
                }
            }
        } else {  // a block shares its unpacking
            Vec xa[N], xb[N];
            for (int n = 0; n < N; ++n) {
                xa[n] = Vec::load(x + n * cols + k);
                xb[n] = Vec::load(x + n * cols + k + 16);
            }
            for (int m = 0; m < M; ++m) {
                Vec a, b;
                Row::load(base + m * w.row_bytes, k, a, b);
                for (int n = 0; n < N; ++n) acc[m][n] = Vec::fma(a, xa[n], acc[m][n]);
                for (int n = 0; n < N; ++n) acc[m][n] = Vec::fma(b, xb[n], acc[m][n]);
            }
        }
    }
    for (; k < cols; k += 16) {  // columns beyond the last are zeros on both sides
        const size_t left = cols - k < 16 ? cols - k : 16;
        for (int m = 0; m < M; ++m) {
            float lanes[16] = {};
            for (size_t i = 0; i < left; ++i)
                lanes[i] = Row::one(base + m * w.row_bytes, k + i);
            Vec a = Vec::load(lanes);
            for (int n = 0; n < N; ++n) {
                const float* p = x + n * cols + k;
                Vec b = left == 16 ? Vec::load(p) : Vec::load(p, left);
                acc[m][n] = Vec::fma(a, b, acc[m][n]);
            }
        }
    }
    for (int n = 0; n < N; ++n) {
        Vec column[M];
        for (int m = 0; m < M; ++m) column[m] = acc[m][n];
        float sums[M];
        Vec::sums(column, sums);
        for (int m = 0; m < M; ++m) out[n * ldo + m] = bias ? sums[m] + bias[m] : sums[m];
    }
}

// Weight rows to fetch into the cache while others are computed.
struct Ahead {
    const uint8_t* next;
    size_t row_bytes;
    size_t count;
    void fetch(size_t rows) {
        for (; rows && count; --rows, --count, next += row_bytes)
            for (size_t i = 0; i < row_bytes; i += 64) prefetch(next + i);
    }
};

// M weight rows against every activation row, in tiles of at most kTileCols.
template <class Row, int M>
inline void strip(const Matrix& w, size_t row, const float* x, size_t num_rows, float* out,
                  size_t ldo, const float* bias, bool ahead, Ahead later) {
    const size_t share = M * Vec::kTileCols / num_rows + 1;  // of `later` for each tile
    size_t n = 0;
    if constexpr (Vec::kTileCols >= 3)
        for (; n + 3 <= num_rows; n += 3) {
            later.fetch(share);
            tile<Row, M, 3>(w, row, x + n * w.cols, out + n * ldo, ldo, bias, ahead && n == 0);
        }
    if constexpr (Vec::kTileCols >= 2)
        for (; n + 2 <= num_rows; n += 2) {
            later.fetch(share);
            tile<Row, M, 2>(w, row, x + n * w.cols, out + n * ldo, ldo, bias, ahead && n == 0);
        }
    for (; n < num_rows; ++n) {
        later.fetch(share);
        tile<Row, M, 1>(w, row, x + n * w.cols, out + n * ldo, ldo, bias, ahead && n == 0);
    }
}

template <class Row>
void unpack(float* out, const Matrix& w, size_t row) {
    const uint8_t* p = w.data + row * w.row_bytes;
    size_t k = 0;
    for (; k + 32 <= w.cols; k += 32) {
        Vec a, b;
        Row::load(p, k, a, b);
        a.store(out + k);
        b.store(out + k + 16);
    }
    for (; k < w.cols; ++k) out[k] = Row::one(p, k);
}

// Activation rows from which it pays to unpack a panel of weights once, onto cache lines.
constexpr size_t kUnpackFrom = 7;

// Weight rows [m, m + M), unpacked onto cache lines first where many activation rows use them.
template <class Row, int M>
inline void linear_strip(const LinearJob& job, size_t m, size_t last, float* panel) {
    const Matrix& w = job.matrix;
    const float* bias = job.bias ? job.bias + m : nullptr;
    float* out = job.out + m;
    if (job.num_rows < kUnpackFrom)
        return strip<Row, M>(w, m, job.x, job.num_rows, out, w.rows, bias, true, {});
    for (size_t i = 0; i < M; ++i) unpack<Row>(panel + i * w.cols, w, m + i);
    const Matrix flat{reinterpret_cast<const uint8_t*>(panel), M, w.cols,
                      w.cols * sizeof(float), Storage::f32};
    const Ahead later{w.data + (m + M) * w.row_bytes, w.row_bytes,
                      smaller(size_t{M}, last - (m + M))};
    strip<F32Row, M>(flat, 0, job.x, job.num_rows, out, w.rows, bias, false, later);
}

template <class Row>
void linear_rows(const LinearJob& job, size_t first, size_t last, float* panel) {
    constexpr int M = Vec::kTileRows;
    size_t m = first;
    for (; m + M <= last; m += M) linear_strip<Row, M>(job, m, last, panel);
    for (; m < last; ++m) linear_strip<Row, 1>(job, m, last, panel);
}

void linear(const LinearJob& job, size_t first, size_t last, float* panel) {
    switch (job.matrix.storage) {
        case Storage::f32: return linear_rows<F32Row>(job, first, last, panel);
        case Storage::f16: return linear_rows<F16Row>(job, first, last, panel);
        case Storage::bf16: return linear_rows<Bf16Row>(job, first, last, panel);
        case Storage::q8_0: return linear_rows<Q8Row>(job, first, last, panel);
    }
}

void unpack_row(float* out, const Matrix& w, size_t row) {
    switch (w.storage) {
        case Storage::f32: return unpack<F32Row>(out, w, row);
        case Storage::f16: return unpack<F16Row>(out, w, row);
        case Storage::bf16: return unpack<Bf16Row>(out, w, row);
        case Storage::q8_0: return unpack<Q8Row>(out, w, row);
    }
}

// ---- functions of one variable ----

inline Vec exp(Vec x) {  // relative error below 2e-7 on [-87, 88]; flat outside
    x = Vec::min(Vec::max(x, Vec::set(-87.0f)), Vec::set(88.0f));
    const Vec n = (x * Vec::set(1.44269504f)).round();
    Vec r = Vec::fma(n, Vec::set(-0.693145752f), x);  // ln 2 in two parts
    r = Vec::fma(n, Vec::set(-1.42860677e-6f), r);
    Vec p = Vec::set(1.0f / 5040);  // Taylor: |r| <= 0.347, the first term left out is 5e-9
    for (float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
        p = Vec::fma(p, r, Vec::set(c));
    return p * n.exp2_integer();
}

inline Vec tanh(Vec x) {  // absolute error below 2e-7
    const Vec one = Vec::set(1.0f), two = Vec::set(2.0f);
    Vec top = Vec::min(Vec::max(x, Vec::set(-20.0f)), Vec::set(20.0f));
    return one - two / (exp(top * two) + one);
}

// erf(x) = 1 - exp(-x p(x)) for x >= 0; p fitted (least maximum) to -log(erfc(x)) / x on
// [0, 3.9]: absolute error below 1.4e-7 everywhere.
inline Vec erf(Vec x) {
    const Vec top = Vec::set(3.9f);
    Vec a = Vec::min(Vec::max(x, Vec::zero() - x), top);
    Vec p = Vec::set(-5.29427916e-6f);
    for (float c : {7.94786101e-5f, -4.85232071e-4f, 1.37093593e-3f, 1.71464650e-4f,
                    -1.93614215e-2f, 1.02847218e-1f, 6.36608720e-1f, 1.12837970f})
        p = Vec::fma(p, a, Vec::set(c));
    return (Vec::set(1.0f) - exp(Vec::zero() - a * p)).with_sign_of(x);
}

template <class F>
inline void map(float* out, const float* x, size_t n, F f) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) f(Vec::load(x + i)).store(out + i);
    if (i < n) f(Vec::load(x + i, n - i)).store(out + i, n - i);
}

void gelu_tanh(float* out, const float* x, size_t n) {
    map(out, x, n, [](Vec v) {
        const Vec cubic = v * Vec::fma(v * v, Vec::set(0.044715f), Vec::set(1.0f));
        const Vec gate = Vec::set(1.0f) + tanh(cubic * Vec::set(0.797884561f));
        return Vec::set(0.5f) * v * gate;
    });
}

void gelu_erf(float* out, const float* x, size_t n) {
    map(out, x, n, [](Vec v) {
        return Vec::set(0.5f) * v * (Vec::set(1.0f) + erf(v * Vec::set(0.707106781f)));
    });
}

void silu_gate(float* out, const float* gate, const float* up, size_t n) {
    const Vec one = Vec::set(1.0f);
    auto f = [&](Vec g, Vec u) { return g / (one + exp(Vec::zero() - g)) * u; };
    size_t i = 0;
    for (; i + 16 <= n; i += 16) f(Vec::load(gate + i), Vec::load(up + i)).store(out + i);
    if (i < n) f(Vec::load(gate + i, n - i), Vec::load(up + i, n - i)).store(out + i, n - i);
}

void add_scaled(float* out, const float* a, const float* b, const float* scale, float factor,
                size_t n) {
    for (size_t i = 0; i < n; i += 16) {
        const size_t left = n - i;
        auto load = [&](const float* p) {
            return left < 16 ? Vec::load(p + i, left) : Vec::load(p + i);
        };
        const Vec s = scale ? load(scale) : Vec::set(factor);
        const Vec sum = Vec::fma(load(b), s, load(a));
        left < 16 ? sum.store(out + i, left) : sum.store(out + i);
    }
}

// ---- norms: sums run over sixteen lanes, then the tree of Vec::sum ----

template <class F>
inline float sum_of(const float* x, size_t n, F f) {
    Vec acc = Vec::zero();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) acc = acc + f(Vec::load(x + i));
    if (i < n) {
        float lanes[16];
        f(Vec::load(x + i, n - i)).store(lanes);
        acc = acc + Vec::load(lanes, n - i);  // f(0) need not be 0
    }
    return acc.sum();
}

void layer_norm(float* out, const float* x, const float* weight, const float* bias, size_t n,
                float eps) {
    const float mean = sum_of(x, n, [](Vec v) { return v; }) / static_cast<float>(n);
    const Vec centre = Vec::set(mean);
    const float variance = sum_of(x, n, [&](Vec v) { return (v - centre) * (v - centre); }) /
                           static_cast<float>(n);
    const Vec scale = Vec::set(1.0f / std::sqrt(variance + eps));
    for (size_t i = 0; i < n; i += 16) {
        const size_t left = n - i;
        auto load = [&](const float* p) {
            return left < 16 ? Vec::load(p + i, left) : Vec::load(p + i);
        };
        const Vec y = Vec::fma((load(x) - centre) * scale, load(weight), load(bias));
        left < 16 ? y.store(out + i, left) : y.store(out + i);
    }
}

void rms_norm(float* out, const float* x, const float* weight, size_t n, float eps) {
    const float square = sum_of(x, n, [](Vec v) { return v * v; }) / static_cast<float>(n);
    const Vec scale = Vec::set(1.0f / std::sqrt(square + eps));
    for (size_t i = 0; i < n; i += 16) {
        const size_t left = n - i;
        auto load = [&](const float* p) {
            return left < 16 ? Vec::load(p + i, left) : Vec::load(p + i);
        };
        const Vec y = load(x) * scale * load(weight);
        left < 16 ? y.store(out + i, left) : y.store(out + i);
    }
}

float read(const float* x, size_t n) {  // n: a multiple of 64
    Vec a = Vec::zero(), b = a, c = a, d = a;
    for (size_t i = 0; i < n; i += 64) {
        for (size_t line = 0; line < 64; line += 16) prefetch(x + i + 2048 + line);
        a = a + Vec::load(x + i);
        b = b + Vec::load(x + i + 16);
        c = c + Vec::load(x + i + 32);
        d = d + Vec::load(x + i + 48);
    }
    return ((a + b) + (c + d)).sum();
}

// ---- attention ----

// Calls f(index in the ring, position, count) for runs of positions that lie side by side.
template <class F>
inline void each_run(int64_t first, int64_t last, int64_t length, F f) {
    for (int64_t p = first; p <= last;) {
        const int64_t at = p % length;
        const int64_t count = smaller(last - p + 1, length - at);
        f(at, p, count);
        p += count;
    }
}

// Scores of R rows against B blocks of sixteen positions. Each score is a sum over head_dim in
// order, so it does not matter which positions are computed together.
template <int R, int B>
inline void block_scores(const AttentionJob& job, const float* keys, float* out, size_t stride) {
    Vec acc[R][B];
    for (int r = 0; r < R; ++r)
        for (int b = 0; b < B; ++b) acc[r][b] = Vec::zero();
    const size_t block = job.head_dim * kKeyBlock;
    for (size_t d = 0; d < job.head_dim; ++d) {
        Vec key[B];
        for (int b = 0; b < B; ++b) key[b] = Vec::load(keys + b * block + d * kKeyBlock);
        for (int r = 0; r < R; ++r) {
            const Vec q = Vec::set(job.q[r][d]);
            for (int b = 0; b < B; ++b) acc[r][b] = Vec::fma(q, key[b], acc[r][b]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int b = 0; b < B; ++b)
            (acc[r][b] * Vec::set(job.scale)).store(out + r * stride + b * kKeyBlock);
}

// Scores of R rows against all positions of [first, last]; `first` starts a block. Scores beyond
// `last` in its block are written too, and never read.
template <int R>
inline void scores(const AttentionJob& job, int64_t first, int64_t last, size_t stride) {
    each_run(first, last, job.length, [&](int64_t at, int64_t p, int64_t count) {
        const float* keys = job.keys + at * job.head_dim;
        float* out = job.scratch + (p - first);
        int64_t i = 0;
        for (; i + 2 * kKeyBlock <= count; i += 2 * kKeyBlock)
            block_scores<R, 2>(job, keys + i * job.head_dim, out + i, stride);
        for (; i < count; i += kKeyBlock)
            block_scores<R, 1>(job, keys + i * job.head_dim, out + i, stride);
    });
}

// Scores to weights exp(s - max) of one row; returns one over their sum.
inline float softmax(float* s, size_t n) {
    Vec top = Vec::set(s[0]);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) top = Vec::max(top, Vec::load(s + i));
    float largest = top.max();
    for (; i < n; ++i) largest = larger(largest, s[i]);
    const Vec shift = Vec::set(largest);
    map(s, s, n, [&](Vec v) { return exp(v - shift); });
    return 1.0f / sum_of(s, n, [](Vec v) { return v; });
}

// acc[r] += weight * value over positions [first, last], oldest first, for D columns of values.
template <int R, int D>
inline void add_values(const AttentionJob& job, Vec (&acc)[R][D], const float* const* weights,
                       int64_t first, int64_t last, size_t column, size_t tail) {
    each_run(first, last, job.length, [&](int64_t at, int64_t p, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
            const float* v = job.values + (at + i) * job.head_dim + column;
            Vec value[D];
            for (int d = 0; d < D; ++d)
                value[d] = d == D - 1 && tail ? Vec::load(v + 16 * d, tail) : Vec::load(v + 16 * d);
            for (int r = 0; r < R; ++r) {
                const Vec w = Vec::set(weights[r][p + i]);
                for (int d = 0; d < D; ++d) acc[r][d] = Vec::fma(w, value[d], acc[r][d]);
            }
        }
    });
}

// D Vecs of columns of the result of R rows. Positions that all rows see are shared; what one
// row sees before or after them is added for that row alone, in the same order.
template <int R, int D>
inline void weighted_values(const AttentionJob& job, const float* const* weights,
                            const float* inverse, size_t column, size_t tail) {
    Vec acc[R][D];
    int64_t from = job.first[0], to = job.last[0];
    for (int r = 0; r < R; ++r) {
        from = larger(from, job.first[r]);
        to = smaller(to, job.last[r]);
        for (int d = 0; d < D; ++d) acc[r][d] = Vec::zero();
    }
    auto alone = [&](int r, int64_t first, int64_t last) {
        Vec one[1][D];
        for (int d = 0; d < D; ++d) one[0][d] = acc[r][d];
        add_values<1, D>(job, one, weights + r, first, last, column, tail);
        for (int d = 0; d < D; ++d) acc[r][d] = one[0][d];
    };
    if (from > to) {  // nothing in common
        for (int r = 0; r < R; ++r) alone(r, job.first[r], job.last[r]);
    } else {
        for (int r = 0; r < R; ++r) alone(r, job.first[r], from - 1);
        add_values<R, D>(job, acc, weights, from, to, column, tail);
        for (int r = 0; r < R; ++r) alone(r, to + 1, job.last[r]);
    }
    for (int r = 0; r < R; ++r)
        for (int d = 0; d < D; ++d) {
            const Vec y = acc[r][d] * Vec::set(inverse[r]);
            float* out = job.out[r] + column + 16 * d;
            d == D - 1 && tail ? y.store(out, tail) : y.store(out);
        }
}

template <int R>
void attention_rows(const AttentionJob& job) {
    int64_t first = job.first[0], last = job.last[0];
    for (int r = 1; r < R; ++r) {
        first = smaller(first, job.first[r]);
        last = larger(last, job.last[r]);
    }
    first -= first % kKeyBlock;
    const size_t stride = attention_stride(first, last);
    scores<R>(job, first, last, stride);
    const float* weights[R];  // indexed by position
    float inverse[R];
    for (int r = 0; r < R; ++r) {
        float* row = job.scratch + r * stride;
        const size_t seen = static_cast<size_t>(job.last[r] - job.first[r]) + 1;
        inverse[r] = softmax(row + (job.first[r] - first), seen);
        weights[r] = row - first;
    }
    size_t column = 0;
    for (; column + 64 <= job.head_dim; column += 64)
        weighted_values<R, 4>(job, weights, inverse, column, 0);
    for (; column < job.head_dim; column += 16) {
        const size_t left = job.head_dim - column;
        weighted_values<R, 1>(job, weights, inverse, column, left < 16 ? left : 0);
    }
}

void attention(const AttentionJob& job) {
    switch (job.num_rows) {
        case 1: return attention_rows<1>(job);
        case 2: return attention_rows<2>(job);
        case 3: return attention_rows<3>(job);
        default: return attention_rows<4>(job);
    }
}

}  // namespace

#define MOSSTALK_KERNELS(NAME)                                                              \
    {                                                                                       \
        NAME, linear, attention, layer_norm, rms_norm, gelu_tanh, gelu_erf, silu_gate,      \
            add_scaled, unpack_row, read, Vec::kTileRows                                    \
    }
