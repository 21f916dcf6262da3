#include "estimate.h"

// After this long without a sample the agent must have been stopped; nobody knows what happened.
#define LONGEST_GAP_NS 3000000000

// Samples over which the share is averaged, about. Fewer would let the rate follow the lock so
// closely that held and free times are sampled at different rates.
#define SMOOTHING 256

static int64_t larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static int64_t undecided_ns(const struct held_estimate *estimate, int64_t at_ns)
{
    return at_ns - estimate->begin_ns - estimate->observed_ns - estimate->sampled_ns -
           estimate->unobserved_ns;
}

void held_estimate_begin(struct held_estimate *estimate, int64_t at_ns, int64_t observed_ns)
{
    *estimate = (struct held_estimate){
        .begin_ns = at_ns,
        .last_ns = at_ns,
        .observed_at_begin_ns = observed_ns,
        .share = 0.5,
    };
}

bool held_estimate_wants_sample(struct held_estimate *estimate, int64_t at_ns, int64_t observed_ns)
{
    // A window that has ended before a sample was told of it seems to have covered less than
    // before.
    estimate->observed_ns =
        larger(estimate->observed_ns, observed_ns - estimate->observed_at_begin_ns);
    if (undecided_ns(estimate, at_ns) > 0)
        return true;
    estimate->last_ns = larger(estimate->last_ns, at_ns);
    return false;
}

void held_estimate_credit(struct held_estimate *estimate, int64_t at_ns, bool is_locked)
{
    int64_t decided_ns = undecided_ns(estimate, at_ns);
    bool is_late = at_ns - estimate->last_ns > LONGEST_GAP_NS;

    estimate->last_ns = larger(estimate->last_ns, at_ns);
    if (is_late) {
        estimate->unobserved_ns += decided_ns;
        return;
    }
    estimate->samples++;
    estimate->share += ((is_locked ? 1 : 0) - estimate->share) / SMOOTHING;
    estimate->sampled_ns += decided_ns;
    if (is_locked)
        estimate->held_ns += decided_ns;
}
