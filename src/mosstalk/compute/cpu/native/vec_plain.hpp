// Sixteen float32 lanes as an array: the meaning of the other vec_*.hpp, for any processor.
//
// A dot product is one accumulator of sixteen lanes, fed in order of k, then summed by the tree
// in `sum`. Every kernel and every instruction set keeps to that order, so a result does not
// depend on which kernel made it.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mosstalk::plain {

inline float from_bits(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

inline float f16_to_f32(uint16_t h) {
    uint32_t sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u) return from_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    // Shift the exponent into place, then scale by 2^112: right for subnormal numbers too.
    return from_bits(sign | rest << 13) * from_bits(0x77800000u);
}

struct Vec {
    float lane[16];
    static constexpr int kTileRows = 2, kTileCols = 1;  // a GEMM tile that fits the registers

    template <class F>
    static Vec each(F f) {
        Vec out;
        for (int i = 0; i < 16; ++i) out.lane[i] = f(i);
        return out;
    }
    static Vec set(float x) {
        return each([&](int) { return x; });
    }
    static Vec zero() { return set(0.0f); }
    static Vec load(const float* p) {
        return each([&](int i) { return p[i]; });
    }
    static Vec load(const float* p, size_t n) {  // zeros beyond the first n < 16
        return each([&](int i) { return i < static_cast<int>(n) ? p[i] : 0.0f; });
    }
    static Vec load_f16(const uint16_t* p) {
        return each([&](int i) { return f16_to_f32(p[i]); });
    }
    static Vec load_bf16(const uint16_t* p) {
        return each([&](int i) { return from_bits(static_cast<uint32_t>(p[i]) << 16); });
    }
    static Vec load_i8(const int8_t* p) {
        return each([&](int i) { return static_cast<float>(p[i]); });
    }
    // Keeps the value in a register where a compiler would rather load it for each use.
    void hold() {}
    void store(float* p) const { std::memcpy(p, lane, sizeof lane); }
    void store(float* p, size_t n) const { std::memcpy(p, lane, n * sizeof(float)); }

    friend Vec operator+(Vec a, Vec b) {
        return each([&](int i) { return a.lane[i] + b.lane[i]; });
    }
    friend Vec operator-(Vec a, Vec b) {
        return each([&](int i) { return a.lane[i] - b.lane[i]; });
    }
    friend Vec operator*(Vec a, Vec b) {
        return each([&](int i) { return a.lane[i] * b.lane[i]; });
    }
    friend Vec operator/(Vec a, Vec b) {
        return each([&](int i) { return a.lane[i] / b.lane[i]; });
    }
    static Vec fma(Vec a, Vec b, Vec c) {  // without the hardware's instruction: two roundings
        return each([&](int i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
    }
    static Vec max(Vec a, Vec b) {
        return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
    }
    static Vec min(Vec a, Vec b) {
        return each([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
    }
    Vec round() const {
        return each([&](int i) { return std::nearbyint(lane[i]); });
    }
    Vec exp2_integer() const {  // 2^x of integers -126 ... 127
        return each([&](int i) {
            return from_bits(static_cast<uint32_t>(static_cast<int>(lane[i]) + 127) << 23);
        });
    }
    Vec with_sign_of(Vec s) const {
        return each([&](int i) { return std::copysign(lane[i], s.lane[i]); });
    }
    float sum() const {
        float x[16];
        store(x);
        for (int half = 8; half; half /= 2)
            for (int i = 0; i < half; ++i) x[i] += x[i + half];
        return x[0];
    }
    float max() const {
        float top = lane[0];
        for (float x : lane) top = x > top ? x : top;
        return top;
    }
    template <int M>
    static void sums(const Vec (&x)[M], float* out) {  // the sum of each
        for (int m = 0; m < M; ++m) out[m] = x[m].sum();
    }
};

inline void prefetch(const void*) {}

}  // namespace mosstalk::plain
