#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_names.sh reports each kind of duplicate in small trees, and accepts equal names that are no duplicates.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# expect VERDICT WORDS: the expected output of the script for the tree
expect()
{
    verdict=good
    said=$("$here/check_names.sh" "$tree") || verdict=bad
    if [ "$verdict" != "$1" ] || ! printf '%s\n' "$said" | grep -qF -- "$2"; then
        echo "expected $1 and '$2', got $verdict and '$said'" >&2
        exit 1
    fi
}

# twice FIRST SECOND WORDS: two files that define one name
twice()
{
    printf '%s\n' "$1" >"$tree/core/base/first.h"
    printf '\n%s\n' "$2" >"$tree/sched/jobs/second.c"
    expect bad "sched/jobs/second.c:$3 is defined at core/base/first.h:1, too"
}

expect bad "no sources found"
mkdir -p "$tree/include/quern" "$tree/core/base" "$tree/sched/jobs" "$tree/kit"

: >"$tree/core/base/base.h"
: >"$tree/include/quern/base.h"
expect bad "include/quern/base.h: core/base/base.h has the same file name"
rm "$tree/include/quern/base.h"
expect good ""

twice 'struct part { int a; };' 'typedef struct part { int b; } part;' '2: struct part'
twice 'typedef struct { int a; } part;' 'union part { int b; };' '2: union part'
twice 'typedef int part[4];' 'typedef void (*part)(int a);' '2: typedef part'
twice 'typedef ARRAY(int) part;' 'typedef int part(const char *text, int (*call)(void));' '2: typedef part'
twice 'enum part { A };' 'typedef enum part { B } part;' '2: enum part'
twice 'enum { A = 1, PART };' 'enum { B = (1, 2), C = sizeof(int), PART = 3 };' '2: enumerator PART'
twice 'typedef enum kind { A, PART } kind;' 'static void f(void) { enum { PART }; }' '2: enumerator PART'
twice 'enum { PART };' 'enum { LIST(A, B) PART };' '2: enumerator PART'
twice '#define PART 1' '#define PART(a) a' '2: macro PART'
twice '#define PART 1' 'enum { PART };' '2: enumerator PART'

# One type under a tag and a typedef, declarations, alternatives of a macro, uses, functions, comments and text.
cat >"$tree/core/base/first.h" <<'C'
typedef struct part part;
typedef struct part {
    enum kind { A, B = 2 } kind;
    struct { int a; } inner;
} part;
#if defined(FIRST)
#define SIZE 1
#else
#define SIZE 2
#endif
static void run(void) {}
C
cat >"$tree/sched/jobs/second.c" <<'C'
typedef struct part part; /* struct part { int a; }; */
struct part;
static struct part make(void) { return (struct part){0}; }
static void run(const struct part *it) { use("struct part {", '{', sizeof(struct part), it); }
/* enum { A };
   #define SIZE 3 */
#define LONG(a) \
    enum { A }
int after = SIZE;
#define ROWS(ROW) ROW(A) ROW(B)
enum { ROWS(FIRST) COUNT };
enum { ROWS(SECOND) END = 0 };
C
expect good ""
