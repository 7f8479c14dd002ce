// The decisions that need only the candidates' entries. Both stages use them: stage A to settle nodes, stage B to
// know which candidate is still open.
#pragma once
#include "common.cuh"

struct Candidates {
    i64 id[RS_MAX_CANDIDATES];
    double p[RS_MAX_CANDIDATES], q[RS_MAX_CANDIDATES], coin[RS_MAX_CANDIDATES + 1];
};

#define RS_LEAST_SCALE 1e-300

// True where candidate i repeats one of the rejected candidates (a bit mask) before it.
RS_DEVICE bool repeats(const Candidates& c, int i, unsigned rejected) {
    bool seen = false;
    for (int j = 0; j < i; ++j) seen = seen || (((rejected >> j) & 1u) && c.id[j] == c.id[i]);
    return seen;
}

// The last rejected candidate with target mass: all that the last non-empty residual holds.
RS_DEVICE i64 last_resort(const Candidates& c, int n, unsigned rejected) {
    i64 last = -1;
    for (int j = 0; j < n; ++j)
        if (((rejected >> j) & 1u) && c.p[j] > 0.0) last = c.id[j];
    return last;
}

#if RS_RULE == RS_SPECINFER
// Candidate 1 by its own test; a later one where N <= 1 and s <= i already decide, all before it surely out.
RS_DEVICE int settle(const Candidates& c, int n) {
    if (c.coin[0] * c.q[0] < c.p[0]) return 0;
    for (int i = 1; i < n; ++i) {
        if (c.coin[i] * c.q[i] < c.p[i] - (double)i * c.q[i]) return i;
        if (!(c.p[i] <= c.q[i])) return -1;
    }
    return -1;
}
#endif

#if RS_RULE == RS_SHAPED
RS_DEVICE int settle(const Candidates& c, int n) { return -1; }
#endif

#if RS_RULE == RS_DETERMINISTIC
RS_DEVICE int decide(const Candidates& c, int n, unsigned* rejected) {
    double mass = 1.0;
    *rejected = 0u;
    for (int i = 0; i < n; ++i) {
        const double owed = repeats(c, i, *rejected) ? 0.0 : c.p[i];
        if (c.coin[i] * mass < owed) return i;
        *rejected |= 1u << i;
        mass = larger(mass - owed, 0.0);
    }
    return -1;
}
RS_DEVICE int settle(const Candidates& c, int n) {
    unsigned rejected;
    return decide(c, n, &rejected);
}
#endif

#if RS_IS_RESISPEC
// The rejections of the published rule: budgets Z, masses held, their product M. `least` is min p/q (Eq. 13).
struct Rounds {
    double budget[RS_MAX_CANDIDATES], held[RS_MAX_CANDIDATES], product;
    unsigned rejected;
    bool fell_back;
};

RS_DEVICE int decide(const Candidates& c, int n, double least, Rounds* r) {
    r->product = 1.0;
    r->rejected = 0u;
    r->fell_back = false;
    for (int i = 0; i < n; ++i) {
        const double owed = repeats(c, i, r->rejected) ? 0.0 : c.p[i];
        if (c.coin[i] * c.q[i] * r->product < owed) return i;
        const double local = c.q[i] - owed / r->product;
        double size = local, held = local;
#if RS_EQ13
        if (r->rejected == 0u) {
            size = larger(local, least);
            held = smaller(size, 1.0 - owed);
        }
#endif
        if (local > 0.0 && r->product * held >= RS_LEAST_SCALE) {
            r->product = r->product * held;
            r->budget[i] = size;
            r->held[i] = held;
            r->rejected |= 1u << i;
        } else {
            r->fell_back = true;
        }
    }
    return -1;
}
RS_DEVICE int settle(const Candidates& c, int n) {
#if RS_EQ13
    return c.coin[0] * c.q[0] < c.p[0] ? 0 : -1;
#else
    Rounds r;
    return decide(c, n, 0.0, &r);
#endif
}
#endif
