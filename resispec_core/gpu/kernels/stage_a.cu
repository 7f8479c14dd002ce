// Stage A: one thread a node. Settles what the candidates' entries decide and lists the rest for stage B.
#include "scalars.cuh"

// Reads entry `id` of one row; adds to `bad` where it is no probability.
RS_DEVICE double entry(const Reading& how, const raw_t* row, i64 id, int flag, int* bad) {
    double p;
    if (!probability(how, row[id], &p)) *bad |= flag;
    return p;
}

extern "C" __global__ void stage_a(RS_PARAMETERS) {
    const Call call = RS_CALL;
    const int node = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (node >= call.nodes) return;
    const int n = call.candidates;
    Candidates c;
    int bad = 0;
    for (int i = 0; i < n; ++i) {
        c.id[i] = call.tokens[(i64)node * n + i];
        if (c.id[i] < 0 || c.id[i] >= call.vocabulary) bad |= ST_CANDIDATE;
    }
    for (int i = 0; i <= n; ++i) {
        c.coin[i] = call.coins[(i64)node * (n + 1) + i];
        if (!usable_coin(c.coin[i])) bad |= ST_COIN;
    }
    bool open = bad == 0;
    int choice = -1;
    if (open && !(call.flags & LIST_ALL)) {
        Reading target = {call.inverse_temperature, 0.0, 1.0};
        if (call.flags & HAS_TARGET_NORM && !read_norm(&target, call.target_norm[node])) bad |= ST_TARGET_MASS;
#if RS_READS_DRAFT
        Reading draft = {call.inverse_temperature, 0.0, 1.0};
        if (call.flags & HAS_DRAFT_NORM && !read_norm(&draft, call.draft_norm[node])) bad |= ST_DRAFT_MASS;
#endif
        for (int i = 0; i < n; ++i) {
            c.p[i] = entry(target, call.target + (i64)node * call.target_stride, c.id[i], ST_TARGET_VALUE, &bad);
#if RS_READS_DRAFT
            c.q[i] = entry(draft, call.draft + (i64)node * call.draft_stride, c.id[i], ST_DRAFT_VALUE, &bad);
#endif
        }
        choice = bad == 0 ? settle(c, n) : -1;
        open = bad == 0 && choice < 0;
    }
    call.accepted[node] = choice;
    call.token[node] = choice < 0 ? -1 : c.id[choice];
    call.status[node] = open ? ST_PENDING : bad;
    if (open) call.list[atomicAdd(call.listed, 1)] = node;
}
