/* Loss and gradient of surrogate, tangent and soft counts in one pass over the logits.
 *
 * f = sigmoid(z). A call reads z, y (and w) once, writes the gradient once and keeps sums in double precision.
 * Elements whose target is the ignored value count as z = y = w = 0, as in fbeta.task.read. NaN logits reach
 * sums and gradient; an infinite logit gives the limit, and a part of weight zero is left out (0 * inf is 0).
 *
 * Layout: elements go through in blocks of BLOCK. A block of another type, or with ignored elements, is first
 * written to small buffers in the first-level cache, so each kernel exists once, for floats. Kernels are plain
 * loops that the compiler vectorises; on x86 each is compiled for AVX-512, AVX2 and the baseline (VARIANTS).
 *
 * The compiler must neither assume finite numbers nor reorder sums: no -ffast-math. What it may reorder is
 * said by `omp simd reduction`, so a sum depends on the machine and the number of threads, not on chance.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef FBETA_SOURCE
#define FBETA_SOURCE ""
#endif

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))
#define BLOCK 1024
#define MAX_SUMS 6
#define MAX_THREADS 256
/* Below this a second thread costs more than it brings (torch's own grain). */
#define GRAIN 32768

/* ---- what Python hands over: fbeta/losses/fused/cpu.py has the same fields ---- */

enum { F32 = 0, BF16 = 1, U8 = 2, I32 = 3, I64 = 4 };

typedef struct {
    const void *z, *y;
    const float *w; /* or NULL: all ones */
    void *grad;     /* of z's type, or NULL where a kernel gives none */
    int64_t n, ignore;
    int32_t z_type, y_type, has_ignore, threads;
} Input;

typedef struct {
    double sign, distance, relative, scale, q, offset;
} Reach;

typedef struct {
    Reach negative, positive;
    double w0, w1, factor;
} Surrogate;

typedef struct {
    double c0, c1, q, factor;
    int32_t soft;
} Tangent;

typedef struct {
    double k1, k0;
} SoftGrad;

/* ---- float functions; errors measured over all floats of the range by tests/test_fused_cpu.py ---- */

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

/* ---- double functions, to about 1e-11: enough for floats, and nothing cancels on the way ---- */

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

/* ---- kernels: one block of floats; sums are added to ---- */

/* part * value, where no part of an infinity is nothing; `e` is finite, or NaN like z. */
INLINE float share(float part, float value, float e) { return part == 0.0f ? 0.0f * e : part * value; }

/* log(d + f) rises to both anchors from below, in single precision: F_beta and its kin, and kappa of rare
 * classes. Where d = 0, log f = min(z, 0) - log(1 + e) has a value down to f = 0. */
INLINE void near_body(const float *z, const float *y, const float *w, float *grad, int n, const Surrogate *p,
                      double *sums, const int touch0, const int touch1) {
    const float d0 = (float)p->negative.distance, d1 = (float)p->positive.distance;
    const float w0 = (float)p->w0, w1 = (float)p->w1, factor = (float)p->factor;
    double loss = 0, total = 0;
#pragma omp simd reduction(+ : loss, total)
    for (int i = 0; i < n; i++) {
        float x = z[i], e = exp_negative(-fabsf(x));
        float unit = 1.0f / (1.0f + e), f = (x < 0 ? e : 1.0f) * unit, no = (x < 0 ? 1.0f : e) * unit;
        float log_f = touch0 || touch1 ? (x > 0 ? 0.0f : x) - log1p_unit(e) : 0.0f;
        float rise = touch0 ? log_f : log_positive(d0 + f);
        float fall = touch1 ? log_f : log_positive(d1 + f);
        float rise1 = touch0 ? no : f * no / (d0 + f);
        float fall1 = touch1 ? no : f * no / (d1 + f);
        float part0 = w0 * (1.0f - y[i]), part1 = w1 * y[i];
        loss += (double)(w[i] * (share(part0, rise, e) - share(part1, fall, e)));
        total += (double)w[i];
        grad[i] = factor * w[i] * (part0 * rise1 - part1 * fall1);
    }
    sums[0] += loss;
    sums[1] += total;
}

/* Any pair of reaches, in double precision and in short passes over a part of a block: a loop without
 * branches is one that vectorises. */
#define PART 256

