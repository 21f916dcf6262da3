// The time for which one lock was held outside of windows, as far as samples tell.
//
// Each sample decides for the time since the last one, less what windows have covered of it: it was
// held all the time, or not at all. All times are in nanoseconds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct held_estimate {
    // Never falls, and never grows by more than time passes.
    int64_t held_ns;
    // The time that was decided about, held or not.
    int64_t sampled_ns;
    // The time that nobody can tell anything about, because samples were seconds apart.
    int64_t unobserved_ns;
    // How many of them have decided about some time.
    int64_t samples;
    int64_t begin_ns;
    int64_t last_ns;
    int64_t observed_at_begin_ns;
    // What windows have covered since then.
    int64_t observed_ns;
    // About the share of the last samples at which it was held; one half before there were any.
    double share;
};

// Begins at `at_ns`, when windows have covered `observed_ns`.
void held_estimate_begin(struct held_estimate *estimate, int64_t at_ns, int64_t observed_ns);

// Whether a sample at `at_ns` would decide about any time; if not, for windows have covered it all,
// it must be left out.
bool held_estimate_wants_sample(struct held_estimate *estimate, int64_t at_ns, int64_t observed_ns);

// Notes whether the lock was held at `at_ns`, when a sample is wanted.
void held_estimate_credit(struct held_estimate *estimate, int64_t at_ns, bool is_locked);
