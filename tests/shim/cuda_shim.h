// The part of CUDA C++ the kernels use, for g++. Every CUDA thread is a fiber on one OS thread (fibers.cpp); this
// header is the only thing a kernel's translation unit sees. Collectives carry the source line they stand on, so
// that threads which meet at different ones are told apart.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

struct rs_dim3 { unsigned x, y, z; };
struct rs_place { rs_dim3 thread, block, block_dim, grid_dim; int rank, ranks; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

extern "C" {
extern const rs_place* rs_here;
unsigned char* rs_shared_base();
void rs_block_barrier(int line);
void rs_cluster_barrier(int line);
const void* rs_cluster_map(const void* mine, int rank);
enum rs_kind { RS_XOR = 1, RS_UP, RS_FROM, RS_BALLOT };
unsigned long long rs_warp(int kind, unsigned mask, unsigned long long value, int argument, int line);
}

#define RS_HOST 1
#define RS_DEVICE inline __attribute__((always_inline))
#define RS_LAUNCH_BOUNDS
#define RS_SHARED_BASE rs_shared_base()
#define __global__
#define threadIdx (rs_here->thread)
#define blockIdx (rs_here->block)
#define blockDim (rs_here->block_dim)
#define gridDim (rs_here->grid_dim)
#define __syncthreads() rs_block_barrier(__LINE__)
#define __shfl_xor_sync(mask, value, offset) rs_shuffle(RS_XOR, mask, value, offset, __LINE__)
#define __shfl_up_sync(mask, value, offset) rs_shuffle(RS_UP, mask, value, offset, __LINE__)
#define __shfl_sync(mask, value, lane) rs_shuffle(RS_FROM, mask, value, lane, __LINE__)
#define __ballot_sync(mask, condition) ((unsigned)rs_warp(RS_BALLOT, mask, (condition) ? 1 : 0, 0, __LINE__))
#define cluster_barrier() rs_cluster_barrier(__LINE__)

template <class T>
inline T rs_shuffle(int kind, unsigned mask, T value, int argument, int line) {
    static_assert(sizeof(T) == 8 || sizeof(T) == 4, "a shuffle moves 4 or 8 bytes");
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = rs_warp(kind, mask, bits, argument, line);
    memcpy(&value, &bits, sizeof(T));
    return value;
}

inline int cluster_rank() { return rs_here->rank; }
inline int cluster_size() { return rs_here->ranks; }
inline long long cluster_read(const long long* mine, int rank) {
    return *(const long long*)rs_cluster_map(mine, rank);
}

template <class TO, class FROM>
inline TO rs_bits(FROM from) {
    static_assert(sizeof(TO) == sizeof(FROM), "same size");
    TO to;
    memcpy(&to, &from, sizeof(to));
    return to;
}
inline float __uint_as_float(unsigned bits) { return rs_bits<float>(bits); }
inline double __longlong_as_double(long long bits) { return rs_bits<double>(bits); }
inline long long __double_as_longlong(double x) { return rs_bits<long long>(x); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int atomicAdd(int* place, int value) { return __atomic_fetch_add(place, value, __ATOMIC_RELAXED); }
using std::floor;
using std::sqrt;
