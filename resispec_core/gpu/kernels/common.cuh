// Types, numbers and reductions shared by the kernels. Compiled by NVRTC for a GPU, and by g++ through the host
// shim of tests/shim for CI: everything below RS_HOST differs, nothing else may.
//
// Arithmetic: float64 with one rounding an operation, never fused (compile with --fmad=false), row sums in 64-bit
// integers (fixed point 2^-55). numerics.py is the same arithmetic for arrays and says why; keep them in step.
//
// Compile-time choices: RS_RULE, RS_EQ13, RS_DTYPE (32 float, 16 float16, 160 bfloat16), RS_LOGITS, RS_RESIDENT
// (row slices staged in shared memory), RS_CLUSTER (0, or how many blocks share a node).
#pragma once

typedef unsigned long long u64;
typedef long long i64;

#define RS_MAX_CANDIDATES 8
#define RS_WARP 32
#define RS_MAX_WARPS 32
#define RS_ALL 0xffffffffu

#define RS_SPECINFER 0
#define RS_DETERMINISTIC 1
#define RS_PROPORTIONAL 2
#define RS_WATERFILL 3
#define RS_UNIFORM 4
#define RS_SHAPED 5
#define RS_IS_RESISPEC (RS_RULE == RS_PROPORTIONAL || RS_RULE == RS_WATERFILL || RS_RULE == RS_UNIFORM)
#define RS_READS_DRAFT (RS_RULE != RS_DETERMINISTIC)

// status.py
#define ST_FALLBACK 1
#define ST_COIN 2
#define ST_CANDIDATE 4
#define ST_TARGET_VALUE 8
#define ST_DRAFT_VALUE 16
#define ST_TARGET_MASS 32
#define ST_DRAFT_MASS 64
#define ST_PENDING 1024

#define HAS_TARGET_NORM 1
#define HAS_DRAFT_NORM 2
#define LIST_ALL 4

#ifndef RS_HOST
#define RS_DEVICE __device__ __forceinline__
extern __shared__ __align__(16) unsigned char rs_dynamic_shared[];
#define RS_SHARED_BASE rs_dynamic_shared
#if RS_CLUSTER
RS_DEVICE int cluster_rank() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return (int)r; }
RS_DEVICE int cluster_size() { unsigned r; asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r)); return (int)r; }
RS_DEVICE void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// The value at `mine`'s place in the shared memory of block `rank` of this cluster.
RS_DEVICE i64 cluster_read(const i64* mine, int rank) {
    unsigned here = (unsigned)__cvta_generic_to_shared(mine), there;
    i64 value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
    asm volatile("ld.shared::cluster.s64 %0, [%1];" : "=l"(value) : "r"(there) : "memory");
    return value;
}
#else
RS_DEVICE int cluster_rank() { return 0; }
RS_DEVICE int cluster_size() { return 1; }
#endif
#endif

#if RS_DTYPE == 32
typedef float raw_t;
RS_DEVICE double widen(raw_t x) { return (double)x; }  // exact; never compile with -ftz=true
#elif RS_DTYPE == 160
typedef unsigned short raw_t;
RS_DEVICE double widen(raw_t bits) { return (double)__uint_as_float((unsigned)bits << 16); }
#else
typedef unsigned short raw_t;
RS_DEVICE double widen(raw_t bits) {
    const unsigned exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
    const double sign = (bits & 0x8000u) ? -1.0 : 1.0;
    if (exponent == 0u) return sign * ((double)fraction * 0x1p-24);
    const u64 field = exponent == 31u ? 2047ull : (u64)(exponent + 1008u);
    return sign * __longlong_as_double((i64)((field << 52) | ((u64)fraction << 42)));
}
#endif

RS_DEVICE double larger(double a, double b) { return a > b ? a : b; }
RS_DEVICE double smaller(double a, double b) { return a < b ? a : b; }

#define RS_UNIT 0x1p-55
#define RS_MAX_ENTRY 1.001
#define RS_MASS_MARGIN 1e-3

// A non-negative term in units of 2^-55; at least one where it is positive.
RS_DEVICE i64 units_of(double term, double per_one) {
    if (!(term > 0.0)) return 0;
    const i64 whole = (i64)(term * per_one);
    return whole > 1 ? whole : 1;
}
RS_DEVICE i64 units(double term) { return units_of(term, 0x1p55); }
RS_DEVICE double real(i64 count) { return (double)count * RS_UNIT; }

