/* The loss and the gradient of one block of rows: the arithmetic of every kernel, and how rows are read.
 *
 * Elements whose target is the ignored value count as z = y = w = 0, as in fbeta.losses.task.convert. NaN logits reach
 * sums and gradient; an infinite logit gives the limit, and a part of weight zero is left out (0 * inf is 0).
 */
#ifndef FBETA_CPU_ROWS_H
#define FBETA_CPU_ROWS_H

#include <float.h>

#include "cpu_math.h"

#define BLOCK 1024
/* Sum of losses, sum of weights, tp, fp, fn, tn, and the number of targets or weights that are not valid. */
#define SUMS 7
#define BAD 6

/* ---- what Python hands over: cpu.py has the same fields, and the same doubles in this order ---- */

enum { F32 = 0, BF16 = 1, U8 = 2, I32 = 3, I64 = 4 };

typedef struct {
    const void *z, *y;
    const float *w; /* or NULL: all ones */
    void *grad;     /* of z's type, or NULL where a kernel gives none */
    int64_t n, ignore;
    int32_t z_type, y_type, has_ignore, check, threads;
} Input;

typedef struct {
    double sign, distance, relative, scale, q, offset;
} Term;

typedef struct {
    Term negative, positive;
    double w0, w1, factor;
} Surrogate;

typedef struct {
    double c0, c1, q, factor, counts; /* counts: of decisions (0), of probabilities (1), these or the gradient alone (2) */
} Tangent;

typedef enum { ALL, COUNTS, SLOPES } Wanted;

/* ---- kernels: one block of floats; sums are added to ---- */

/* part * value, where no part of an infinity is nothing. */
INLINE float share(float part, float value) { return part == 0.0f ? 0.0f : part * value; }

/* The same for a row: NaN is seen whatever its weight (two selections, for gcc vectorises no condition of two). */
INLINE float weigh(float weight, float value) {
    float none = value == value ? 0.0f : value;
    return weight == 0.0f ? none : weight * value;
}

/* How many targets lie outside [0, 1], or weights are not finite and zero or more; of NaN no comparison is true. */
INLINE double bad_body(const float *y, const float *w, int n) {
    int bad = 0;
#pragma omp simd reduction(+ : bad)
    for (int i = 0; i < n; i++) bad += !((y[i] >= 0.0f) & (y[i] <= 1.0f) & (w[i] >= 0.0f) & (w[i] <= FLT_MAX));
    return bad;
}

/* w0 (1 - y) log(d0 + f) - w1 y log(d1 + f) in single precision: F_beta and its kin, and kappa of rare classes.
 * Where d = 0, log f = min(z, 0) - log(1 + e) has a value down to f = 0. */
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
        loss += (double)weigh(w[i], share(part0, rise) - share(part1, fall));
        total += (double)w[i];
        grad[i] = factor * w[i] * (part0 * rise1 - part1 * fall1);
    }
    sums[0] += loss;
    sums[1] += total;
}

/* Any pair of terms, in double precision and in short passes over a part of a block: a loop without branches is one
 * that vectorises. */
#define PART 256

/* The loss of one class and the size of its slope by z, given the probability that matters (`near`, of the wrong class
 * where the sign is 1, else of the right one), the other one and the logarithm of the first; see AnchorTerm. */
