/* Loss and gradient of surrogate, tangent and soft counts in one pass over the logits: machines, threads, entries.
 *
 * A call reads z, y (and w) once, writes the gradient once and keeps sums in double precision. Elements go through in
 * blocks of BLOCK. A block of another type, or with ignored elements, is first written to small buffers in the
 * first-level cache, so each kernel (cpu_rows.h) exists once, for floats. Kernels are plain loops that the compiler
 * vectorises; on x86 each is compiled for AVX-512, AVX2 and the baseline (VARIANT).
 *
 * The compiler must neither assume finite numbers nor reorder sums: no -ffast-math. What it may reorder is said by
 * `omp simd reduction`, so a sum depends on the machine and the number of threads, and is the same in every run.
 */
#include <stddef.h>

#include "cpu_rows.h"

#ifndef FBETA_SOURCE
#define FBETA_SOURCE ""
#endif

#define EXPORT __attribute__((visibility("default")))
#define MAX_THREADS 256
/* Below this a second thread costs more than it brings (torch's own grain). */
#define GRAIN 32768

/* ---- one block function per kind of machine ---- */

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
    double (*sums)[SUMS + 1]; /* a cache line each */
} Job;

/* Part `t` of the blocks; its bounds depend on the number of parts alone. */
static void run_part(const Job *job, int t) {
    Buffers b;
    float ones[BLOCK];
    if (!job->in->w)
        for (int i = 0; i < BLOCK; i++) ones[i] = 1.0f;
    const int64_t n = job->in->n, blocks = (n + BLOCK - 1) / BLOCK;
    const int64_t from = blocks * t / job->parts * BLOCK, to = blocks * (t + 1) / job->parts * BLOCK;
    double sums[SUMS] = {0};
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

static void run(Kernel kernel, const Input *in, const void *params, double *out) {
    double sums[MAX_THREADS][SUMS + 1];
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
    for (int k = 0; k < SUMS; k++) {
        out[k] = 0;
        for (int t = 0; t < parts; t++) out[k] += sums[t][k];
    }
}

/* ---- entries ---- */

/* sums = (sum w l, sum w); grad = factor w dl/dz. */
EXPORT void fbeta_surrogate(const Input *in, const Surrogate *p, double *sums) {
    const Term *t[2] = {&p->negative, &p->positive};
    int near = 1, touch[2];
    for (int k = 0; k < 2; k++) {
        touch[k] = t[k]->distance == 0;
        near = near && t[k]->sign == (k ? -1 : 1) && t[k]->relative == 0 && t[k]->scale == 1 && t[k]->q < 1e-12 &&
               t[k]->offset == 0 && (touch[k] || (t[k]->distance > 1e-30 && t[k]->distance < 1e30));
    }
    run(near ? (Kernel)(NEAR00 + 2 * touch[0] + touch[1]) : ANY, in, p, sums);
}

/* sums = (sum w l, sum w, tp, fp, fn, tn); grad = factor w dl/dz. */
EXPORT void fbeta_tangent(const Input *in, const Tangent *p, double *sums) {
    const Kernel usual = (Kernel)(LOGISTIC + 2 * ((p->q >= 1e-12) + (p->q == 1)) + (p->counts != 0));
    run(p->counts == 2 ? (in->grad ? SOFT_SLOPES : SOFT_COUNTS) : usual, in, p, sums);
}

/* What was compiled (a hash of its sources), whether threads were found, and which instructions are used. */
EXPORT const char *fbeta_source(void) { return FBETA_SOURCE; }
EXPORT int fbeta_threads(void) { return GOMP_parallel != NULL && omp_get_thread_num && omp_get_num_threads; }
EXPORT int fbeta_level(int cap) {
    level_cap = cap;
    return level();
}