// numerics.exponential: exp for x <= 1, zero below -708, 2.0 above 1.
RS_DEVICE double exponential(double x) {
    if (!(x >= -708.0)) return 0.0;
    if (x > 1.0) return 2.0;
    const double k = floor(x * 0x1.71547652b82fep+0 + 0.5);
    const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
    double v = 0x1.6124613a86d09p-33;
    v = v * r + 0x1.1eed8eff8d898p-29;
    v = v * r + 0x1.ae64567f544e4p-26;
    v = v * r + 0x1.27e4fb7789f5cp-22;
    v = v * r + 0x1.71de3a556c734p-19;
    v = v * r + 0x1.a01a01a01a01ap-16;
    v = v * r + 0x1.a01a01a01a01ap-13;
    v = v * r + 0x1.6c16c16c16c17p-10;
    v = v * r + 0x1.1111111111111p-7;
    v = v * r + 0x1.5555555555555p-5;
    v = v * r + 0x1.5555555555555p-3;
    v = v * r + 0.5;
    v = v * r + 1.0;
    v = v * r + 1.0;
    return v * __longlong_as_double(((i64)k + 1023) << 52);
}

// How raw entries of one row become probabilities: exp(x / T - shift) * scale, or x * scale.
struct Reading {
    double inverse_temperature, shift, scale;
};

RS_DEVICE double score(const Reading& how, raw_t raw) { return widen(raw) * how.inverse_temperature; }

RS_DEVICE bool usable_raw(raw_t raw) {
    const double x = widen(raw);
#if RS_LOGITS
    return x < __longlong_as_double(0x7ff0000000000000ll);
#else
    return x >= 0.0;
#endif
}

// The probability, and false where the entry cannot be one (then the value is 0).
RS_DEVICE bool probability(const Reading& how, raw_t raw, double* value) {
    *value = 0.0;
    if (!usable_raw(raw)) return false;
#if RS_LOGITS
    const double p = exponential(score(how, raw) - how.shift) * how.scale;
#else
    const double p = widen(raw) * how.scale;
#endif
    if (!(p <= RS_MAX_ENTRY)) return false;
    *value = p;
    return true;
}

RS_DEVICE double law(const Reading& how, raw_t raw) {
    double p;
    probability(how, raw, &p);
    return p;
}

// A caller's normaliser (row sum, or log-sum-exp for logits) into a Reading; false where it is unusable.
RS_DEVICE bool read_norm(Reading* how, double norm) {
#if RS_LOGITS
    const bool usable = norm - norm == 0.0;
    how->shift = usable ? norm : 0.0;
    how->scale = 1.0;
#else
    const bool usable = norm >= 1e-30 && norm <= 1e30;
    how->shift = 0.0;
    how->scale = 1.0 / (usable ? norm : 1.0);
#endif
    return usable;
}

RS_DEVICE bool usable_coin(double u) { return u >= 0.0 && u < 1.0; }

// Everything a launch is given; the same list for both kernels.
struct Call {
    const raw_t *target, *draft;
    const double *target_norm, *draft_norm;
    const i64* tokens;
    const double* coins;
    i64 target_stride, draft_stride;  // in elements
    double inverse_temperature;
    int nodes, vocabulary, candidates, flags, slice;
    i64 *accepted, *token;
    int *status, *list, *listed;
};
#define RS_PARAMETERS                                                                                                  \
    const raw_t *target, const raw_t *draft, const double *target_norm, const double *draft_norm, const i64 *tokens,  \
        const double *coins, i64 target_stride, i64 draft_stride, double inverse_temperature, int nodes,              \
        int vocabulary, int candidates, int flags, int slice, i64 *accepted, i64 *token, int *status, int *list,      \
        int *listed
#define RS_CALL                                                                                                        \
    Call {                                                                                                             \
        target, draft, target_norm, draft_norm, tokens, coins, target_stride, draft_stride, inverse_temperature,      \
            nodes, vocabulary, candidates, flags, slice, accepted, token, status, list, listed                        \
    }

#ifndef RS_LAUNCH_BOUNDS
#if RS_CLUSTER
#define RS_LAUNCH_BOUNDS __cluster_dims__(RS_CLUSTER, 1, 1) __launch_bounds__(256, 2)
#else
#define RS_LAUNCH_BOUNDS __launch_bounds__(256, 2)
#endif
#endif
