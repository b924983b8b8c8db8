/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the tests headers_msvc and sources_msvc. */
#pragma once
double fabs(double x);
double fmod(double x, double y);
double floor(double x);
double ceil(double x);
double nearbyint(double x);
double sqrt(double x);
float fabsf(float x);
float sqrtf(float x);
float floorf(float x);
float fminf(float x, float y);
float fmaxf(float x, float y);
double ldexp(double x, int exponent);
double fmin(double a, double b);
double fmax(double a, double b);
double atan2(double y, double x);
float nextafterf(float x, float to);
#define isfinite(x) __builtin_isfinite(x)
#define isnan(x)    __builtin_isnan(x)
#define isinf(x)    __builtin_isinf(x)
#define signbit(x)  __builtin_signbit(x)
#define HUGE_VAL    __builtin_huge_val()
#define INFINITY    __builtin_inff()
#define NAN         __builtin_nanf("")
