/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_FIELD_H
#define QUERN_CORE_STORAGE_FIELD_H

/* An element of a field as 64 bits, whatever its type: unsigned integers as they are, signed ones extended,
 * F32 and F64 by their bits, a NaN thus as the one that it is. A bool is its byte. */

#include "core/storage/type_internal.h"

uint64_t quern__field_load(quern_field_type type, const char *at);
void quern__field_store(quern_field_type type, char *at, uint64_t bits);

/* The same value, as far as a double tells. */
double quern__field_real(quern_field_type type, uint64_t bits);

/* The bits of a number of one type in another: the nearest F32 or F64, an integer without its fraction, a
 * bool that is set unless the number is 0. False where it does not fit. */
bool quern__field_convert(quern_field_type from, uint64_t bits, quern_field_type to, uint64_t *out_bits);

#endif
