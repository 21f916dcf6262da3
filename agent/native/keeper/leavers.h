// SPDX-License-Identifier: Apache-2.0
#ifndef GILSCOPE_KEEPER_LEAVERS_H
#define GILSCOPE_KEEPER_LEAVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Close descriptors through a process that ends, on behalf of request *number*; `leaver_has_gone`
// tells when it has. Where no process can be made they are closed at once, which takes as long as
// the kernel takes.
void close_by_leaving(const int *fds, size_t count, uint32_t number);

// Take note of one process that has ended, if there is one; store its request's number.
bool leaver_has_gone(uint32_t *number);

// Close all descriptors from *first* on.
void close_from(unsigned int first);

// Whether any process of request *number* has not ended yet.
bool are_leaving(uint32_t number);

#endif
