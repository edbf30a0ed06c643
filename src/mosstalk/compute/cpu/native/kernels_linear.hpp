// Part of kernels_impl.hpp, inside its namespace.

// ---- packed weights as Vecs: kStep values at column k ----

struct F32Row {
    static constexpr size_t kStep = 16;
    static constexpr size_t kWideRows = 8;  // see wide_strip
    static void load(const uint8_t* row, size_t k, Vec (&a)[1]) {
        a[0] = Vec::load(reinterpret_cast<const float*>(row) + k);
    }
    static float one(const uint8_t* row, size_t k) {
        return reinterpret_cast<const float*>(row)[k];
    }
    static constexpr size_t bytes(size_t k) { return 4 * k; }
};

struct F16Row {
    static constexpr size_t kStep = 32;
    static constexpr size_t kWideRows = 8;  // see wide_strip
    static void load(const uint8_t* row, size_t k, Vec (&a)[2]) {
        auto* p = reinterpret_cast<const uint16_t*>(row) + k;
        a[0] = Vec::load_f16(p);
        a[1] = Vec::load_f16(p + 16);
    }
    static float one(const uint8_t* row, size_t k) {
        return f16_to_f32(reinterpret_cast<const uint16_t*>(row)[k]);
    }
    static constexpr size_t bytes(size_t k) { return 2 * k; }
};

struct Bf16Row {
    static constexpr size_t kStep = 32;
    static constexpr size_t kWideRows = 8;  // see wide_strip
    static void load(const uint8_t* row, size_t k, Vec (&a)[2]) {
        auto* p = reinterpret_cast<const uint16_t*>(row) + k;
        a[0] = Vec::load_bf16(p);
        a[1] = Vec::load_bf16(p + 16);
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
    static constexpr size_t kStep = 32;
    static constexpr size_t kWideRows = 5;  // see wide_strip
    static float scale(const uint8_t* block) {
        uint16_t h;
        std::memcpy(&h, block, sizeof h);
        return f16_to_f32(h);
    }
    static void load(const uint8_t* row, size_t k, float scale, Vec (&a)[2]) {
        const Vec s = Vec::set(scale);
        auto* q = reinterpret_cast<const int8_t*>(row + bytes(k) + 2);
        a[0] = Vec::load_i8(q) * s;
        a[1] = Vec::load_i8(q + 16) * s;
    }
    static void load(const uint8_t* row, size_t k, Vec (&a)[2]) {
        load(row, k, scale(row + bytes(k)), a);
    }
    static float one(const uint8_t* row, size_t k) {
        const uint8_t* block = row + bytes(k);
        return scale(block) * static_cast<float>(static_cast<int8_t>(block[2 + k % kQ8Len]));
    }
    static constexpr size_t bytes(size_t k) { return k / kQ8Len * kQ8Bytes; }
};

// The scales of M rows in up to kScaleCols columns. Converting sixteen at a time leaves the ports
// that a scalar conversion would keep busy to the products.
template <class Row, int M>
struct Scales {
    void read(const uint8_t*, size_t, size_t, size_t) {}
    void load(const uint8_t* row, int, size_t k, Vec (&a)[Row::kStep / 16]) const {
        Row::load(row, k, a);
    }
};

template <int M>
struct Scales<Q8Row, M> {
    static constexpr size_t kBlocks = 16;
    float scales[M][kBlocks];
    // From column k, a multiple of kBlocks * kQ8Len, on.
    void read(const uint8_t* base, size_t row_bytes, size_t k, size_t cols) {
        if (k % (kBlocks * kQ8Len)) return;
        uint16_t halves[M][kBlocks];
        const size_t count = smaller(kBlocks, (cols - k) / kQ8Len);
        for (int m = 0; m < M; ++m) {
            const uint8_t* block = base + m * row_bytes + Q8Row::bytes(k);
            for (size_t i = 0; i < count; ++i)
                std::memcpy(&halves[m][i], block + i * kQ8Bytes, sizeof(uint16_t));
        }
        for (int m = 0; m < M; ++m) Vec::load_f16(halves[m]).store(scales[m]);
    }
    void load(const uint8_t* row, int m, size_t k, Vec (&a)[2]) const {
        Q8Row::load(row, k, scales[m][k / kQ8Len % kBlocks], a);
    }
};

// ---- linear ----

// Adds the columns from k on, fewer than a step; those beyond the last are zeros on both sides.
template <class Row, int M, int N>
void add_last_columns(const Matrix& w, const uint8_t* base, const float* x, size_t k,
                      Vec (&acc)[M][N]) {
    for (; k < w.cols; k += 16) {
        const size_t left = w.cols - k < 16 ? w.cols - k : 16;
        for (int m = 0; m < M; ++m) {
            float lanes[16] = {};
            for (size_t i = 0; i < left; ++i)
                lanes[i] = Row::one(base + m * w.row_bytes, k + i);
            Vec a = Vec::load(lanes);
            for (int n = 0; n < N; ++n) {
                const float* p = x + n * w.cols + k;
                Vec b = left == 16 ? Vec::load(p) : Vec::load(p, left);
                acc[m][n] = Vec::fma(a, b, acc[m][n]);
            }
        }
    }
}

// out[n * ldo + m] for M weight rows and N activation rows.
template <class Row, int M, int N>
inline void tile(const Matrix& w, size_t row, const float* x, float* out, size_t ldo,
                 const float* bias, bool ahead) {
    constexpr int S = Row::kStep / 16;  // Vecs of a step
    Vec acc[M][N];
    for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n) acc[m][n] = Vec::zero();
    const uint8_t* base = w.data + row * w.row_bytes;
    const size_t cols = w.cols;
    Scales<Row, M> scales;
    size_t k = 0;
    for (; k + Row::kStep <= cols; k += Row::kStep) {
        scales.read(base, w.row_bytes, k, cols);
        if (ahead)  // the same place of the next tile's rows
            for (int m = 0; m < M; ++m) {
                const uint8_t* next = base + (M + m) * w.row_bytes + Row::bytes(k);
                for (size_t i = 0; i < Row::bytes(Row::kStep); i += 64) prefetch(next + i);
            }
        Vec xs[N][S];
        for (int n = 0; n < N; ++n)
            for (int s = 0; s < S; ++s) xs[n][s] = Vec::load(x + n * cols + k + 16 * s);
        for (int m = 0; m < M; ++m) {
            Vec a[S];
            scales.load(base + m * w.row_bytes, m, k, a);
            if constexpr (N > 1)
                for (int s = 0; s < S; ++s) a[s].hold();
            for (int s = 0; s < S; ++s)
                for (int n = 0; n < N; ++n) acc[m][n] = Vec::fma(a[s], xs[n][s], acc[m][n]);
        }
    }
    if (k < cols) {  // on a copy, so that acc itself never leaves the registers
        Vec copy[M][N];
        for (int m = 0; m < M; ++m)
            for (int n = 0; n < N; ++n) copy[m][n] = acc[m][n];
        add_last_columns<Row, M, N>(w, base, x, k, copy);
        for (int m = 0; m < M; ++m)
            for (int n = 0; n < N; ++n) acc[m][n] = copy[m][n];
    }
    for (int n = 0; n < N; ++n) {
        Vec column[M];
        for (int m = 0; m < M; ++m) column[m] = acc[m][n];
        float sums[M];
        Vec::sums(column, sums);
        for (int m = 0; m < M; ++m) out[n * ldo + m] = bias ? sums[m] + bias[m] : sums[m];
    }
}