/* The rising function of g = f (1 - f where the sign is -1) to one anchor, and its slope in z; see Reach.of. */
INLINE void reach_body(const Reach *r, const double *g, const double *far, const double *log_g, int n,
                       double *value, double *slope) {
    const double d = r->distance, q = r->q, scale = r->scale, signed_scale = r->sign * scale, offset = r->offset;
    if (!(d >= DBL_MIN)) {
        for (int i = 0; i < n; i++) {
            value[i] = log_g[i];
            slope[i] = far[i];
        }
    } else if (r->relative != 0) {
        for (int i = 0; i < n; i++) {
            value[i] = log1p_double(g[i] / d);
            slope[i] = g[i] * far[i] / (d + g[i]);
        }
    } else {
        for (int i = 0; i < n; i++) {
            value[i] = log_double(d + g[i]);
            slope[i] = g[i] * far[i] / (d + g[i]);
        }
    }
    if (q >= 1e-12) {
        const double inverse = 1.0 / q;
        for (int i = 0; i < n; i++) {
            double power;
            value[i] = expm1_double(q * value[i], &power) * inverse;
            slope[i] *= power;
        }
    }
    for (int i = 0; i < n; i++) {
        value[i] = signed_scale * value[i] + offset;
        slope[i] *= scale;
    }
}

INLINE void any_body(const float *z, const float *y, const float *w, float *grad, int n, const Surrogate *p,
                     double *sums) {
    const Reach *negative = &p->negative, *positive = &p->positive;
    const double w0 = p->w0, w1 = p->w1, factor = p->factor;
    /* [0]: of 1 - f, [1]: of f */
    double score[2][PART], logs[2][PART], rise[PART], rise1[PART], fall[PART], fall1[PART];
    for (int from = 0; from < n; from += PART, z += PART, y += PART, w += PART, grad += PART) {
        const int size = n - from < PART ? n - from : PART;
#pragma omp simd
        for (int i = 0; i < size; i++) {
            double x = (double)z[i], e;
            (void)expm1_double(-fabs(x), &e);
            double unit = 1.0 / (1.0 + e), log_large = -log1p_double(e);
            score[1][i] = (x < 0 ? e : 1.0) * unit;
            score[0][i] = (x < 0 ? 1.0 : e) * unit;
            logs[1][i] = log_large + (x > 0 ? 0.0 : x);
            logs[0][i] = log_large - (x < 0 ? 0.0 : x);
        }
        const int up0 = negative->sign > 0, up1 = positive->sign > 0;
        reach_body(negative, score[up0], score[!up0], logs[up0], size, rise, rise1);
        reach_body(positive, score[up1], score[!up1], logs[up1], size, fall, fall1);
        double loss = 0, total = 0;
#pragma omp simd reduction(+ : loss, total)
        for (int i = 0; i < size; i++) {
            double weight = (double)w[i], target = (double)y[i], nothing = 0.0 * score[0][i];
            double part0 = w0 * (1.0 - target), part1 = w1 * target;
            double first = part0 * rise[i], second = part1 * fall[i];
            loss += weight * ((part0 == 0 ? nothing : first) - (part1 == 0 ? nothing : second));
            total += weight;
            grad[i] = (float)(factor * weight * (part0 * rise1[i] - part1 * fall1[i]));
        }
        sums[0] += loss;
        sums[1] += total;
    }
}

INLINE void tangent_body(const float *z, const float *y, const float *w, float *grad, int n, const Tangent *p,
                         double *sums, const int power, const int soft) {
    const float c0 = (float)p->c0, c1 = (float)p->c1, factor = (float)p->factor, q = (float)p->q;
    const float inverse = power ? (float)(1.0 / p->q) : 0.0f;
    double loss = 0, total = 0, tp = 0, fp = 0, fn = 0, tn = 0;
#pragma omp simd reduction(+ : loss, total, tp, fp, fn, tn)
    for (int i = 0; i < n; i++) {
        float x = z[i], e = exp_negative(-fabsf(x));
        float unit = 1.0f / (1.0f + e), f = (x < 0 ? e : 1.0f) * unit, no = (x < 0 ? 1.0f : e) * unit;
        float small = log1p_unit(e), missed = small - (x > 0 ? 0.0f : x), alarmed = small + (x < 0 ? 0.0f : x);
        float missed1 = no, alarmed1 = f;
        if (power) {
            float f_q, no_q;
            missed = -expm1_negative(-q * missed, &f_q) * inverse;
            alarmed = -expm1_negative(-q * alarmed, &no_q) * inverse;
            missed1 *= f_q;
            alarmed1 *= no_q;
        }
        float yes = soft ? f : (x >= 0 ? 1.0f : 0.0f), rest = soft ? no : 1.0f - yes;
        float part1 = c1 * y[i], part0 = c0 * (1.0f - y[i]);
        float one = w[i] * y[i], zero = w[i] * (1.0f - y[i]);
        loss += (double)(w[i] * (share(part1, missed, e) + share(part0, alarmed, e)));
        total += (double)w[i];
        tp += (double)(one * yes);
        fp += (double)(zero * yes);
        fn += (double)(one * rest);
        tn += (double)(zero * rest);
        grad[i] = factor * w[i] * (part0 * alarmed1 - part1 * missed1);
    }
    const double found[6] = {loss, total, tp, fp, fn, tn};
    for (int k = 0; k < 6; k++) sums[k] += found[k];
}

