/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A main function for fuzz targets without libFuzzer. TARGET FILE... tests each file unchanged,
 * truncated at each byte (small files only), and with some bytes changed. */

#include "tests/fuzz/fuzz.h"

enum { MOST_BYTES = 1 << 20, SMALL_BYTES = 2048, CHANGES = 60 };

static void play_changed(uint8_t *bytes, size_t size)
{
    uint64_t state = 88172645463325252ull;
    for (uint32_t i = 0; i < CHANGES && size > 0; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const size_t at = (size_t)(state >> 8) % size;
        const uint8_t old = bytes[at];
        bytes[at] ^= (uint8_t)(1u << (state & 7));
        LLVMFuzzerTestOneInput(bytes, size);
        if (state >> 63 != 0) bytes[at] = old; /* some changes are kept and combined with later ones */
    }
}

static bool play_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(MOST_BYTES);
    const bool is_good = file != NULL && bytes != NULL;
    const size_t size = is_good ? fread(bytes, 1, MOST_BYTES, file) : 0;
    if (file != NULL) fclose(file);
    if (!is_good) fprintf(stderr, "%s cannot be read\n", path);
    if (is_good) LLVMFuzzerTestOneInput(bytes, size);
    for (size_t cut = 0; is_good && cut < size && size <= SMALL_BYTES; cut += 31)
        LLVMFuzzerTestOneInput(bytes, cut);
    if (is_good) play_changed(bytes, size);
    free(bytes);
    return is_good;
}

int main(int argc, char **argv)
{
    bool is_good = true;
    for (int i = 1; i < argc; i++)
        is_good &= play_file(argv[i]);
    printf("%d files\n", argc - 1);
    return is_good && argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
