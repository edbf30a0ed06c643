// Sixteen float32 lanes in four NEON registers. See vec_plain.hpp for what each member means.
#pragma once
#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mosstalk::neon {

struct Vec {
    float32x4_t q[4];
    static constexpr int kTileRows = 3, kTileCols = 2;

    template <class F>
    static Vec each(F f) {
        return {{f(0), f(1), f(2), f(3)}};
    }
    static Vec set(float x) {
        return each([&](int) { return vdupq_n_f32(x); });
    }
    static Vec zero() { return set(0.0f); }
    static Vec load(const float* p) {
        return each([&](int i) { return vld1q_f32(p + 4 * i); });
    }
    static Vec load(const float* p, size_t n) {
        float lanes[16] = {};
        std::memcpy(lanes, p, n * sizeof(float));
        return load(lanes);
    }
    static Vec load_f16(const uint16_t* p) {
        return each([&](int i) {
            return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i)));
        });
    }
    static Vec load_bf16(const uint16_t* p) {
        return each([&](int i) {
            return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16));
        });
    }
    static Vec load_i8(const int8_t* p) {
        int8x16_t bytes = vld1q_s8(p);
        int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
        return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
                 vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
                 vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
                 vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
    }
    void hold() {}
    void store(float* p) const {
        for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, q[i]);
    }
    void store(float* p, size_t n) const {
        float lanes[16];
        store(lanes);
        std::memcpy(p, lanes, n * sizeof(float));
    }

    friend Vec operator+(Vec a, Vec b) {
        return each([&](int i) { return vaddq_f32(a.q[i], b.q[i]); });
    }
    friend Vec operator-(Vec a, Vec b) {
        return each([&](int i) { return vsubq_f32(a.q[i], b.q[i]); });
    }
    friend Vec operator*(Vec a, Vec b) {
        return each([&](int i) { return vmulq_f32(a.q[i], b.q[i]); });
    }
    friend Vec operator/(Vec a, Vec b) {
        return each([&](int i) { return vdivq_f32(a.q[i], b.q[i]); });
    }
    static Vec fma(Vec a, Vec b, Vec c) {
        return each([&](int i) { return vfmaq_f32(c.q[i], a.q[i], b.q[i]); });
    }
    static Vec max(Vec a, Vec b) {
        return each([&](int i) { return vmaxq_f32(a.q[i], b.q[i]); });
    }
    static Vec min(Vec a, Vec b) {
        return each([&](int i) { return vminq_f32(a.q[i], b.q[i]); });
    }
    Vec round() const {
        return each([&](int i) { return vrndnq_f32(q[i]); });
    }
    Vec exp2_integer() const {
        return each([&](int i) {
            int32x4_t e = vaddq_s32(vcvtnq_s32_f32(q[i]), vdupq_n_s32(127));
            return vreinterpretq_f32_s32(vshlq_n_s32(e, 23));
        });
    }
    Vec with_sign_of(Vec s) const {
        return each([&](int i) {
            uint32x4_t sign = vdupq_n_u32(0x80000000u);
            return vbslq_f32(sign, s.q[i], q[i]);
        });
    }
    float sum() const {
        float32x4_t low = vaddq_f32(q[0], q[2]), high = vaddq_f32(q[1], q[3]);
        float32x4_t four = vaddq_f32(low, high);
        float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
        return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
    }
    float max() const {
        return vmaxvq_f32(vmaxq_f32(vmaxq_f32(q[0], q[1]), vmaxq_f32(q[2], q[3])));
    }
    template <int M>
    static void sums(const Vec (&x)[M], float* out) {
        for (int m = 0; m < M; ++m) out[m] = x[m].sum();
    }
};

inline float f16_to_f32(uint16_t h) {
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h))), 0);
}
inline void prefetch(const void* p) { __builtin_prefetch(p); }

}  // namespace mosstalk::neon