INLINE void counts_body(const float *z, const float *y, const float *w, int n, double *sums) {
    double tp = 0, fp = 0, fn = 0, tn = 0;
#pragma omp simd reduction(+ : tp, fp, fn, tn)
    for (int i = 0; i < n; i++) {
        float x = z[i], e = exp_negative(-fabsf(x));
        float unit = 1.0f / (1.0f + e), f = (x < 0 ? e : 1.0f) * unit, no = (x < 0 ? 1.0f : e) * unit;
        float one = w[i] * y[i], zero = w[i] * (1.0f - y[i]);
        tp += (double)(one * f);
        fp += (double)(zero * f);
        fn += (double)(one * no);
        tn += (double)(zero * no);
    }
    const double found[4] = {tp, fp, fn, tn};
    for (int k = 0; k < 4; k++) sums[k] += found[k];
}

INLINE void soft_grad_body(const float *z, const float *y, const float *w, float *grad, int n,
                           const SoftGrad *p) {
    const float k1 = (float)p->k1, k0 = (float)p->k0;
#pragma omp simd
    for (int i = 0; i < n; i++) {
        float e = exp_negative(-fabsf(z[i])), unit = 1.0f / (1.0f + e);
        grad[i] = w[i] * (e * unit * unit) * (y[i] * k1 + (1.0f - y[i]) * k0);
    }
}

/* Buffers of a block: z, y and w as floats. */
typedef struct {
    float z[BLOCK], y[BLOCK], w[BLOCK], grad[BLOCK];
} Buffers;

INLINE float from_bf16(uint16_t h) { return as_float((uint32_t)h << 16); }

/* Round to nearest even; NaN stays NaN. */
INLINE uint16_t to_bf16(float x) {
    uint32_t bits = as_bits(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)(x == x ? rounded : 0x7fc0u);
}

INLINE void targets_body(const Input *in, int64_t start, int n, float *y) {
    switch (in->y_type) {
    case BF16:
        for (int i = 0; i < n; i++) y[i] = from_bf16(((const uint16_t *)in->y)[start + i]);
        break;
    case U8:
        for (int i = 0; i < n; i++) y[i] = (float)((const uint8_t *)in->y)[start + i];
        break;
    case I32:
        for (int i = 0; i < n; i++) y[i] = (float)((const int32_t *)in->y)[start + i];
        break;
    case I64: /* any value that is not ignored is 0 or 1 */
        for (int i = 0; i < n; i++) y[i] = (float)(int32_t)((const int64_t *)in->y)[start + i];
        break;
    default: memcpy(y, (const float *)in->y + start, sizeof(float) * (size_t)n);
    }
}

/* Ignored elements become zeros. Integers are compared as they are: a float does not hold every one. */
#define DROP(type)                                                                                       \
    for (int i = 0; i < n; i++) {                                                                        \
        const int skip = ((const type *)in->y)[start + i] == (type)in->ignore;                           \
        b->z[i] = skip ? 0.0f : b->z[i];                                                                 \
        b->y[i] = skip ? 0.0f : b->y[i];                                                                 \
        b->w[i] = skip ? 0.0f : b->w[i];                                                                 \
    }

