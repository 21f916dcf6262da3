#include "layout.h"

#include <string.h>

// Between two records that follow each other in a run: an idle server may write nothing for days.
#define LONGEST_STEP_NS (7 * 24 * 3600 * STM_NS_PER_S)
// Half a record behind NUL bytes can look like a record of long ago. To leave the first one out
// where a server has been idle after it costs less than to take that for one.
#define LONGEST_FIRST_STEP_NS (60 * STM_NS_PER_S)
// C7 takes the time before it takes the lock of the file.
#define LONGEST_STEP_BACK_NS STM_NS_PER_S

// Text of PyPy; 8 bytes of a program that gives stmgc no text; a duration of the research branches.
static bool is_known_marker(const uint8_t *marker, size_t length)
{
    static const char text[] = "File \"";

    if (length == 0 || length == sizeof(uint64_t))
        return true;
    if (length >= sizeof(text) - 1 && memcmp(marker, text, sizeof(text) - 1) == 0)
        return true;
    return length >= 4 && marker[0] == 's' && marker[1] >= '0' && marker[1] <= '9' &&
           marker[length - 1] >= '0' && marker[length - 1] <= '9';
}

bool stm_has_known_markers(const struct stm_record *record)
{
    return is_known_marker(record->marker1, record->length1) &&
           is_known_marker(record->marker2, record->length2);
}

static bool can_follow(enum stm_trust trust, size_t number, uint64_t before_ns, uint64_t now_ns)
{
    bool is_sure = trust == STM_HEADS || number > 1;

    return now_ns <= before_ns + (is_sure ? LONGEST_STEP_NS : LONGEST_FIRST_STEP_NS) &&
           now_ns + LONGEST_STEP_BACK_NS >= before_ns;
}

size_t stm_run(enum stm_layout layout, enum stm_trust trust, const uint8_t *bytes, size_t length,
               bool is_end, size_t wanted)
{
    struct stm_record record;
    uint64_t before_ns = 0;

    for (size_t found = 0, at = 0; found < wanted; found++, at += record.size) {
        switch (stm_parse(layout, bytes + at, length - at, &record)) {
        case STM_IMPOSSIBLE:
            return 0;
        case STM_CUT:
            return is_end ? found : STM_RUN_NEEDS_MORE;
        case STM_PARSED:
            break;
        }
        if (trust == STM_HEADS_AND_MARKERS && !stm_has_known_markers(&record))
            return 0;
        if (found && !can_follow(trust, found, before_ns, record.time_ns))
            return 0;
        before_ns = record.time_ns;
    }
    return wanted;
}
