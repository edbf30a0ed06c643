// Part of kernels_impl.hpp, inside its namespace.

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
