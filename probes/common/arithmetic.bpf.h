// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Arithmetic without branches: each of them would double the paths that the verifier follows.

// Returns which bit of *value* is its highest one, counted from 0; of 0, 63.
static __always_inline u64 highest_bit(u64 value)
{
    // All bits below the highest become 1, and then they are counted: in pairs, fours and bytes,
    // whose sum the multiplication leaves in the uppermost byte.
    value |= value >> 1;
    value |= value >> 2;
    value |= value >> 4;
    value |= value >> 8;
    value |= value >> 16;
    value |= value >> 32;
    value -= (value >> 1) & 0x5555555555555555ULL;
    value = (value & 0x3333333333333333ULL) + ((value >> 2) & 0x3333333333333333ULL);
    value = (value + (value >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
    // The mask tells the verifier that nothing is shifted by more than a number has bits.
    return (((value * 0x0101010101010101ULL) >> 56) - 1) & 63;
}
