// Stage B: a cluster of blocks (or one block) owns a listed node, reads its rows once into shared memory where they
// fit (RS_RESIDENT), and runs the rule on them. One cluster barrier a pass.
#include "level.cuh"

struct Answer {
    int accepted, status;
    i64 token;      // of an accepted candidate or a last resort; unused where draw_token wrote one
    bool written;   // draw_token wrote the token
};

#if RS_RULE == RS_SPECINFER
RS_DEVICE double excess(double p, double q, double scale) { return larger(p - scale * q, 0.0); }

RS_DEVICE Answer run(Block& b, const Call& call, i64* token) {
    const Candidates& c = b.shared->c;
    double scale = 0.0, mass = 1.0;
    bool fell_back = false;
    for (int i = 0; i < call.candidates; ++i) {
        if (c.coin[i] * c.q[i] * mass < excess(c.p[i], c.q[i], scale)) return {i, 0, c.id[i], false};
        const double further = scale + mass;
        i64 v[1];
        sum_row<1>(b, v, [&](int k, i64(&t)[1]) { t[0] = units(excess(b.target_at(k), b.draft_at(k), further)); });
        const double rest = smaller(real(v[0]), 1.0);
        if (rest > 0.0) {
            scale = further;
            mass = rest;
        } else {
            fell_back = true;
        }
    }
    const bool drawn = draw_token(b, c.coin[call.candidates], token,
                                  [&](int k) { return excess(b.target_at(k), b.draft_at(k), scale); });
    return {-1, fell_back || !drawn ? ST_FALLBACK : 0, -1, drawn};
}
#endif

#if RS_RULE == RS_DETERMINISTIC || RS_IS_RESISPEC
// True where entry k of the slice is one of the rejected candidates (those up to and including `last`).
RS_DEVICE bool gone(const Block& b, int k, unsigned rejected, int last) {
    bool is = false;
    for (int j = 0; j <= last; ++j) is = is || (((rejected >> j) & 1u) && b.shared->c.id[j] == b.first_token + k);
    return is;
}
#endif

#if RS_RULE == RS_DETERMINISTIC
RS_DEVICE Answer run(Block& b, const Call& call, i64* token) {
    const Candidates& c = b.shared->c;
    const int n = call.candidates;
    unsigned rejected;
    const int accepted = decide(c, n, &rejected);
    if (accepted >= 0) return {accepted, 0, c.id[accepted], false};
    if (draw_token(b, c.coin[n], token, [&](int k) { return gone(b, k, rejected, n - 1) ? 0.0 : b.target_at(k); }))
        return {-1, 0, -1, true};
    return {-1, ST_FALLBACK, last_resort(c, n, rejected), false};
}
#endif

#if RS_IS_RESISPEC
#if RS_RULE == RS_WATERFILL
// min(a q, p/M) off the rejected tokens with total one; what is left goes to undrafted tokens.
RS_DEVICE bool draw_residual(Block& b, const Call& call, const Rounds& r, i64* token) {
    const Candidates& c = b.shared->c;
    const int n = call.candidates;
    if (r.rejected == 0u) return draw_token(b, c.coin[n], token, [&](int k) { return b.target_at(k); });
    const double inverse = 1.0 / r.product;
    auto weight = [&](int k) { return gone(b, k, r.rejected, n - 1) ? 0.0 : b.draft_at(k); };
    auto room = [&](int k) { return gone(b, k, r.rejected, n - 1) ? 0.0 : smaller(b.target_at(k) * inverse, 1.0); };
    const Level level = fill_level<true>(b, call.vocabulary, 1.0, 1.0, weight, room);
    i64 spare[1];
    auto undrafted = [&](int k) {
        return b.draft_at(k) == 0.0 && !gone(b, k, r.rejected, n - 1) ? b.target_at(k) : 0.0;
    };
    sum_row<1>(b, spare, [&](int k, i64(&t)[1]) { t[0] = units(undrafted(k)); });
    const double share = spare[0] > 0 ? level.unmet / real(spare[0]) : 0.0;
    return draw_token(b, c.coin[n], token, [&](int k) {
        const double w = weight(k);
        return w > 0.0 ? smaller(level.height * w, room(k)) : 0.0 + undrafted(k) * share;
    });
}
#else
// The residual at one entry after rounds 0 .. upto - 1, replayed from the rounds' scalars.
struct Replay {
    double share[RS_MAX_CANDIDATES];  // proportional: share of the capacity; uniform: level
};

