/* Exponentials and logarithms that the compiler can vectorise: no branches, no calls.
 *
 * Errors are measured over the whole range by tests/test_fused_cpu.py.
 */
#ifndef FBETA_CPU_MATH_H
#define FBETA_CPU_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- single precision ---- */

INLINE float as_float(uint32_t i) {
    float x;
    memcpy(&x, &i, 4);
    return x;
}

INLINE uint32_t as_bits(float x) {
    uint32_t i;
    memcpy(&i, &x, 4);
    return i;
}

/* 2^n and r with x = n log 2 + r, |r| <= log(2)/2; adding 1.5 * 2^23 rounds to an integer. */
INLINE float reduce(float x, float *scale) {
    const float magic = 12582912.0f;
    float t = x * 1.44269504f + magic;
    float n = t - magic;
    *scale = as_float((as_bits(t) - as_bits(magic) + 127u) << 23);
    return x - n * 0.693359375f + n * 2.12194440e-4f;
}

/* (exp(r) - 1 - r)/r^2 on that range (Cephes expf). */
INLINE float exp_tail(float r) {
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    return p * r + 5.0000001201e-1f;
}

/* exp(x) for x <= 0; 0 where it would be subnormal. */
INLINE float exp_negative(float x) {
    float scale, low = x < -87.0f ? -87.0f : x; /* this way round NaN stays */
    float r = reduce(low, &scale);
    float value = scale * (exp_tail(r) * r * r + r + 1.0f);
    return x < -87.0f ? 0.0f : value;
}

/* exp(x) - 1 for x <= 0, and exp(x) beside it. */
INLINE float expm1_negative(float x, float *exp_x) {
    float scale, low = x < -87.0f ? -87.0f : x;
    float r = reduce(low, &scale);
    float m = exp_tail(r) * r * r + r;
    *exp_x = x < -87.0f ? 0.0f : scale * m + scale;
    return scale * m + (scale - 1.0f);
}

/* log(1 + r) for -0.293 <= r <= 0.415 (Cephes logf). */
INLINE float log_near_one(float r) {
    float p = 7.0376836292e-2f, square = r * r;
    p = p * r - 1.1514610310e-1f;
    p = p * r + 1.1676998740e-1f;
    p = p * r - 1.2420140846e-1f;
    p = p * r + 1.4249322787e-1f;
    p = p * r - 1.6668057665e-1f;
    p = p * r + 2.0000714765e-1f;
    p = p * r - 2.4999993993e-1f;
    p = p * r + 3.3333331174e-1f;
    return r + (p * r * square - 0.5f * square);
}

/* log(1 + e) for 0 <= e <= 1; above sqrt(2) - 1 it is log 2 + log(1 + (e - 1)/2), which is exact. */
INLINE float log1p_unit(float e) {
    int far = e > 0.41421356f;
    float value = log_near_one(far ? 0.5f * e - 0.5f : e);
    return value + (far ? 0.693147181f : 0.0f);
}

/* log(x) for normal x > 0; NaN stays NaN. */
INLINE float log_positive(float x) {
    uint32_t bits = as_bits(x);
    /* The mantissa goes to [sqrt(1/2), sqrt(2)); the exponent follows. */
    uint32_t k = (bits + (0x3f800000u - 0x3f3504f3u)) >> 23;
    float n = (float)((int32_t)k - 127);
    float m = as_float(bits - ((k - 127u) << 23));
    float value = n * -2.12194440e-4f + log_near_one(m - 1.0f) + n * 0.693359375f;
    return x == x ? value : x;
}

/* ---- double precision, to about 1e-11: enough for floats, and nothing cancels on the way ---- */

INLINE double as_double(uint64_t i) {
    double x;
    memcpy(&x, &i, 8);
    return x;
}

INLINE uint64_t as_long(double x) {
    uint64_t i;
    memcpy(&i, &x, 8);
    return i;
}

/* exp(x) - 1 for |x| <= 700, and exp(x) beside it; beyond, the value at the border. */
INLINE double expm1_double(double x, double *exp_x) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    x = x < -700.0 ? -700.0 : x;
    x = x > 700.0 ? 700.0 : x;
    double t = x * 1.4426950408889634 + magic;
    double n = t - magic;
    double scale = as_double((as_long(t) - as_long(magic) + 1023u) << 52);
    double r = x - n * 0.69314718055994531;
    double p = 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    double m = p * r * r + r;
    *exp_x = scale * m + scale;
    return scale * m + (scale - 1.0);
}

/* log(x) for normal x > 0; NaN stays NaN. With s = (m - 1)/(m + 1), log m = 2 artanh s. */
INLINE double log_double(double x) {
    const uint64_t half = 0x3fe6a09e667f3bcdu, one = 0x3ff0000000000000u;
    uint64_t bits = as_long(x);
    uint64_t k = (bits + (one - half)) >> 52;
    /* No baseline instruction turns a 64-bit integer into a double, so the bits are put together. */
    double n = as_double(k | 0x4330000000000000u) - (4503599627370496.0 + 1023.0);
    double m = as_double(bits - ((k - 1023u) << 52));
    double s = (m - 1.0) / (m + 1.0), square = s * s;
    double p = 1.0 / 17;
    p = p * square + 1.0 / 15;
    p = p * square + 1.0 / 13;
    p = p * square + 1.0 / 11;
    p = p * square + 1.0 / 9;
    p = p * square + 1.0 / 7;
    p = p * square + 1.0 / 5;
    p = p * square + 1.0 / 3;
    double value = n * 0.69314718055994531 + (2.0 * s + 2.0 * s * square * p);
    return x == x ? value : x;
}

/* log(1 + x) for x >= 0: the rounding of 1 + x is given back. */
INLINE double log1p_double(double x) {
    double u = 1.0 + x;
    return log_double(u) + (x - (u - 1.0)) / u;
}

#endif
