/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_INSPECT_PAGE_H
#define QUERN_INSPECT_PAGE_H

/* The page, which cmake/QuernEmbed.cmake makes of inspect/page.html. */

#include <stddef.h>

extern const unsigned char quern__inspect_page[];
extern const size_t quern__inspect_page_bytes;

#endif
