// The scheduler behind cuda_shim.h: one fiber a CUDA thread, warps of 32, block and cluster barriers, and errors
// named after what the threads were doing. Compiled without sanitizers; under ThreadSanitizer fibers are switched
// without a synchronisation edge, so that only barriers order two threads' accesses and a race shows in any schedule.
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cuda_shim.h"

#if !defined(__x86_64__)
#error "the fiber switch is written for x86-64"
#endif

extern "C" {
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
__attribute__((weak)) void __tsan_acquire(void* place);
__attribute__((weak)) void __tsan_release(void* place);
void rs_switch(void** save, void* to);
const rs_place* rs_here = nullptr;
}
asm(R"(
.text
.globl rs_switch
.type rs_switch,@function
rs_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size rs_switch, .-rs_switch
)");

namespace {
constexpr size_t STACK = 128 * 1024;
constexpr int WARP = 32;
enum State { READY, AT_WARP, AT_BLOCK, AT_CLUSTER, GONE };
const char* const WAITS[] = {"running", "a warp operation", "__syncthreads", "a cluster barrier", "exit"};

struct Fiber {
    void* stack_pointer;
    void* sanitizer;
    State state;
    int block, warp, lane, line, kind, argument;
    unsigned long long value;
    unsigned mask;
    rs_place place;
};
struct BlockState {
    unsigned char* shared;
    int waiting = 0, gone = 0, line = 0;
    int generation = 0;
    char* edge = nullptr;  // two, by generation: a late thread must not learn what others did past the barrier
};

std::vector<Fiber> fibers;
std::vector<BlockState> blocks;
std::vector<int> warp_arrived;
std::vector<int> ready, held;
std::vector<char*> stacks;
std::vector<void*> retired, retired_memory;  // kept to the end of a launch: reuse would hide a late access
void *scheduler_sp, *scheduler_sanitizer;
int current, block_threads, cluster_arrived, cluster_line, held_warp, shared_size;
int cluster_generation;
char *cluster_edge, launch_edge;
unsigned long long random_state;
bool shuffle_order;
std::string error;
void (*body)(void*);
void* body_argument;

unsigned long long next_random() {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}
std::string who(const Fiber& f) {
    return "block " + std::to_string(f.block) + " warp " + std::to_string(f.warp) + " lane " + std::to_string(f.lane);
}
void enqueue(int i) {
    fibers[i].state = READY;
    (fibers[i].warp == held_warp ? held : ready).push_back(i);
}
void to_scheduler() {
    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(scheduler_sanitizer, 1);
    rs_switch(&fibers[current].stack_pointer, scheduler_sp);
}
[[noreturn]] void fail(const std::string& what) {
    if (error.empty()) error = what;
    fibers[current].state = GONE;
    to_scheduler();
    abort();
}
void wait(State state, int line) {
    fibers[current].state = state;
    fibers[current].line = line;
    to_scheduler();
}
void entry() {
    body(body_argument);
    if (__tsan_release) __tsan_release(&launch_edge);
    Fiber& f = fibers[current];
    f.state = GONE;
    BlockState& b = blocks[f.block];
    b.gone++;
    if (b.waiting > 0) fail(who(f) + " exited while others of its block wait at __syncthreads, line " + std::to_string(b.line));
    if (warp_arrived[f.block * (block_threads / WARP) + f.warp] > 0)
        fail(who(f) + " exited while others of its warp wait at a warp operation");
    if (cluster_arrived > 0) fail(who(f) + " exited while others wait at a cluster barrier");
    to_scheduler();
    abort();
}
void start(int i) {
    // A reused stack would look like a race between two blocks that never ran together.
    const size_t place = __tsan_create_fiber ? retired.size() + i : i;
    if (place >= stacks.size()) {
        void* memory = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) { perror("mmap"); abort(); }
        stacks.push_back((char*)memory);
    }
    void** top = (void**)(stacks[place] + STACK) - 1;  // entry() starts as after a call: 8 past a multiple of 16
    *top = nullptr;
    *--top = (void*)entry;
    for (int r = 0; r < 6; ++r) *--top = nullptr;
    fibers[i].stack_pointer = top;
    fibers[i].sanitizer = __tsan_create_fiber ? __tsan_create_fiber(0) : nullptr;
}
void resolve_warp(int first) {
    unsigned long long values[WARP];
    for (int l = 0; l < WARP; ++l) values[l] = fibers[first + l].value;
    unsigned long long ballot = 0;
    for (int l = 0; l < WARP; ++l) ballot |= (values[l] & 1ull) << l;
    for (int l = 0; l < WARP; ++l) {
        Fiber& f = fibers[first + l];
        switch (f.kind) {
            case RS_XOR: f.value = values[(l ^ f.argument) & (WARP - 1)]; break;
            case RS_UP: f.value = l >= f.argument ? values[l - f.argument] : values[l]; break;
            case RS_FROM: f.value = values[f.argument & (WARP - 1)]; break;
            default: f.value = ballot;
        }
        enqueue(first + l);
    }
}
char* fresh_edges() {  // an address of its own, or one cluster's barriers would order another's accesses
    char* edges = (char*)malloc(2);
    retired_memory.push_back(edges);
    return edges;
}
void run_cluster(int first_block, int cluster, int grid, int threads, int shared_bytes) {
    int count = cluster * threads;
    fibers.assign(count, Fiber());
    blocks.assign(cluster, BlockState());
    warp_arrived.assign(cluster * threads / WARP, 0);
    ready.clear();
    held.clear();
    cluster_arrived = 0;
    cluster_edge = fresh_edges();
    for (auto& b : blocks) {
        b.shared = (unsigned char*)malloc(shared_bytes > 0 ? shared_bytes : 1);
        memset(b.shared, 0xFF, shared_bytes);
        b.edge = fresh_edges();
    }
    for (int i = count - 1; i >= 0; --i) {
        Fiber& f = fibers[i];
        f.block = i / threads;
        f.warp = i % threads / WARP;
        f.lane = i % WARP;
        f.place = {{(unsigned)(i % threads), 0, 0}, {(unsigned)(first_block + f.block), 0, 0},
                   {(unsigned)threads, 1, 1}, {(unsigned)grid, 1, 1}, f.block, cluster};
    }
    for (int i = 0; i < count; ++i) start(i);
    for (int i = count - 1; i >= 0; --i) enqueue(i);
    int gone = 0;
    while (error.empty() && gone < count) {
        std::vector<int>& queue = ready.empty() ? held : ready;
        if (queue.empty()) {
            for (auto& f : fibers)
                if (f.state != GONE)
                    error += (error.empty() ? "deadlock: " : "; ") + who(f) + " waits at " + WAITS[f.state] + ", line " + std::to_string(f.line);
            if (error.size() > 400) error.resize(400);
            break;
        }
        size_t pick = shuffle_order ? next_random() % queue.size() : queue.size() - 1;
        current = queue[pick];
        queue[pick] = queue.back();
        queue.pop_back();
        rs_here = &fibers[current].place;
        if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(fibers[current].sanitizer, 1);
        rs_switch(&scheduler_sp, fibers[current].stack_pointer);
        if (fibers[current].state == GONE) gone++;
    }
    for (auto& f : fibers) if (f.sanitizer) retired.push_back(f.sanitizer);
    for (auto& b : blocks) retired_memory.push_back(b.shared);
}
}  // namespace