RS_DEVICE double base_of(double q, double scaled, const Rounds& r, int i) {
    return smaller(q * (r.budget[i] / r.held[i]), scaled);
}

RS_DEVICE double residual_at(const Block& b, const Rounds& r, const Replay& replay, int upto, int k) {
    double residual = b.target_at(k);
    const double q = b.draft_at(k);
    for (int i = 0; i < upto; ++i) {
        if (!((r.rejected >> i) & 1u)) continue;
        const double scaled = residual * (1.0 / r.held[i]), base = base_of(q, scaled, r, i);
#if RS_RULE == RS_PROPORTIONAL
        residual = base + replay.share[i] * (scaled - base);
#else
        residual = base + smaller(replay.share[i], scaled - base);
#endif
    }
    return upto > 0 && gone(b, k, r.rejected, upto - 1) ? 0.0 : residual;
}

RS_DEVICE bool draw_residual(Block& b, const Call& call, const Rounds& r, i64* token) {
    const int n = call.candidates;
    Replay replay;
    for (int i = 0; i < n; ++i) {
        if (!((r.rejected >> i) & 1u)) continue;
        const double inverse = 1.0 / r.held[i];
        i64 v[2];
        sum_row<2>(b, v, [&](int k, i64(&t)[2]) {
            const bool out = gone(b, k, r.rejected, i);
            const double residual = residual_at(b, r, replay, i, k);
            t[0] = out ? 0 : units(base_of(b.draft_at(k), residual * inverse, r, i));
            t[1] = out ? 0 : units(residual);
        });
        const double missing = larger(real(((i64)1 << 55) - v[0]), 0.0);
#if RS_RULE == RS_PROPORTIONAL
        const double room = real(v[1]) - r.held[i] * real(v[0]);
        replay.share[i] = room > 0.0 ? smaller(r.held[i] * missing / room, 1.0) : 0.0;
#else
        auto room = [&](int k) {
            if (gone(b, k, r.rejected, i)) return 0.0;
            const double scaled = residual_at(b, r, replay, i, k) * inverse;
            return smaller(scaled - base_of(b.draft_at(k), scaled, r, i), 1.0);
        };
        replay.share[i] = fill_level<false>(b, call.vocabulary, 0.0, missing, room, room).height;
#endif
    }
    return draw_token(b, b.shared->c.coin[n], token, [&](int k) { return residual_at(b, r, replay, n, k); });
}
#endif

RS_DEVICE Answer run(Block& b, const Call& call, i64* token) {
    const Candidates& c = b.shared->c;
    const int n = call.candidates;
    double least = 0.0;
#if RS_EQ13
    least = -most_over_row(b, -2.0, [&](int k) {
        const double q = b.draft_at(k);
        return q > 0.0 ? -(smaller(b.target_at(k), 2.0 * q) / q) : -2.0;
    });
#endif
    Rounds r;
    const int accepted = decide(c, n, least, &r);
    if (accepted >= 0) return {accepted, 0, c.id[accepted], false};
    const bool drawn = draw_residual(b, call, r, token);
    const int status = r.fell_back || !drawn ? ST_FALLBACK : 0;
    return {-1, status, drawn ? -1 : last_resort(c, n, r.rejected), drawn};
}
#endif

#if RS_RULE == RS_SHAPED
#define RS_HORIZON_STEPS 64
#define RS_HORIZON_NEWTON 12
#define RS_FLAT 0x1p-20

// shaping.Chain
struct Chain {
    double left[RS_MAX_CANDIDATES + 1], mass[RS_MAX_CANDIDATES], end, slope;
};

RS_DEVICE double clip_residual(double p, double q, double horizon, double left) {
    return larger(p - (horizon - left) * q, smaller(p, left * q));
}

