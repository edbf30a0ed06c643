// Sixteen float32 lanes in one AVX-512 register. See vec_plain.hpp for what each member means.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace mosstalk::avx512 {

struct Vec {
    __m512 v;
    static constexpr int kTileRows = 8, kTileCols = 3;

    static __mmask16 mask(size_t n) { return static_cast<__mmask16>((1u << n) - 1); }
    static Vec zero() { return {_mm512_setzero_ps()}; }
    static Vec set(float x) { return {_mm512_set1_ps(x)}; }
    static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
    static Vec load(const float* p, size_t n) { return {_mm512_maskz_loadu_ps(mask(n), p)}; }
    static Vec load_f16(const uint16_t* p) {
        return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
    }
    static Vec load_bf16(const uint16_t* p) {
        __m512i wide =
            _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
        return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
    }
    static Vec load_i8(const int8_t* p) {
        __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
    }
    void hold() {
#if defined(__GNUC__)
        asm("" : "+v"(v));
#endif
    }
    void store(float* p) const { _mm512_storeu_ps(p, v); }
    void store(float* p, size_t n) const { _mm512_mask_storeu_ps(p, mask(n), v); }

    friend Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
    friend Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
    friend Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
    friend Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
    static Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
    static Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
    static Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
    Vec round() const {
        return {_mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
    }
    Vec exp2_integer() const {
        __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(127));
        return {_mm512_castsi512_ps(_mm512_slli_epi32(e, 23))};
    }
    Vec with_sign_of(Vec s) const {
        __m512i sign = _mm512_set1_epi32(static_cast<int>(0x80000000u));
        return {_mm512_castsi512_ps(_mm512_or_si512(
            _mm512_andnot_si512(sign, _mm512_castps_si512(v)),
            _mm512_and_si512(sign, _mm512_castps_si512(s.v))))};
    }
    float sum() const {
        __m256 low = _mm512_castps512_ps256(v);
        __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
        __m256 eight = _mm256_add_ps(low, high);
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
    }
    float max() const { return _mm512_reduce_max_ps(v); }

    // Eight sums side by side: the additions of `sum`, with the shuffles shared.
    static Vec halves(Vec a, Vec b) {  // low half of each plus its high half: [a, b]
        return Vec{_mm512_shuffle_f32x4(a.v, b.v, 0x44)} + Vec{_mm512_shuffle_f32x4(a.v, b.v, 0xee)};
    }
    static Vec quarters(Vec a, Vec b) {  // the same within each half of [a, b], [c, d]
        return Vec{_mm512_shuffle_f32x4(a.v, b.v, 0x88)} + Vec{_mm512_shuffle_f32x4(a.v, b.v, 0xdd)};
    }
    template <int M>
    static void sums(const Vec (&x)[M], float* out) {
        if constexpr (M == 8) {
            const Vec low = quarters(halves(x[0], x[1]), halves(x[2], x[3]));
            const Vec high = quarters(halves(x[4], x[5]), halves(x[6], x[7]));
            const __m512d l = _mm512_castps_pd(low.v), h = _mm512_castps_pd(high.v);
            const Vec pairs = Vec{_mm512_castpd_ps(_mm512_unpacklo_pd(l, h))} +
                              Vec{_mm512_castpd_ps(_mm512_unpackhi_pd(l, h))};
            const Vec ones = pairs + Vec{_mm512_permute_ps(pairs.v, 0xb1)};
            const __m512i order =
                _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
            const __m512 sorted = _mm512_permutexvar_ps(order, ones.v);
            _mm256_storeu_ps(out, _mm512_castps512_ps256(sorted));
        } else {
            for (int m = 0; m < M; ++m) out[m] = x[m].sum();
        }
    }
};

inline float f16_to_f32(uint16_t h) { return _cvtsh_ss(h); }
inline void prefetch(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}

}  // namespace mosstalk::avx512
