// Hashes that nobody can foresee, so that no log can be made whose keys belong to one slot.
//
// A key is a number that is written in a secret base, modulo a prime: two keys that were chosen
// without knowing the base have the same value in one of some 10^16 cases.
#pragma once

#include <stdint.h>

// 2^61 - 1, a prime, and the largest digit, of whole bytes.
#define STM_HASH_PRIME ((UINT64_C(1) << 61) - 1)
#define STM_HASH_DIGIT ((UINT64_C(1) << 56) - 1)
#define STM_HASH_DIGIT_BYTES 7

__extension__ typedef unsigned __int128 stm_product;

// Returns the value of the key *hash* with one more *digit*.
static inline uint64_t stm_hash_add(uint64_t hash, uint64_t secret, uint64_t digit)
{
    stm_product product = (stm_product)(hash + digit) * (secret & STM_HASH_PRIME);
    uint64_t sum = ((uint64_t)product & STM_HASH_PRIME) + (uint64_t)(product >> 61);

    return sum >= STM_HASH_PRIME ? sum - STM_HASH_PRIME : sum;
}

// Returns 32 bits that depend on all those of *hash*.
static inline uint32_t stm_hash_end(uint64_t hash)
{
    hash ^= hash >> 32;
    return (uint32_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}