RS_DEVICE void shaped_chain(Block& b, int n, double horizon, Chain* chain) {
    chain->left[0] = horizon;
    chain->left[1] = horizon - 1.0;
    chain->mass[0] = 1.0;
    chain->slope = 1.0;
    chain->end = horizon - 1.0;
    for (int i = 1; i < n; ++i) {
        const double left = chain->left[i];
        i64 v[3];
        sum_row<3>(b, v, [&](int k, i64(&t)[3]) {
            const double p = b.target_at(k), q = b.draft_at(k);
            const double floor_ = p - (horizon - left) * q, offered = left * q;
            t[0] = units(larger(floor_, smaller(p, offered)));
            t[1] = offered < p && offered > floor_ ? units(q) : 0;
            t[2] = floor_ >= offered ? units(q) : 0;
        });
        chain->slope = chain->slope * (1.0 - real(v[1]) - real(v[2])) + real(v[2]);
        chain->mass[i] = real(v[0]);
        chain->end = chain->end - chain->mass[i];
        chain->left[i + 1] = larger(chain->end, 0.0);
    }
}

RS_DEVICE double shaped_horizon(Block& b, const Call& call, Chain* chain) {
    const int n = call.candidates;
    const double near = 2.0 * call.vocabulary * n * RS_UNIT;
    double horizon = n, low = 1.0, high = n;
    for (int step = 0; step < RS_HORIZON_STEPS; ++step) {
        shaped_chain(b, n, horizon, chain);
        const double end = chain->end, slope = chain->slope;
        if (end <= near && end >= -near && (slope > RS_FLAT || step == 0)) return horizon;
        if (end <= near) low = horizon;
        if (end > near) high = horizon;
        const double newton = horizon - end / (slope > 0.0 ? slope : 1.0);
        const bool usable = slope > 0.0 && newton > low && newton < high && step < RS_HORIZON_NEWTON;
        horizon = usable ? newton : 0.5 * (low + high);
    }
    shaped_chain(b, n, high, chain);
    return high;
}

RS_DEVICE Answer run(Block& b, const Call& call, i64* token) {
    const Candidates& c = b.shared->c;
    const int n = call.candidates;
    Chain chain;
    const double horizon = shaped_horizon(b, call, &chain);
    for (int i = 0; i < n; ++i) {
        const double now = clip_residual(c.p[i], c.q[i], horizon, chain.left[i]);
        const double after = clip_residual(c.p[i], c.q[i], horizon, chain.left[i + 1]);
        if (c.coin[i] * chain.mass[i] * c.q[i] < now - after) return {i, 0, c.id[i], false};
    }
    for (int i = n; i >= 0; --i) {
        const double left = chain.left[i];
        if (draw_token(b, c.coin[n], token,
                       [&](int k) { return clip_residual(b.target_at(k), b.draft_at(k), horizon, left); }))
            return {-1, i < n ? ST_FALLBACK : 0, -1, true};
    }
    return {-1, ST_FALLBACK, -1, false};
}
#endif

// Copies a slice, 16 bytes a load where both ends are aligned.
RS_DEVICE void stage_slice(raw_t* to, const raw_t* from, int count) {
    const int per_load = 16 / (int)sizeof(raw_t);
    const bool aligned = ((u64)from & 15ull) == 0ull && ((u64)to & 15ull) == 0ull;
    const int loads = aligned ? count / per_load : 0;
    for (int i = (int)threadIdx.x; i < loads; i += (int)blockDim.x) ((uint4*)to)[i] = ((const uint4*)from)[i];
    for (int i = loads * per_load + (int)threadIdx.x; i < count; i += (int)blockDim.x) to[i] = from[i];
}

// Logits without a normaliser: the row's maximum, then its integer sum.
RS_DEVICE void normalise_row(Block& b, const raw_t* row, Reading* how, int vocabulary) {
#if RS_LOGITS
    const double none = -__longlong_as_double(0x7ff0000000000000ll);
    const double top = most_over_row(b, none, [&](int k) { return usable_raw(row[k]) ? score(*how, row[k]) : none; });
    how->shift = top > none ? top : 0.0;
    const int bits = softmax_bits(vocabulary);
    const double per_one = power_of_two(bits);
    i64 v[1];
    sum_row<1>(b, v, [&](int k, i64(&t)[1]) {
        t[0] = usable_raw(row[k]) ? units_of(exponential(score(*how, row[k]) - how->shift), per_one) : 0;
    });
    const double mass = (double)v[0] * power_of_two(-bits);
    how->scale = 1.0 / (mass > 0.0 ? mass : 1.0);
#endif
}

