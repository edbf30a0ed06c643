// Sixteen float32 lanes in two AVX2 registers. See vec_plain.hpp for what each member means.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace mosstalk::avx2 {

struct Vec {
    __m256 a, b;  // lanes 0-7, 8-15
    static constexpr int kTileRows = 3, kTileCols = 2;

    static __m256i mask(size_t n) {
        __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
    }
    static Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
    static Vec set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
    static Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
    static Vec load(const float* p, size_t n) {
        if (n <= 8) return {_mm256_maskload_ps(p, mask(n)), _mm256_setzero_ps()};
        return {_mm256_loadu_ps(p), _mm256_maskload_ps(p + 8, mask(n - 8))};
    }
    static Vec load_f16(const uint16_t* p) {
        auto* q = reinterpret_cast<const __m128i*>(p);
        return {_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1))};
    }
    static __m256 widen_bf16(const uint16_t* p) {
        __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    }
    static Vec load_bf16(const uint16_t* p) { return {widen_bf16(p), widen_bf16(p + 8)}; }
    static __m256 widen_i8(const int8_t* p) {
        __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    }
    static Vec load_i8(const int8_t* p) { return {widen_i8(p), widen_i8(p + 8)}; }
    void hold() {}  // too few registers
    void store(float* p) const {
        _mm256_storeu_ps(p, a);
        _mm256_storeu_ps(p + 8, b);
    }
    void store(float* p, size_t n) const {
        if (n <= 8) return _mm256_maskstore_ps(p, mask(n), a);
        _mm256_storeu_ps(p, a);
        _mm256_maskstore_ps(p + 8, mask(n - 8), b);
    }

    friend Vec operator+(Vec x, Vec y) {
        return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
    }
    friend Vec operator-(Vec x, Vec y) {
        return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
    }
    friend Vec operator*(Vec x, Vec y) {
        return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
    }
    friend Vec operator/(Vec x, Vec y) {
        return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
    }
    static Vec fma(Vec x, Vec y, Vec z) {
        return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
    }
    static Vec max(Vec x, Vec y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
    static Vec min(Vec x, Vec y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
    Vec round() const {
        constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        return {_mm256_round_ps(a, nearest), _mm256_round_ps(b, nearest)};
    }
    static __m256 exp2_integer(__m256 x) {
        __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(x), _mm256_set1_epi32(127));
        return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
    }
    Vec exp2_integer() const { return {exp2_integer(a), exp2_integer(b)}; }
    Vec with_sign_of(Vec s) const {
        __m256 sign = _mm256_set1_ps(-0.0f);
        return {_mm256_or_ps(_mm256_andnot_ps(sign, a), _mm256_and_ps(sign, s.a)),
                _mm256_or_ps(_mm256_andnot_ps(sign, b), _mm256_and_ps(sign, s.b))};
    }
    float sum() const {
        __m256 eight = _mm256_add_ps(a, b);
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
    }
    float max() const {
        __m256 eight = _mm256_max_ps(a, b);
        __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
    }
    template <int M>
    static void sums(const Vec (&x)[M], float* out) {
        for (int m = 0; m < M; ++m) out[m] = x[m].sum();
    }
};

inline float f16_to_f32(uint16_t h) { return _cvtsh_ss(h); }
inline void prefetch(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}

}  // namespace mosstalk::avx2