extern "C" {
unsigned char* rs_shared_base() { return blocks[fibers[current].block].shared; }

void rs_block_barrier(int line) {
    Fiber& f = fibers[current];
    BlockState& b = blocks[f.block];
    if (b.gone > 0) fail(who(f) + " waits at __syncthreads, line " + std::to_string(line) + ", which an exited thread will not reach");
    if (b.waiting > 0 && b.line != line)
        fail("divergent barrier: " + who(f) + " at line " + std::to_string(line) + ", others of its block at line " + std::to_string(b.line));
    b.line = line;
    char* edge = &b.edge[b.generation & 1];
    if (__tsan_release) __tsan_release(edge);
    if (++b.waiting == block_threads) {
        b.waiting = 0;
        b.generation++;
        for (int i = f.block * block_threads; i < (f.block + 1) * block_threads; ++i) if (i != current) enqueue(i);
        enqueue(current);
        to_scheduler();
    } else {
        wait(AT_BLOCK, line);
    }
    if (__tsan_acquire) __tsan_acquire(edge);
}

void rs_cluster_barrier(int line) {
    Fiber& f = fibers[current];
    for (auto& b : blocks)
        if (b.gone > 0) fail(who(f) + " waits at a cluster barrier, line " + std::to_string(line) + ", which an exited thread will not reach");
    if (cluster_arrived > 0 && cluster_line != line)
        fail("divergent cluster barrier: " + who(f) + " at line " + std::to_string(line) + ", others at line " + std::to_string(cluster_line));
    cluster_line = line;
    char* edge = &cluster_edge[cluster_generation & 1];
    if (__tsan_release) __tsan_release(edge);
    if (++cluster_arrived == (int)fibers.size()) {
        cluster_arrived = 0;
        cluster_generation++;
        for (size_t i = 0; i < fibers.size(); ++i) enqueue((int)i);
        to_scheduler();
    } else {
        wait(AT_CLUSTER, line);
    }
    if (__tsan_acquire) __tsan_acquire(edge);
}

const void* rs_cluster_map(const void* mine, int rank) {
    Fiber& f = fibers[current];
    long offset = (const unsigned char*)mine - blocks[f.block].shared;
    if (rank < 0 || rank >= (int)blocks.size()) fail(who(f) + " maps rank " + std::to_string(rank) + " of a cluster of " + std::to_string(blocks.size()));
    if (offset < 0 || offset + 8 > shared_size) fail(who(f) + " maps an address outside its block's shared memory");
    if (blocks[rank].gone > 0) fail(who(f) + " reads the shared memory of block " + std::to_string(rank) + ", which has begun to exit");
    return blocks[rank].shared + offset;
}

unsigned long long rs_warp(int kind, unsigned mask, unsigned long long value, int argument, int line) {
    Fiber& f = fibers[current];
    if (mask != 0xffffffffu) fail(who(f) + ": a warp operation on a partial mask, line " + std::to_string(line));
    int first = current - f.lane;
    int& arrived = warp_arrived[f.block * (block_threads / WARP) + f.warp];
    for (int l = 0; l < WARP; ++l) {
        const Fiber& other = fibers[first + l];
        if (other.state == GONE) fail(who(f) + " is in a warp operation, line " + std::to_string(line) + ", that exited lane " + std::to_string(l) + " will not reach");
        if (other.state == AT_WARP && (other.kind != kind || other.line != line))
            fail("divergent warp operation: " + who(f) + " at line " + std::to_string(line) + ", lane " + std::to_string(l) + " at line " + std::to_string(other.line));
    }
    f.kind = kind;
    f.value = value;
    f.argument = argument;
    if (++arrived == WARP) {
        arrived = 0;
        resolve_warp(first);
        to_scheduler();
    } else {
        wait(AT_WARP, line);
    }
    return fibers[current].value;
}

// Runs `grid` blocks in clusters of `cluster`; returns null, or what the threads did wrong.
const char* rs_launch(void (*kernel)(void*), void* argument, int grid, int threads, int cluster, int shared_bytes,
                      unsigned long long seed, int hold) {
    error.clear();
    body = kernel;
    body_argument = argument;
    block_threads = threads;
    held_warp = hold;
    shared_size = shared_bytes;
    shuffle_order = seed != 0;
    random_state = seed * 0x9E3779B97F4A7C15ull + 1;
    scheduler_sanitizer = __tsan_get_current_fiber ? __tsan_get_current_fiber() : nullptr;
    for (int b = 0; b < grid && error.empty(); b += cluster) run_cluster(b, cluster, grid, threads, shared_bytes);
    if (__tsan_acquire) __tsan_acquire(&launch_edge);  // what one launch wrote, the next may read
    for (void* s : retired) __tsan_destroy_fiber(s);
    retired.clear();
    for (void* m : retired_memory) free(m);
    retired_memory.clear();
    rs_here = nullptr;
    return error.empty() ? nullptr : error.c_str();
}
}