INLINE void ignore_body(const Input *in, int64_t start, int n, Buffers *b) {
    const float real = (float)in->ignore;
    switch (in->y_type) {
    case U8:
        if (in->ignore >= 0 && in->ignore <= UINT8_MAX) DROP(uint8_t)
        break;
    case I32:
        if (in->ignore >= INT32_MIN && in->ignore <= INT32_MAX) DROP(int32_t)
        break;
    case I64: DROP(int64_t) break;
    default:
        for (int i = 0; i < n; i++) {
            const int skip = b->y[i] == real;
            b->z[i] = skip ? 0.0f : b->z[i];
            b->y[i] = skip ? 0.0f : b->y[i];
            b->w[i] = skip ? 0.0f : b->w[i];
        }
    }
}

typedef enum {
    NEAR00, NEAR01, NEAR10, NEAR11, /* the anchor touches ROC space: of negatives, of positives */
    ANY,
    LOGISTIC, LOGISTIC_SOFT, POWER, POWER_SOFT,
    COUNTS,
    SOFT_GRAD
} Kernel;

INLINE void block_body(Kernel kernel, const Input *in, const void *p, int64_t start, int n, Buffers *b,
                       const float *ones, double *sums) {
    const float *z = b->z, *y = b->y, *w = in->w ? in->w + start : ones;
    float *grad = b->grad;
    if (in->z_type == BF16) {
        for (int i = 0; i < n; i++) b->z[i] = from_bf16(((const uint16_t *)in->z)[start + i]);
    } else {
        if (in->has_ignore)
            memcpy(b->z, (const float *)in->z + start, sizeof(float) * (size_t)n);
        else
            z = (const float *)in->z + start;
        if (in->grad) grad = (float *)in->grad + start;
    }
    if (in->y_type != F32 || in->has_ignore)
        targets_body(in, start, n, b->y);
    else
        y = (const float *)in->y + start;
    if (in->has_ignore) {
        memcpy(b->w, w, sizeof(float) * (size_t)n);
        ignore_body(in, start, n, b);
        w = b->w;
    }
    switch (kernel) {
    case NEAR00: near_body(z, y, w, grad, n, p, sums, 0, 0); break;
    case NEAR01: near_body(z, y, w, grad, n, p, sums, 0, 1); break;
    case NEAR10: near_body(z, y, w, grad, n, p, sums, 1, 0); break;
    case NEAR11: near_body(z, y, w, grad, n, p, sums, 1, 1); break;
    case ANY: any_body(z, y, w, grad, n, p, sums); break;
    case LOGISTIC: tangent_body(z, y, w, grad, n, p, sums, 0, 0); break;
    case LOGISTIC_SOFT: tangent_body(z, y, w, grad, n, p, sums, 0, 1); break;
    case POWER: tangent_body(z, y, w, grad, n, p, sums, 1, 0); break;
    case POWER_SOFT: tangent_body(z, y, w, grad, n, p, sums, 1, 1); break;
    case COUNTS: counts_body(z, y, w, n, sums); break;
    case SOFT_GRAD: soft_grad_body(z, y, w, grad, n, p); break;
    }
    if (in->z_type == BF16 && in->grad)
        for (int i = 0; i < n; i++) ((uint16_t *)in->grad)[start + i] = to_bf16(grad[i]);
}

/* ---- one block function a machine ---- */

#define VARIANT(name, target)                                                                            \
    target static void name(Kernel kernel, const Input *in, const void *p, int64_t start, int n,         \
                            Buffers *b, const float *ones, double *sums) {                               \
        block_body(kernel, in, p, start, n, b, ones, sums);                                              \
    }
typedef void (*Block)(Kernel, const Input *, const void *, int64_t, int, Buffers *, const float *, double *);

