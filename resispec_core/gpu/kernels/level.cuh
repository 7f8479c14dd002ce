// levels.fill_level: the h with sum of min(h w, room) = wanted. Newton from the left, then geometric bisection.
#pragma once
#include "block.cuh"

#define RS_NEWTON_STEPS 8
#define RS_LEVEL_STEPS 72
#define RS_UNBOUNDED 1e308

RS_DEVICE int softmax_bits(int vocabulary) { return 62 - (vocabulary > 1 ? 32 - __clz(vocabulary - 1) : 0); }
RS_DEVICE double power_of_two(int k) { return __longlong_as_double((i64)(k + 1023) << 52); }

struct Level {
    double height, unmet;
};

// WEIGHTED: weight(i) is w (0 takes nothing); otherwise w = 1 everywhere.
template <bool WEIGHTED, class WEIGHT, class ROOM>
RS_DEVICE Level fill_level(Block& b, int vocabulary, double start, double wanted, WEIGHT weight, ROOM room) {
    const int bits = softmax_bits(vocabulary);
    const double coarse = power_of_two(bits);
    const i64 goal = (i64)(wanted * 0x1p55);
    double height = start, low = start, high = RS_UNBOUNDED;
    bool at_full = false;
    for (int step = 0; step < RS_LEVEL_STEPS; ++step) {
        i64 v[3];
        sum_row<3>(b, v, [&](int i, i64(&t)[3]) {
            const double w = WEIGHTED ? weight(i) : 1.0, space = room(i);
            const double offered = WEIGHTED ? height * w : height;
            const bool rising = offered < space;
            const double filled = WEIGHTED && !(w > 0.0) ? 0.0 : (rising ? offered : space);
            t[0] = units(filled);
            t[1] = WEIGHTED ? (rising ? units(w) : 0) : (rising ? 1 : 0);
            t[2] = units_of(filled, coarse);
        });
        const double slope = WEIGHTED ? real(v[1]) : (double)v[1];
        const bool over = v[2] > (i64)1 << (bits + 1);  // the fine sum may have wrapped
        const i64 deficit = (i64)((u64)goal - (u64)v[0]);
        if (!over && deficit > vocabulary && (slope == 0.0 || at_full)) return {height, real(deficit)};
        if (!over && deficit <= vocabulary && deficit >= -(i64)vocabulary) break;
        if (!over && deficit > 0) low = height;
        if (over || deficit < 0) high = height;
        at_full = false;
        const double newton = height + real(deficit) / (slope > 0.0 ? slope : 1.0);
        if (!over && slope > 0.0 && newton > low && newton < high && step < RS_NEWTON_STEPS)
            height = newton;
        else if (high < RS_UNBOUNDED)
            height = sqrt(low) * sqrt(high);
        else if (step >= RS_NEWTON_STEPS) {  // all the weighted tokens may hold too little: ask at the top first
            at_full = true;
            height = most_over_row(b, 0.0, [&](int i) {
                const double w = WEIGHTED ? weight(i) : 1.0;
                return w > 0.0 ? room(i) / (w < 1.0 / RS_UNBOUNDED ? 1.0 / RS_UNBOUNDED : w) : 0.0;
            });
        }
    }
    return {height, 0.0};
}
