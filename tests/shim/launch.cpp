// Both kernels of one configuration behind a plain C call, and (RS_RUNNER) a program that runs one stored case on
// exact-size heap arrays, for the sanitizer builds.
#include "cuda_shim.h"
#include "stage_a.cu"
#include "stage_b.cu"

#include <cstdio>
#include <cstdlib>

extern "C" const char* rs_launch(void (*)(void*), void*, int, int, int, int, unsigned long long, int);

static void body_a(void* given) {
    Call& c = *(Call*)given;
    stage_a(c.target, c.draft, c.target_norm, c.draft_norm, c.tokens, c.coins, c.target_stride, c.draft_stride,
            c.inverse_temperature, c.nodes, c.vocabulary, c.candidates, c.flags, c.slice, c.accepted, c.token, c.status,
            c.list, c.listed);
}
static void body_b(void* given) {
    Call& c = *(Call*)given;
    stage_b(c.target, c.draft, c.target_norm, c.draft_norm, c.tokens, c.coins, c.target_stride, c.draft_stride,
            c.inverse_temperature, c.nodes, c.vocabulary, c.candidates, c.flags, c.slice, c.accepted, c.token, c.status,
            c.list, c.listed);
}

extern "C" int rs_header_bytes() { return (int)RS_SHARED_BYTES; }

// Runs stage A, then stage B. Null, or what went wrong.
extern "C" const char* rs_verify(Call* call, int threads, int cluster, int shared_bytes, unsigned long long seed, int hold) {
    const char* wrong = rs_launch(body_a, call, (call->nodes + threads - 1) / threads, threads, 1, 0, seed, hold);
    if (wrong) return wrong;
    return rs_launch(body_b, call, call->nodes * cluster, threads, cluster, shared_bytes, seed, hold);
}

#ifdef RS_RUNNER
static void* read_array(FILE* file) {  // byte count, then the bytes, into a heap block of exactly that size
    long long bytes;
    if (fread(&bytes, 8, 1, file) != 1) exit(3);
    if (bytes < 0) return nullptr;
    void* block = malloc(bytes);
    if (bytes && fread(block, bytes, 1, file) != 1) exit(3);
    return block;
}
int main(int count, char** arguments) {
    if (count != 3) return 2;
    FILE* file = fopen(arguments[1], "rb");
    long long head[12];
    double inverse_temperature;
    if (!file || fread(head, 8, 12, file) != 12 || fread(&inverse_temperature, 8, 1, file) != 1) return 3;
    Call c;
    c.nodes = (int)head[0], c.vocabulary = (int)head[1], c.candidates = (int)head[2], c.flags = (int)head[3];
    c.slice = (int)head[4], c.target_stride = head[5], c.draft_stride = head[6];
    c.inverse_temperature = inverse_temperature;
    c.target = (const raw_t*)read_array(file), c.draft = (const raw_t*)read_array(file);
    c.target_norm = (const double*)read_array(file), c.draft_norm = (const double*)read_array(file);
    c.tokens = (const i64*)read_array(file), c.coins = (const double*)read_array(file);
    fclose(file);
    c.accepted = (i64*)malloc(8 * c.nodes), c.token = (i64*)malloc(8 * c.nodes);
    c.status = (int*)malloc(4 * c.nodes), c.list = (int*)malloc(4 * c.nodes), c.listed = (int*)malloc(4);
    *c.listed = 0;
    const char* wrong = rs_verify(&c, (int)head[7], (int)head[8], (int)head[9], (unsigned long long)head[10], (int)head[11]);
    if (wrong) {
        fprintf(stderr, "SHIM: %s\n", wrong);
        return 4;
    }
    FILE* out = fopen(arguments[2], "wb");
    fwrite(c.accepted, 8, c.nodes, out), fwrite(c.token, 8, c.nodes, out), fwrite(c.status, 4, c.nodes, out);
    fclose(out);
    return 0;
}
#endif