INLINE void term_body(const Term *t, const double *near, const double *other, const double *log_near, int n,
                      double *value, double *slope) {
    const double d = t->distance, q = t->q, scale = t->scale, signed_scale = t->sign * scale, offset = t->offset;
    if (!(d >= DBL_MIN)) {
        for (int i = 0; i < n; i++) {
            value[i] = log_near[i];
            slope[i] = other[i];
        }
    } else if (t->relative != 0) {
        for (int i = 0; i < n; i++) {
            value[i] = log1p_double(near[i] / d);
            slope[i] = near[i] * other[i] / (d + near[i]);
        }
    } else {
        for (int i = 0; i < n; i++) {
            value[i] = log_double(d + near[i]);
            slope[i] = near[i] * other[i] / (d + near[i]);
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
    const double w0 = p->w0, w1 = p->w1, factor = p->factor;
    /* A negative's wrong probability is f, a positive's right one. */
    const int is_f0 = p->negative.sign > 0, is_f1 = p->positive.sign < 0;
    /* [0]: of 1 - f, [1]: of f */
    double score[2][PART], logs[2][PART], loss0[PART], slope0[PART], loss1[PART], slope1[PART];
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
        term_body(&p->negative, score[is_f0], score[!is_f0], logs[is_f0], size, loss0, slope0);
        term_body(&p->positive, score[is_f1], score[!is_f1], logs[is_f1], size, loss1, slope1);
        double loss = 0, total = 0;
#pragma omp simd reduction(+ : loss, total)
        for (int i = 0; i < size; i++) {
            double weight = (double)w[i], target = (double)y[i];
            double part0 = w0 * (1.0 - target), part1 = w1 * target;
            double first = part0 * loss0[i], second = part1 * loss1[i];
            double both = (part0 == 0 ? 0.0 : first) + (part1 == 0 ? 0.0 : second), weighed = weight * both;
            loss += (weight == 0) & (both == both) ? 0.0 : weighed;
            total += weight;
            grad[i] = (float)(factor * weight * (part0 * slope0[i] - part1 * slope1[i]));
        }
        sums[0] += loss;
        sums[1] += total;
    }
}

/* c1 y (1 - f^q)/q + c0 (1 - y) (1 - (1 - f)^q)/q, and the counts. At q = 1 it is linear in f: at the slopes of a
 * metric of soft counts its gradient is that metric's, and a pass for one of the two leaves out the rest. */
INLINE void tangent_body(const float *z, const float *y, const float *w, float *grad, int n, const Tangent *p,
                         double *sums, const int power, const int soft, const Wanted wanted) {
    const float c0 = (float)p->c0, c1 = (float)p->c1, factor = (float)p->factor, q = (float)p->q;
    const float inverse = power ? (float)(1.0 / p->q) : 0.0f;
    double loss = 0, total = 0, tp = 0, fp = 0, fn = 0, tn = 0;
#pragma omp simd reduction(+ : loss, total, tp, fp, fn, tn)
    for (int i = 0; i < n; i++) {
        float x = z[i], e = exp_negative(-fabsf(x));
        float unit = 1.0f / (1.0f + e), f = (x < 0 ? e : 1.0f) * unit, no = (x < 0 ? 1.0f : e) * unit;
        float missed = no, alarmed = f, missed1 = no, alarmed1 = f;
        if (power == 2) {
            missed1 = alarmed1 = f * no;
        } else {
            float small = log1p_unit(e);
            missed = small - (x > 0 ? 0.0f : x);
            alarmed = small + (x < 0 ? 0.0f : x);
        }
        if (power == 1) {
            float f_q, no_q;
            missed = -expm1_negative(-q * missed, &f_q) * inverse;
            alarmed = -expm1_negative(-q * alarmed, &no_q) * inverse;
            missed1 *= f_q;
            alarmed1 *= no_q;
        }
        float yes = soft ? f : (x >= 0 ? 1.0f : 0.0f), rest = soft ? no : 1.0f - yes;
        float part1 = c1 * y[i], part0 = c0 * (1.0f - y[i]);
        float one = w[i] * y[i], zero = w[i] * (1.0f - y[i]);
        if (wanted == ALL) loss += (double)weigh(w[i], share(part1, missed) + share(part0, alarmed));
        if (wanted != SLOPES) {
            total += (double)w[i];
            tp += (double)(one * yes);
            fp += (double)(zero * yes);
            fn += (double)(one * rest);
            tn += (double)(zero * rest);
        }
        if (wanted != COUNTS) grad[i] = factor * w[i] * (part0 * alarmed1 - part1 * missed1);
    }
    const double found[6] = {loss, total, tp, fp, fn, tn};
    for (int k = 0; k < 6; k++) sums[k] += found[k];
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

/* Targets as floats. Ignored elements become zeros: integers are compared as they are, since a float does not hold every
 * one, and what is ignored may not fit their type. */
#define TARGETS(type, as_float, equal)                                                                   \
    for (int i = 0; i < n; i++) {                                                                        \
        const type t = ((const type *)in->y)[start + i];                                                 \
        b->y[i] = as_float;                                                                              \
        if (in->has_ignore && (equal)) b->z[i] = b->y[i] = b->w[i] = 0.0f;                               \
    }                                                                                                    \
    break;

INLINE void targets_body(const Input *in, int64_t start, int n, Buffers *b) {
    const int64_t ignore = in->ignore;
    switch (in->y_type) {
    case BF16: TARGETS(uint16_t, from_bf16(t), b->y[i] == (float)ignore)
    case U8: TARGETS(uint8_t, (float)t, t == ignore)
    case I32: TARGETS(int32_t, (float)t, t == ignore)
    case I64: TARGETS(int64_t, t == (int32_t)t ? (float)t : 2.0f, t == ignore) /* beyond 32 bits it is no target */
    default: TARGETS(float, t, t == (float)ignore)
    }
}

typedef enum {
    NEAR00, NEAR01, NEAR10, NEAR11, /* the anchor touches ROC space: of negatives, of positives */
    ANY,
    LOGISTIC, LOGISTIC_SOFT, POWER, POWER_SOFT, LINEAR, LINEAR_SOFT, /* q = 0, between, 1 */
    SOFT_COUNTS, SOFT_SLOPES
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
    if (in->has_ignore) {
        memcpy(b->w, w, sizeof(float) * (size_t)n);
        w = b->w;
    }
    if (in->y_type != F32 || in->has_ignore)
        targets_body(in, start, n, b);
    else
        y = (const float *)in->y + start;
    if (in->check) sums[BAD] += bad_body(y, w, n);
    switch (kernel) {
    case NEAR00: near_body(z, y, w, grad, n, p, sums, 0, 0); break;
    case NEAR01: near_body(z, y, w, grad, n, p, sums, 0, 1); break;
    case NEAR10: near_body(z, y, w, grad, n, p, sums, 1, 0); break;
    case NEAR11: near_body(z, y, w, grad, n, p, sums, 1, 1); break;
    case ANY: any_body(z, y, w, grad, n, p, sums); break;
    case LOGISTIC: tangent_body(z, y, w, grad, n, p, sums, 0, 0, ALL); break;
    case LOGISTIC_SOFT: tangent_body(z, y, w, grad, n, p, sums, 0, 1, ALL); break;
    case POWER: tangent_body(z, y, w, grad, n, p, sums, 1, 0, ALL); break;
    case POWER_SOFT: tangent_body(z, y, w, grad, n, p, sums, 1, 1, ALL); break;
    case LINEAR: tangent_body(z, y, w, grad, n, p, sums, 2, 0, ALL); break;
    case LINEAR_SOFT: tangent_body(z, y, w, grad, n, p, sums, 2, 1, ALL); break;
    case SOFT_COUNTS: tangent_body(z, y, w, grad, n, p, sums, 2, 1, COUNTS); break;
    case SOFT_SLOPES: tangent_body(z, y, w, grad, n, p, sums, 2, 1, SLOPES); break;
    }
    if (in->z_type == BF16 && in->grad)
        for (int i = 0; i < n; i++) ((uint16_t *)in->grad)[start + i] = to_bf16(grad[i]);
}

#endif
