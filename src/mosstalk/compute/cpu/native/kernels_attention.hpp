// Part of kernels_impl.hpp, inside its namespace.

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
