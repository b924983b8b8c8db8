/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the test headers_msvc. */
#pragma once
double fabs(double x);
double fmod(double x, double y);
double floor(double x);
double nearbyint(double x);
double sqrt(double x);