// out[n * ldo + m] for M weight rows and N activation rows, more of these than `tile` takes: a weight
// is unpacked once for all of them. The sums of a weight row share their shuffles, up to eight.
template <class Row, int M, int N>
inline void wide_tile(const Matrix& w, size_t row, const float* x, float* out, size_t ldo,
                      const float* bias) {
    constexpr int S = Row::kStep / 16;  // Vecs of a step
    Vec acc[M][N];
    for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n) acc[m][n] = Vec::zero();
    const uint8_t* base = w.data + row * w.row_bytes;
    const size_t cols = w.cols;
    Scales<Row, M> scales;
    size_t k = 0;
    for (; k + Row::kStep <= cols; k += Row::kStep) {
        scales.read(base, w.row_bytes, k, cols);
        Vec a[M][S];
        for (int m = 0; m < M; ++m) {
            const uint8_t* next = base + (M + m) * w.row_bytes + Row::bytes(k);
            for (size_t i = 0; i < Row::bytes(Row::kStep); i += 64) prefetch(next + i);
            scales.load(base + m * w.row_bytes, m, k, a[m]);
            for (int s = 0; s < S; ++s) a[m][s].hold();
        }
        for (int n = 0; n < N; ++n)
            for (int s = 0; s < S; ++s) {
                Vec b = Vec::load(x + n * cols + k + 16 * s);
                for (int m = 0; m < M; ++m) acc[m][n] = Vec::fma(a[m][s], b, acc[m][n]);
            }
    }
    if (k < cols) {  // on a copy, so that acc itself never leaves the registers
        Vec copy[M][N];
        for (int m = 0; m < M; ++m)
            for (int n = 0; n < N; ++n) copy[m][n] = acc[m][n];
        add_last_columns<Row, M, N>(w, base, x, k, copy);
        for (int m = 0; m < M; ++m)
            for (int n = 0; n < N; ++n) acc[m][n] = copy[m][n];
    }
    for (int m = 0; m < M; ++m) {
        Vec each[8];
        for (int n = 0; n < 8; ++n) each[n] = acc[m][n < N ? n : 0];
        float sums[8];
        Vec::sums(each, sums);
        for (int n = 0; n < N; ++n) out[n * ldo + m] = bias ? sums[n] + bias[m] : sums[n];
    }
}

template <class Row, int M, int N>
inline void wide_tiles(const Matrix& w, size_t row, const float* x, float* out, size_t ldo,
                       const float* bias) {
    for (int m = 0; m < 8; m += M)
        wide_tile<Row, M, N>(w, row + m, x, out + m, ldo, bias ? bias + m : nullptr);
}

// Eight weight rows against 4 to 8 activation rows, as few streams that advance together have.
// Beyond Row::kWideRows unpacking the weights onto cache lines and narrow tiles take less time.
template <class Row>
void wide_strip(const Matrix& w, size_t row, const float* x, size_t num_rows, float* out,
                size_t ldo, const float* bias) {
    switch (num_rows) {
        case 4: return wide_tiles<Row, 4, 4>(w, row, x, out, ldo, bias);
        case 5: return wide_tiles<Row, 4, 5>(w, row, x, out, ldo, bias);
        case 6: return wide_tiles<Row, 2, 6>(w, row, x, out, ldo, bias);
        case 7: return wide_tiles<Row, 2, 7>(w, row, x, out, ldo, bias);
        case 8: return wide_tiles<Row, 2, 8>(w, row, x, out, ldo, bias);
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
    for (; k + Row::kStep <= w.cols; k += Row::kStep) {
        Vec a[Row::kStep / 16];
        Row::load(p, k, a);
        for (size_t s = 0; s < Row::kStep / 16; ++s) a[s].store(out + k + 16 * s);
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
    if constexpr (M == 8)  // only as many registers as AVX-512 has hold a wide tile
        if (4 <= job.num_rows && job.num_rows <= Row::kWideRows)
            return wide_strip<Row>(w, m, job.x, job.num_rows, out, w.rows, bias);
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
