/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_LINK_MPI_H
#define RANKS_LINK_MPI_H

#include "link.h"

/* One rank in this process, the others in other processes. Precondition: MPI is initialised. */
Link link_open_mpi(void);

#endif