VARIANT(block_plain, )
#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_X86 1
VARIANT(block_avx2, __attribute__((target("avx2,fma"))))
#ifdef __clang__
VARIANT(block_avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma"))))
#else
VARIANT(block_avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma,prefer-vector-width=512"))))
#endif
#endif

/* 0: as good as the machine; 1 to 3: at most baseline, AVX2, AVX-512 (for tests). */
static int level_cap = 0;

static int level(void) {
    int found = 1;
#ifdef HAS_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        found = 2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
            found = 3;
    }
#endif
    return level_cap && level_cap < found ? level_cap : found;
}

static Block block_function(void) {
#ifdef HAS_X86
    switch (level()) {
    case 3: return block_avx512;
    case 2: return block_avx2;
    }
#endif
    return block_plain;
}

/* ---- threads: those of the OpenMP runtime that torch has loaded ----
 *
 * `#pragma omp parallel` would compile to the same call, but bind the library to one compiler's runtime, and
 * a second pool of threads would fight torch's. libgomp, libomp and libiomp5 all have this entry; without
 * one (the symbols are weak) a call runs on one thread. */

extern void GOMP_parallel(void (*)(void *), void *, unsigned, unsigned) __attribute__((weak));
extern int omp_get_thread_num(void) __attribute__((weak));
extern int omp_get_num_threads(void) __attribute__((weak));

typedef struct {
    Kernel kernel;
    Block block;
    const Input *in;
    const void *params;
    int parts;
    double (*sums)[MAX_SUMS + 2]; /* a cache line each */
} Job;

/* Part `t` of the blocks; its bounds depend on the number of parts alone. */
static void run_part(const Job *job, int t) {
    Buffers b;
    float ones[BLOCK];
    if (!job->in->w)
        for (int i = 0; i < BLOCK; i++) ones[i] = 1.0f;
    const int64_t n = job->in->n, blocks = (n + BLOCK - 1) / BLOCK;
    const int64_t from = blocks * t / job->parts * BLOCK, to = blocks * (t + 1) / job->parts * BLOCK;
    double sums[MAX_SUMS] = {0};
    for (int64_t start = from; start < to && start < n; start += BLOCK) {
        const int size = (int)(n - start < BLOCK ? n - start : BLOCK);
        job->block(job->kernel, job->in, job->params, start, size, &b, ones, sums);
    }
    memcpy(job->sums[t], sums, sizeof sums);
}

static void run_thread(void *data) {
    const Job *job = data;
    /* The runtime may lend fewer threads than asked for. */
    for (int t = omp_get_thread_num(); t < job->parts; t += omp_get_num_threads()) run_part(job, t);
}

static void run(Kernel kernel, const Input *in, const void *params, double *out, int number) {
    double sums[MAX_THREADS][MAX_SUMS + 2];
    int64_t parts = in->n / GRAIN;
    if (parts > in->threads) parts = in->threads;
    if (parts > MAX_THREADS) parts = MAX_THREADS;
    if (parts < 1) parts = 1;
    Job job = {kernel, block_function(), in, params, (int)parts, sums};
    if (parts > 1 && GOMP_parallel && omp_get_thread_num && omp_get_num_threads) {
        GOMP_parallel(run_thread, &job, (unsigned)parts, 0);
    } else {
        for (int t = 0; t < parts; t++) run_part(&job, t);
    }
    for (int k = 0; k < number; k++) {
        out[k] = 0;
        for (int t = 0; t < parts; t++) out[k] += sums[t][k];
    }
}

/* ---- entries ---- */

/* sums = (sum w l, sum w); grad = factor w dl/dz. */
EXPORT void fbeta_surrogate(const Input *in, const Surrogate *p, double *sums) {
    const Reach *r[2] = {&p->negative, &p->positive};
    int near = 1, touch[2];
    for (int k = 0; k < 2; k++) {
        touch[k] = r[k]->distance == 0;
        near = near && r[k]->sign == 1 && r[k]->relative == 0 && r[k]->scale == 1 && r[k]->q < 1e-12 &&
               r[k]->offset == 0 && (touch[k] || (r[k]->distance > 1e-30 && r[k]->distance < 1e30));
    }
    run(near ? (Kernel)(NEAR00 + 2 * touch[0] + touch[1]) : ANY, in, p, sums, 2);
}

/* sums = (sum w l, sum w, tp, fp, fn, tn); grad = factor w dl/dz. */
EXPORT void fbeta_tangent(const Input *in, const Tangent *p, double *sums) {
    run((Kernel)(LOGISTIC + 2 * (p->q >= 1e-12) + (p->soft != 0)), in, p, sums, 6);
}

/* sums = soft (tp, fp, fn, tn). */
EXPORT void fbeta_soft_counts(const Input *in, double *sums) { run(COUNTS, in, NULL, sums, 4); }

/* grad = w f (1 - f) (y k1 + (1 - y) k0). */
EXPORT void fbeta_soft_grad(const Input *in, const SoftGrad *p) { run(SOFT_GRAD, in, p, NULL, 0); }

/* What was compiled (a hash of this file), whether threads were found, and which instructions are used. */
EXPORT const char *fbeta_source(void) { return FBETA_SOURCE; }
EXPORT int fbeta_threads(void) { return GOMP_parallel != NULL && omp_get_thread_num && omp_get_num_threads; }
EXPORT int fbeta_level(int cap) {
    level_cap = cap;
    return level();
}
