/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "font.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 256 };

#if KEEP_TTF

#include <SDL2/SDL_ttf.h>

/* --------------------------------------------------------------------------------------------- letters */

/* Each letter is rendered once for each size in pixels, into one texture. When the texture or the table is full, all
 * letters are dropped. */
enum { SHEET = 1024, LETTERS_MAX = 1024, FIRST_LETTER = ' ', LAST_LETTER = '~' };

static const float em_per_capital = 1 / 0.7f; /* of Jost */

typedef struct Letter {
    int em; /* size in pixels; 0: free */
    int code;
    int advance;
    int top;       /* distance of the upper edge of capital letters from that of the picture */
    SDL_Rect part; /* of the texture */
} Letter;

struct Font {
    TTF_Font *face;
    SDL_Texture *sheet;
    int em;                             /* current size of the face, in pixels */
    int shelf_x, shelf_y, shelf_height; /* free place in the texture */
    int letter_count;
    Letter letters[LETTERS_MAX]; /* hash table */
};

void font_open(Canvas *canvas)
{
    struct Font *font = SDL_calloc(1, sizeof *font);
    canvas->font = NULL;
    if (font == NULL || TTF_Init() != 0) {
        SDL_free(font);
        return;
    }
    font->face = TTF_OpenFont(KEEP_FONT, 16);
    font->sheet = SDL_CreateTexture(canvas->renderer, SDL_PIXELFORMAT_ARGB8888, SDL_TEXTUREACCESS_STATIC,
                                    SHEET, SHEET);
    canvas->font = font;
    if (font->face == NULL || font->sheet == NULL) font_close(canvas);
}

void font_close(Canvas *canvas)
{
    struct Font *font = canvas->font;
    if (font == NULL) return;
    SDL_DestroyTexture(font->sheet);
    TTF_CloseFont(font->face);
    TTF_Quit();
    SDL_free(font);
    canvas->font = NULL;
}

static void drop_letters(Canvas *canvas, struct Font *font)
{
    canvas_flush(canvas);
    SDL_memset(font->letters, 0, sizeof font->letters);
    font->letter_count = font->shelf_x = font->shelf_y = font->shelf_height = 0;
}

/* Places a letter in the texture. A letter that is larger than the texture stays empty. */
static void place_letter(Canvas *canvas, struct Font *font, Letter *letter, SDL_Surface *picture)
{
    if (font->shelf_x + picture->w + 1 > SHEET) {
        font->shelf_x = 0;
        font->shelf_y += font->shelf_height + 1;
        font->shelf_height = 0;
    }
    if (font->shelf_y + picture->h > SHEET) drop_letters(canvas, font);
    if (picture->w >= SHEET || picture->h > SHEET) return;
    letter->part = (SDL_Rect){font->shelf_x, font->shelf_y, picture->w, picture->h};
    SDL_UpdateTexture(font->sheet, &letter->part, picture->pixels, picture->pitch);
    font->shelf_x += picture->w + 1;
    font->shelf_height = SDL_max(font->shelf_height, picture->h);
}

static Letter letter_of(Canvas *canvas, struct Font *font, int em, int code)
{
    if (code < FIRST_LETTER || code > LAST_LETTER) code = '?';
    if (font->letter_count > LETTERS_MAX * 3 / 4) drop_letters(canvas, font);
    unsigned at = (unsigned)(em * 97 + code) % LETTERS_MAX;
    while (font->letters[at].em != 0 && (font->letters[at].em != em || font->letters[at].code != code))
        at = (at + 1) % LETTERS_MAX;
    if (font->letters[at].em != 0) return font->letters[at];
    if (font->em != em) TTF_SetFontSize(font->face, font->em = em);
    Letter letter = {.em = em,
                     .code = code,
                     .top = TTF_FontAscent(font->face) - (int)lroundf((float)em / em_per_capital)};
    TTF_GlyphMetrics(font->face, (Uint16)code, NULL, NULL, NULL, NULL, &letter.advance);
    SDL_Surface *picture =
        TTF_RenderGlyph_Blended(font->face, (Uint16)code, (SDL_Color){255, 255, 255, 255});
    if (picture != NULL) place_letter(canvas, font, &letter, picture);
    SDL_FreeSurface(picture);
    font->letters[at] = letter;
    font->letter_count++;
    return letter;
}

static float letters_width(Canvas *canvas, float size, const char *text)
{
    const int em = SDL_max(1, (int)lroundf(size * canvas->frame.scale * em_per_capital));
    float width = 0;
    for (; *text != '\0'; text++)
        width += (float)letter_of(canvas, canvas->font, em, (unsigned char)*text).advance;
    return width / canvas->frame.scale;
}

/* Draws letters at whole pixels, at which they are as sharp as they were rendered. */
static void draw_letters(Canvas *canvas, float x, float y, float size, uint32_t color, const char *text)
{
    struct Font *font = canvas->font;
    const Frame frame = canvas->frame;
    const int em = SDL_max(1, (int)lroundf(size * frame.scale * em_per_capital));
    float left = roundf(frame.left + x * frame.scale);
    for (; *text != '\0'; text++) {
        const Letter letter = letter_of(canvas, font, em, (unsigned char)*text);
        const SDL_FRect part = {(float)letter.part.x / SHEET, (float)letter.part.y / SHEET,
                                (float)letter.part.w / SHEET, (float)letter.part.h / SHEET};
        const SDL_FRect pixels = {left, roundf(frame.top + y * frame.scale) - (float)letter.top,
                                  (float)letter.part.w, (float)letter.part.h};
        if (*text != ' ') canvas_glyph(canvas, font->sheet, part, pixels, color);
        left += (float)letter.advance;
    }
}

#else

void font_open(Canvas *canvas)
{
    (void)canvas;
}

void font_close(Canvas *canvas)
{
    (void)canvas;
}

#endif

/* --------------------------------------------------------------------------------------------- strokes */

enum { ROUND_PIXELS = 6 }; /* lines of at least that width have round ends */

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

static void draw_strokes(Canvas *canvas, float x, float y, float size, uint32_t color, const char *text)
{
    const float unit = size / 6, width = fmaxf(size * 0.2f, 2 / canvas->frame.scale);
    for (; *text != '\0'; text++, x += advance * unit) {
        const char *strokes = glyphs[toupper((unsigned char)*text) & 127];
        if (strokes != NULL) draw_glyph(canvas, strokes, x, y, unit, width, color);
    }
}

/* ------------------------------------------------------------------------------------------------ text */

float font_width(Canvas *canvas, float size, const char *text)
{
#if KEEP_TTF
    if (canvas->font != NULL) return letters_width(canvas, size, text);
#endif
    (void)canvas;
    return size / 6 * (advance * (float)strlen(text) - 2);
}

void font_draw(Canvas *canvas, float x, float y, float size, Align align, uint32_t color, const char *text)
{
    const float width = align == ALIGN_LEFT ? 0 : font_width(canvas, size, text);
    x -= align == ALIGN_CENTER ? width / 2 : width;
#if KEEP_TTF
    if (canvas->font != NULL) {
        draw_letters(canvas, x, y, size, color, text);
        return;
    }
#endif
    draw_strokes(canvas, x, y, size, color, text);
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
