/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "font.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 256, ROUND_PIXELS = 6 }; /* lines of at least that width have round ends */

static const float advance = 6; /* distance between letters; a letter is 4 wide and 6 high */

/* Strokes, separated by spaces: each is a line through points, with two digits for x and y of each. */
static const char *const glyphs[128] = {
    ['A'] = "0602204246 0444",
    ['B'] = "0333444536060030414233",
    ['C'] = "4130100105163645",
    ['D'] = "00304145360600",
    ['E'] = "40000646 0333",
    ['F'] = "400006 0333",
    ['G'] = "41301001051636454323",
    ['H'] = "0006 4046 0343",
    ['I'] = "1030 2026 1636",
    ['J'] = "4045361605",
    ['K'] = "0006 400346",
    ['L'] = "000646",
    ['M'] = "0600234046",
    ['N'] = "06004640",
    ['O'] = "103041453616050110",
    ['P'] = "06003041423303",
    ['Q'] = "103041453616050110 2446",
    ['R'] = "06003041423303 2346",
    ['S'] = "413010010213334445361605",
    ['T'] = "0040 2026",
    ['U'] = "000516364540",
    ['V'] = "002640",
    ['W'] = "0016233640",
    ['X'] = "0046 4006",
    ['Y'] = "002340 2326",
    ['Z'] = "00400646",
    ['0'] = "103041453616050110",
    ['1'] = "112026 1636",
    ['2'] = "01103041420646",
    ['3'] = "0110304142334445361605 1333",
    ['4'] = "36300444",
    ['5'] = "400003334445361605",
    ['6'] = "41301001051636454433 0333",
    ['7'] = "004016",
    ['8'] = "13020110304142331304051636454433",
    ['9'] = "4313020110304145361605",
    ['.'] = "2526",
    [','] = "2517",
    [':'] = "2122 2526",
    ['-'] = "1333",
    ['+'] = "1333 2224",
    ['/'] = "0640",
    ['%'] = "0640 1011 3536",
    ['('] = "30212536",
    [')'] = "10212516",
    ['\''] = "2021",
    ['!'] = "2024 2526",
    ['*'] = "1135 3115",
    ['_'] = "0646",
    ['='] = "1232 1434",
    ['?'] = "01103041422324 2526",
};

static void draw_stroke(Canvas *canvas, float x0, float y0, float x1, float y1, float width, uint32_t color)
{
    if (width * canvas->frame.scale < ROUND_PIXELS)
        canvas_line(canvas, x0, y0, x1, y1, width, color);
    else
        canvas_stroke(canvas, x0, y0, x1, y1, width, color);
}

static void draw_glyph(Canvas *canvas, const char *strokes, float x, float y, float unit, float width,
                       uint32_t color)
{
    for (; strokes[0] != '\0' && strokes[1] != '\0'; strokes++) {
        if (strokes[0] == ' ') continue;
        if (strokes[2] != '\0' && strokes[2] != ' ')
            draw_stroke(canvas, x + (float)(strokes[0] - '0') * unit, y + (float)(strokes[1] - '0') * unit,
                        x + (float)(strokes[2] - '0') * unit, y + (float)(strokes[3] - '0') * unit, width,
                        color);
        strokes++;
    }
}

void font_draw(Canvas *canvas, float x, float y, float size, Align align, uint32_t color, const char *text)
{
    const float unit = size / 6, whole = unit * (advance * (float)strlen(text) - 2);
    const float width = fmaxf(size * 0.2f, 2 / canvas->frame.scale);
    x -= align == ALIGN_LEFT ? 0 : align == ALIGN_CENTER ? whole / 2 : whole;
    for (; *text != '\0'; text++, x += advance * unit) {
        const char *strokes = glyphs[toupper((unsigned char)*text) & 127];
        if (strokes != NULL) draw_glyph(canvas, strokes, x, y, unit, width, color);
    }
}

void font_print(Canvas *canvas, float x, float y, float size, Align align, uint32_t color,
                const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    font_draw(canvas, x, y, size, align, color, text);
}
