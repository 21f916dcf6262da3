// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// With SPANS_A_SECOND, a timeline is for a picture of one moment: what comes beyond that many in a
// second is not sent. Such a second is sent without gaps up to where it breaks off, and user space
// knows it by its number of spans.

// Of all processes.
struct span_budget {
    u64 second;
    u64 asked;
};
BPF_ARRAY(span_budget, struct span_budget, 1);

static __always_inline int is_within_budget(u64 ended_ns)
{
    u32 zero = 0;
    struct span_budget *budget;
    u64 second = ended_ns >> SPAN_SECOND_SHIFT;

    if (!PARAMETER(SPANS_A_SECOND))
        return 1;
    budget = span_budget.lookup(&zero);
    if (!budget)
        return 0;
    if (budget->second != second) {
        budget->second = second;
        budget->asked = 0;
    }
    __sync_fetch_and_add(&budget->asked, 1);
    return budget->asked <= PARAMETER(SPANS_A_SECOND);
}
