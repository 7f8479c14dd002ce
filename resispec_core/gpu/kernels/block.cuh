// What one block of a cluster knows, and the two collective operations of stage B: a reduction over the row, and
// the draw of a token. Integers only, so neither depends on the number of threads or blocks.
#pragma once
#include "scalars.cuh"

#define RS_SUMS 3

struct Shared {
    Candidates c;
    i64 warp[2][RS_MAX_WARPS][RS_SUMS];
    i64 block[2][RS_SUMS];
};
#define RS_SHARED_BYTES ((sizeof(Shared) + 15) / 16 * 16)

struct Block {
    Shared* shared;
    const raw_t *p, *q;  // this block's slice: staged in shared memory, or in place
    Reading target, draft;
    i64 first_token;     // vocabulary index of the slice's first entry
    int begin, end;      // this warp's part of the slice
    int lane, warp, warps, rank, ranks, phase;

    RS_DEVICE double target_at(int i) const { return law(target, p[i]); }
    RS_DEVICE double draft_at(int i) const { return law(draft, q[i]); }
};

enum Combine { SUM, MOST };

template <Combine HOW>
RS_DEVICE i64 combine(i64 a, i64 b) {
    return HOW == SUM ? (i64)((u64)a + (u64)b) : (a > b ? a : b);
}

// Combines K values over all threads of the cluster; every thread gets the result. Sums wrap (callers that can
// overflow guard with a coarser sum). One barrier a block: buffers alternate between calls.
template <int K, Combine HOW>
RS_DEVICE void reduce(Block& b, i64 (&v)[K]) {
    for (int k = 0; k < K; ++k)
        for (int offset = RS_WARP / 2; offset > 0; offset /= 2)
            v[k] = combine<HOW>(v[k], __shfl_xor_sync(RS_ALL, v[k], offset));
    if (b.lane == 0)
        for (int k = 0; k < K; ++k) b.shared->warp[b.phase][b.warp][k] = v[k];
    __syncthreads();
    for (int k = 0; k < K; ++k) {
        v[k] = b.shared->warp[b.phase][0][k];
        for (int w = 1; w < b.warps; ++w) v[k] = combine<HOW>(v[k], b.shared->warp[b.phase][w][k]);
    }
#if RS_CLUSTER
    if (threadIdx.x == 0)
        for (int k = 0; k < K; ++k) b.shared->block[b.phase][k] = v[k];
    cluster_barrier();
    for (int k = 0; k < K; ++k) {
        v[k] = cluster_read(&b.shared->block[b.phase][k], 0);
        for (int r = 1; r < b.ranks; ++r) v[k] = combine<HOW>(v[k], cluster_read(&b.shared->block[b.phase][k], r));
    }
#endif
    b.phase ^= 1;
}

template <int K, class TERMS>
RS_DEVICE void sum_row(Block& b, i64 (&v)[K], TERMS terms) {
    for (int k = 0; k < K; ++k) v[k] = 0;
    for (int i = b.begin + b.lane; i < b.end; i += RS_WARP) {
        i64 t[K];
        terms(i, t);
        for (int k = 0; k < K; ++k) v[k] = combine<SUM>(v[k], t[k]);
    }
    reduce<K, SUM>(b, v);
}

// Order-preserving map between float64 (no NaN) and integers, so that a maximum is an integer reduction.
RS_DEVICE i64 to_ordered(double x) {
    const i64 bits = __double_as_longlong(x);
    return bits >= 0 ? bits : (i64)(0x8000000000000000ull - (u64)bits);
}
RS_DEVICE double from_ordered(i64 o) {
    return __longlong_as_double(o >= 0 ? o : (i64)(0x8000000000000000ull - (u64)o));
}

template <class VALUE>
RS_DEVICE double most_over_row(Block& b, double least, VALUE value) {
    double best = least;
    for (int i = b.begin + b.lane; i < b.end; i += RS_WARP) best = larger(best, value(i));
    i64 v[1] = {to_ordered(best)};
    reduce<1, MOST>(b, v);
    return from_ordered(v[0]);
}

// Writes the first token whose prefix weight exceeds the scaled coin; false, and nothing written, without mass.
// One warp owns the prefix sum's crossing and scans its part again, 32 entries a step.
template <class WEIGHT>
RS_DEVICE bool draw_token(Block& b, double coin, i64* token, WEIGHT weight) {
    i64 mine = 0;
    for (int i = b.begin + b.lane; i < b.end; i += RS_WARP) mine += units(weight(i));
    for (int offset = RS_WARP / 2; offset > 0; offset /= 2) mine += __shfl_xor_sync(RS_ALL, mine, offset);
    if (b.lane == 0) b.shared->warp[b.phase][b.warp][0] = mine;
    __syncthreads();
    i64 mass = 0, before = 0;
    for (int w = 0; w < b.warps; ++w) {
        if (w == b.warp) before = mass;
        mass += b.shared->warp[b.phase][w][0];
    }
#if RS_CLUSTER
    if (threadIdx.x == 0) b.shared->block[b.phase][0] = mass;
    cluster_barrier();
    mass = 0;
    i64 lower_blocks = 0;
    for (int r = 0; r < b.ranks; ++r) {
        if (r == b.rank) lower_blocks = mass;
        mass += cluster_read(&b.shared->block[b.phase][0], r);
    }
    before += lower_blocks;
#endif
    b.phase ^= 1;
    if (mass == 0) return false;
    const i64 target = (i64)__umul64hi((u64)(coin * 0x1p53) << 11, (u64)mass);
    if (target < before || target >= before + mine) return true;
    for (int base = b.begin; base < b.end; base += RS_WARP) {
        const int i = base + b.lane;
        i64 prefix = i < b.end ? units(weight(i)) : 0;
        for (int offset = 1; offset < RS_WARP; offset *= 2) {
            const i64 lower = __shfl_up_sync(RS_ALL, prefix, offset);
            if (b.lane >= offset) prefix += lower;
        }
        const unsigned past = __ballot_sync(RS_ALL, before + prefix > target);
        if (past != 0u) {
            if (b.lane == __ffs((int)past) - 1) *token = b.first_token + i;
            return true;
        }
        before += __shfl_sync(RS_ALL, prefix, RS_WARP - 1);
    }
    return true;
}
