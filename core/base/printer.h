/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_PRINTER_H
#define QUERN_CORE_BASE_PRINTER_H

/* Text on its way to a sink. It is put together here first, so that a sink is not called for every word.
 * After the first write that the sink refuses it gets nothing more, and closing the printer says so: who
 * prints need not ask. */

#include "core/base/sink_internal.h"

#define QUERN__PRINTER_BYTES 512

typedef struct quern__printer {
    quern__sink_writer sink;
    uint32_t used_bytes;
    char text[QUERN__PRINTER_BYTES];
} quern__printer;

void quern__printer_open(quern__printer *printer, quern_sink sink);

/* What one call prints is cut off at QUERN__PRINTER_BYTES - 1; quern__print_bytes prints any number. */
void quern__print(quern__printer *printer, const char *format, ...) QUERN__PRINTF(2, 3);

void quern__print_bytes(quern__printer *printer, const char *text, size_t bytes);

/* units / 10^digits, whatever the locale, without zeros at the end; digits from 1 to 9. */
void quern__print_decimal(quern__printer *printer, uint64_t units, uint32_t digits);

/* Hands over what is left, and asks whether all has arrived. Errors: FILE, naming the function. */
quern_result quern__printer_close(quern__printer *printer, const char *function);

#endif
