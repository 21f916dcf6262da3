// Counts over time, in memory that does not grow with time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Even.
#ifndef STM_BINS
#define STM_BINS 256
#endif

// How wide a bin is, and where the first one begins: one for all the series of an account.
//
// Without *cells* a bin is 2^shift ns wide, and becomes twice as wide whenever a time lies beyond
// the last one. With *cells* that many cover *total_ns* exactly, which has to be known beforehand.
struct stm_scale {
    uint64_t origin_ns;
    uint64_t total_ns;
    uint32_t cells;
    uint8_t shift;
    bool has_origin;
};

struct stm_series {
    uint32_t bins[STM_BINS];
    // Of the scale when something was last added.
    uint8_t shift;
};

// Counts one at *time_ns*.
void stm_series_add(struct stm_series *series, struct stm_scale *scale, uint64_t time_ns);

// Makes the bins of *series* as wide as the scale's are by now.
void stm_series_align(struct stm_series *series, const struct stm_scale *scale);
