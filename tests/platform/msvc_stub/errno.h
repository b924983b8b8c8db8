/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the tests headers_msvc and sources_msvc. */
#pragma once
int *_errno(void);
#define errno      (*_errno())
#define ENOENT     2
#define ENOMEM     12
#define EACCES     13
#define EINVAL     22
#define ENOSYS     40
#define EILSEQ     42
#define EPERM      1
#define EINTR      4
#define EIO        5
#define ENOSPC     28
#define ERANGE     34
#define EBUSY      16
#define ENODEV     19
#define EMFILE     24
#define EOPNOTSUPP 130
