#include "series.h"

#include <string.h>

// 4 us: even a log of a millisecond fills half of the bins.
#define FIRST_SHIFT 12

static uint32_t sum(uint32_t one, uint32_t other)
{
    return one > UINT32_MAX - other ? UINT32_MAX : one + other;
}

void stm_series_align(struct stm_series *series, const struct stm_scale *scale)
{
    for (; series->shift < scale->shift; series->shift++) {
        for (int bin = 0; bin < STM_BINS / 2; bin++)
            series->bins[bin] = sum(series->bins[2 * bin], series->bins[2 * bin + 1]);
        memset(series->bins + STM_BINS / 2, 0, sizeof(series->bins) / 2);
    }
}

static uint64_t cell_of(const struct stm_scale *scale, uint64_t since_ns)
{
    uint64_t cell = 0;

    if (scale->total_ns)
        cell = (uint64_t)((double)since_ns / (double)scale->total_ns * scale->cells);
    return cell < scale->cells ? cell : scale->cells - 1;
}

void stm_series_add(struct stm_series *series, struct stm_scale *scale, uint64_t time_ns)
{
    uint64_t bin;

    if (!scale->has_origin) {
        scale->has_origin = true;
        scale->origin_ns = time_ns;
    }
    uint64_t since_ns = time_ns > scale->origin_ns ? time_ns - scale->origin_ns : 0;
    if (scale->cells) {
        bin = cell_of(scale, since_ns);
    } else {
        if (scale->shift < FIRST_SHIFT)
            scale->shift = FIRST_SHIFT;
        while (since_ns >> scale->shift >= STM_BINS)
            scale->shift++;
        if (series->shift != scale->shift)
            stm_series_align(series, scale);
        bin = since_ns >> scale->shift;
    }
    series->bins[bin] = sum(series->bins[bin], 1);
}