// What is wrong with one row: its values and its mass.
RS_DEVICE int check_row(Block& b, const raw_t* row, const Reading& how, int value_flag, int mass_flag) {
    i64 v[2];
    sum_row<2>(b, v, [&](int k, i64(&t)[2]) {
        double p;
        t[1] = probability(how, row[k], &p) ? 0 : 1;
        t[0] = units(p);
    });
    const double mass = real(v[0]);
    const bool off = mass < 1.0 - RS_MASS_MARGIN || mass > 1.0 + RS_MASS_MARGIN;
    return (v[1] > 0 ? value_flag : 0) | (off ? mass_flag : 0);
}

extern "C" __global__ void RS_LAUNCH_BOUNDS stage_b(RS_PARAMETERS) {
    const Call call = RS_CALL;
    Block b;
    b.rank = cluster_rank();
    b.ranks = cluster_size();
    const int place = (int)blockIdx.x / b.ranks;
    if (place >= *call.listed) return;
    const int node = call.list[place];
    unsigned char* base = RS_SHARED_BASE;
    b.shared = (Shared*)base;
    b.lane = (int)threadIdx.x % RS_WARP;
    b.warp = (int)threadIdx.x / RS_WARP;
    b.warps = (int)blockDim.x / RS_WARP;
    b.phase = 0;
    b.first_token = (i64)b.rank * call.slice;
    const i64 left = (i64)call.vocabulary - b.first_token;
    const int count = left < 0 ? 0 : (left < call.slice ? (int)left : call.slice);
    const int part = (count + b.warps * RS_WARP - 1) / (b.warps * RS_WARP) * RS_WARP;
    b.begin = b.warp * part < count ? b.warp * part : count;
    b.end = b.begin + part < count ? b.begin + part : count;
    const raw_t* target_row = call.target + (i64)node * call.target_stride;
    const raw_t* draft_row = RS_READS_DRAFT ? call.draft + (i64)node * call.draft_stride : target_row;
    b.p = target_row + b.first_token;
    b.q = draft_row + b.first_token;
#if RS_RESIDENT
    raw_t* staged = (raw_t*)(base + RS_SHARED_BYTES);
    stage_slice(staged, b.p, count);
    b.p = staged;
    if (RS_READS_DRAFT) {
        raw_t* staged_draft = staged + (call.slice + 7) / 8 * 8;
        stage_slice(staged_draft, b.q, count);
        b.q = staged_draft;
    }
    __syncthreads();
#endif
    b.target = {call.inverse_temperature, 0.0, 1.0};
    b.draft = b.target;
    int bad = 0;
    if (!(call.flags & HAS_TARGET_NORM)) {
        normalise_row(b, b.p, &b.target, call.vocabulary);
    } else if (!read_norm(&b.target, call.target_norm[node])) {
        bad |= ST_TARGET_MASS;
    }
    bad |= check_row(b, b.p, b.target, ST_TARGET_VALUE, ST_TARGET_MASS);
#if RS_READS_DRAFT
    if (!(call.flags & HAS_DRAFT_NORM)) {
        normalise_row(b, b.q, &b.draft, call.vocabulary);
    } else if (!read_norm(&b.draft, call.draft_norm[node])) {
        bad |= ST_DRAFT_MASS;
    }
    bad |= check_row(b, b.q, b.draft, ST_DRAFT_VALUE, ST_DRAFT_MASS);
#endif
    const int n = call.candidates, t = (int)threadIdx.x;
    if (t <= n) b.shared->c.coin[t] = call.coins[(i64)node * (n + 1) + t];
    if (t < n) {
        const i64 id = call.tokens[(i64)node * n + t];
        b.shared->c.id[t] = id;
        b.shared->c.p[t] = law(b.target, target_row[id]);
        b.shared->c.q[t] = law(b.draft, draft_row[id]);
    }
    __syncthreads();
    Answer answer = {-1, bad, -1, false};
    if (bad == 0) answer = run(b, call, call.token + node);
    if (b.rank == 0 && threadIdx.x == 0) {
        call.accepted[node] = answer.accepted;
        call.status[node] = answer.status;
        if (!answer.written) call.token[node] = answer.token;
    }
#if RS_CLUSTER
    cluster_barrier();  // no block leaves while another may still read its shared memory
#endif
}
