/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_PRINTER_H
#define QUERN_CORE_BASE_PRINTER_H

/* Buffered printing to a sink. After the sink's first failed write, the printer drops all further text. Only
 * quern__printer_close reports the failure, so single prints need no check. */

#include "core/base/sink_internal.h"

#define QUERN__PRINTER_BYTES 512

typedef struct quern__printer {
    quern__sink_writer sink;
    uint32_t used_bytes;
    char text[QUERN__PRINTER_BYTES];
} quern__printer;

void quern__printer_open(quern__printer *printer, quern_sink sink);

/* Prints formatted text. One call is truncated to QUERN__PRINTER_BYTES - 1 bytes. */
void quern__print(quern__printer *printer, const char *format, ...) QUERN__PRINTF(2, 3);

/* Prints any number of bytes. */
void quern__print_bytes(quern__printer *printer, const char *text, size_t bytes);

/* Prints units / 10^digits without trailing zeros, independent of the locale. digits: 1 to 9. */
void quern__print_decimal(quern__printer *printer, uint64_t units, uint32_t digits);

/* Writes the buffered text and flushes the sink. function: name of the public call, for the message. Errors: IO if the
 * sink has failed at any time. */
quern_result quern__printer_close(quern__printer *printer, const char *function);

#endif
