/* SPDX-License-Identifier: MIT
**
** syntax.c - hints for recipes that Lua's parser refuses: habits from Python and C, and the block that lacks its `end`.
** The text is split into tokens again, up to the one that the parser names.
*/
#include "recipe/prelude.h"

#include <stdlib.h>
#include <string.h>

typedef struct token {
  const char *at;
  size_t      len;
  int         line, indent; /* indent: of its line */
  bool        first;        /* of its line */
  bool        waits;        /* for its `do` */
} token;

static bool is(const token *t, const char *text) { return t->len == strlen(text) && memcmp(t->at, text, t->len) == 0; }

/* ------------------------------------------------------------------ tokens */

typedef struct scan {
  const char *at, *end, *start; /* start: of the line */
  int         line, indent;
  bool        fresh; /* no token of this line yet */
} scan;

static void skip(scan *s, size_t n) {
  for (; n > 0 && s->at < s->end; n--)
    if (*s->at++ == '\n') s->line++, s->start = s->at, s->fresh = true;
}

/* Return the length of [[...]], [=[...]=] at the scan; 0: there is none. */
static size_t long_bracket(const scan *s) {
  const char *p = s->at + 1;
  while (p < s->end && *p == '=') p++;
  if (s->at >= s->end || *s->at != '[' || p >= s->end || *p != '[') return 0;
  const size_t level = (size_t)(p - s->at) - 1;
  for (; p < s->end; p++) {
    size_t n = 0;
    while (*p == ']' && p + 1 + n < s->end && p[1 + n] == '=') n++;
    if (*p == ']' && n == level && p + 1 + n < s->end && p[1 + n] == ']') return (size_t)(p + n + 2 - s->at);
  }
  return (size_t)(s->end - s->at);
}

/* Of names and numbers. */
static bool in_word(char c) { return mgrid_is_letter(c) || mgrid_is_digit(c) || c == '_'; }

static void skip_blanks(scan *s) {
  for (;;) {
    while (s->at < s->end && mgrid_is_space(*s->at)) skip(s, 1);
    if (s->end - s->at < 2 || s->at[0] != '-' || s->at[1] != '-') return;
    skip(s, 2);
    size_t n = long_bracket(s);
    if (!n)
      while (s->at + n < s->end && s->at[n] != '\n') n++;
    skip(s, n);
  }
}

static size_t quoted(const scan *s) {
  const char *p = s->at + 1;
  while (p < s->end && *p != *s->at && *p != '\n') p += 1 + (*p == '\\' && p + 1 < s->end);
  return (size_t)((p < s->end ? p + 1 : s->end) - s->at);
}

static size_t length_of(const scan *s) {
  static const char *const operators[] = { "...", "..", "==", "~=", "<=", ">=", "//", "::", "<<", ">>" };
  const char              *p = s->at;
  if (*p == '"' || *p == '\'') return quoted(s);
  if (in_word(*p)) {
    while (p < s->end && (in_word(*p) || (*p == '.' && mgrid_is_digit(*s->at)))) p++;
    return (size_t)(p - s->at);
  }
  size_t n = long_bracket(s);
  for (size_t i = 0; i < sizeof operators / sizeof *operators && !n; i++)
    if ((size_t)(s->end - p) >= strlen(operators[i]) && memcmp(p, operators[i], strlen(operators[i])) == 0)
      n = strlen(operators[i]);
  return n ? n : 1;
}

static bool next_token(scan *s, token *t) {
  skip_blanks(s);
  if (s->at >= s->end) return false;
  if (s->fresh) s->indent = (int)(s->at - s->start);
  *t = (token){ s->at, length_of(s), s->line, s->indent, s->fresh, false };
  s->fresh = false;
  skip(s, t->len);
  return true;
}

void mgrid_syntax_words(const char *text, size_t len, void (*each)(void *ud, const char *word, size_t len), void *ud) {
  scan  s = { text, text + len, text, 1, 0, true };
  token t;
  while (next_token(&s, &t))
    if (in_word(*t.at)) each(ud, t.at, t.len);
}

/* ------------------------------------------------------------------- blocks */

enum { DEEPEST = 256 }; /* the parser's own limit is 200 */

/* The text before the token that the parser names. */
typedef struct place {
  const char *at;            /* the token, in the text */
  token       before[4];     /* the tokens before it, the last one first */
  token       first;         /* of the last line with one */
  token       colon;         /* the first of the line with the last colon */
  token       open[DEEPEST]; /* words and brackets that are not closed yet */
  int         nopen;
  token       lacking; /* a block that an `end` of less indentation closed */
  int         else_if; /* the line of the last `else if` */
  int         slashes; /* the line of the last // */
} place;

static bool opens_block(const token *t) {
  return is(t, "function") || is(t, "if") || is(t, "do") || is(t, "repeat") || is(t, "for") || is(t, "while");
}

static bool opens(const token *t) { return opens_block(t) || (t->len == 1 && strchr("({[", *t->at)); }

static bool closes(const token *t) { return is(t, "end") || is(t, "until") || (t->len == 1 && strchr(")}]", *t->at)); }

static void keep_track(place *p, const token *t) {
  token *top = p->nopen ? &p->open[p->nopen - 1] : NULL;
  if (is(t, "if") && is(&p->before[0], "else") && p->before[0].line == t->line) p->else_if = t->line;
  if (is(t, ":")) p->colon = p->first;
  if (is(t, "do") && top && top->waits) {
    top->waits = false;
  } else if (opens(t)) {
    if (p->nopen == DEEPEST) return;
    p->open[p->nopen] = *t;
    p->open[p->nopen++].waits = is(t, "for") || is(t, "while");
  } else if (closes(t) && top) {
    bool shallow = is(t, "end") && t->first && t->line > top->line && t->indent < top->indent;
    if (shallow && !p->lacking.len) p->lacking = *top;
    p->nopen--;
  }
  memmove(p->before + 1, p->before, sizeof p->before - sizeof *p->before);
  p->before[0] = *t;
}

/* Read up to the nth token `near` of the line. False, after reading to the end of the line: there is none. */
static bool find_place(place *p, const char *text, size_t len, int nth, const token *near) {
  scan  s = { text, text + len, text, 1, 0, true };
  token t;
  *p = (place){ .at = text + len };
  while (next_token(&s, &t) && t.line <= near->line) {
    if (t.first) p->first = t;
    p->at = t.at;
    if (t.line == near->line && t.len == near->len && memcmp(t.at, near->at, t.len) == 0 && nth-- == 0) return true;
    if (is(&t, "//")) p->slashes = t.line;
    keep_track(p, &t);
  }
  return false;
}

/* Return the first word of the line that ends with a colon before the place, or at it; an empty token: no line does. A
** name that starts the next line looks like a method, as in `else:` and t.a = ... */
static token before_colon(const place *p, const token *near) {
  const token none = { 0 }, *b = p->before;
  if (is(near, ":")) return p->first;
  bool ends_line = is(&b[0], ":") && b[0].line < near->line, method = is(&b[1], ":") && b[1].line < b[0].line;
  return ends_line || method ? p->colon : none;
}

/* -------------------------------------------------------------------- hints */

typedef struct habit {
  const char *said;   /* part of the message */
  const char *near;   /* the token that it names */
  const char *before; /* the one before that */
  const char *colon;  /* the first word of the line that ends with a colon there */
  const char *hint;
} habit;

#define COMMENT   "-- begins a comment"
#define LIST      "a list is { 1, 2 }"
#define FILLED    "a loop fills a list: for i = 0, n - 1 do list[#list + 1] = i end"
#define FIELD     "a field is written tp = 2, without quotes"
#define SLICE     "Lua has no slices; a loop copies a part of a list"
#define ARROW     "a function is function(x) return x end"
#define LONG_TEXT COMMENT ", and [[...]] is a text of several lines"
#define CHOICE    "a choice is c and a or b"
#define IMPORT    "recipe.import \"./x.lua\" gets functions of a file"
#define FUNCTION  "a function is local function f(x) return x end"
#define NAMED     "values by name stand in braces: f { tp = 2 }"
#define COUNT     "a loop that counts is for i = 0, n - 1 do"
#define HAS       "a topology answers t:has \"x\", a table t.x ~= nil"
#define PCALL     "pcall(f) gives false and the error"
#define ERROR     "error \"message\" raises one"
#define LOCAL     "a new name is local x = 1"

static const habit habits[] = {
  { NULL, "#", NULL, NULL, COMMENT },
  { "unexpected symbol", "//", NULL, NULL, COMMENT },
  { "syntax error", "//", NULL, NULL, "Lua has no //=: a = a // 2, and -- begins a comment" },
  { NULL, NULL, "//", NULL, COMMENT ", // divides" },
  { NULL, "*", "/", NULL, COMMENT },
  { NULL, "*", "*", NULL, "^ is the power" },
  { NULL, "&", "&", NULL, "Lua writes and" },
  { NULL, "|", "|", NULL, "Lua writes or" },
  { NULL, "!", NULL, NULL, "Lua writes ~= for !=, and the word not for !" },
  { NULL, ">", "<", NULL, "Lua writes ~=" },
  { NULL, ">", "=", NULL, ARROW },
  { NULL, ">", "-", NULL, "Lua has no types" },
  { NULL, "?", NULL, NULL, CHOICE },
  { "'then' expected", "else", NULL, NULL, CHOICE },
  { "'then' expected", NULL, "}", NULL, "a block is if x then ... end" },
  { "'do' expected", NULL, "}", NULL, "a block is for i = 0, n - 1 do ... end" },
  { "unexpected symbol", "{", ")", NULL, "a block ends with end, without braces" },
  { "'then' expected", "{", NULL, NULL, "a block is if x then ... end" },
  { "'do' expected", "{", NULL, NULL, "a block is for i = 0, n - 1 do ... end" },
  { NULL, "{", "else", NULL, "a block ends with end, without braces" },
  { NULL, "(", "for", NULL, COUNT },
  { NULL, "to", NULL, NULL, COUNT },
  { NULL, "not", NULL, NULL, HAS },
  { "'then' expected", "in", NULL, NULL, HAS },
  { NULL, "is", NULL, NULL, "== compares, also with nil" },
  { "'then' expected", "=", NULL, NULL, "== compares" },
  { "'do' expected", "=", NULL, NULL, "== compares" },
  { "unexpected symbol", "=", "==", NULL, "== compares" },
  { "syntax error", "==", NULL, NULL, "one = assigns" },
  { "syntax error", "+", NULL, NULL, "Lua has no +=: a = a + 1" },
  { "syntax error", "-", NULL, NULL, "Lua has no -=: a = a - 1" },
  { "syntax error", "*", NULL, NULL, "Lua has no *=: a = a * 2" },
  { "syntax error", "/", NULL, NULL, "Lua has no /=: a = a / 2" },
  { "syntax error", "%", NULL, NULL, "Lua has no %=: a = a % 2" },
  { "syntax error", "..", NULL, NULL, "Lua has no ..=: a = a .. \"b\"" },
  { NULL, NULL, "elif", NULL, "Lua writes elseif" },
  { NULL, NULL, "elsif", NULL, "Lua writes elseif" },
  { NULL, NULL, "def", NULL, FUNCTION },
  { NULL, NULL, "func", NULL, FUNCTION },
  { NULL, NULL, "fn", NULL, FUNCTION },
  { NULL, NULL, "lambda", NULL, ARROW },
  { NULL, NULL, "import", NULL, IMPORT },
  { NULL, NULL, "from", NULL, IMPORT },
  { NULL, NULL, "include", NULL, IMPORT },
  { NULL, NULL, "with", NULL, "Lua has no with, and a recipe opens no files" },
  { NULL, NULL, "class", NULL, "a recipe has tables and functions, no classes" },
  { NULL, NULL, "print", NULL, "a call is print(x)" },
  { NULL, NULL, "assert", NULL, "a call is assert(x, \"message\")" },
  { NULL, NULL, "raise", NULL, ERROR },
  { NULL, NULL, "throw", NULL, ERROR },
  { NULL, NULL, "del", NULL, "t.x = nil takes x out" },
  { NULL, NULL, "pass", NULL, "an empty block needs no word" },
  { NULL, NULL, "continue", NULL, "goto next goes on, with ::next:: at the end of the loop" },
  { NULL, NULL, "except", NULL, PCALL },
  { NULL, NULL, "catch", NULL, PCALL },
  { NULL, "{", "try", NULL, PCALL },
  { NULL, NULL, "var", NULL, LOCAL },
  { NULL, NULL, "let", NULL, LOCAL },
  { NULL, NULL, "const", NULL, LOCAL },
  { NULL, NULL, "int", NULL, LOCAL },
  { NULL, NULL, "auto", NULL, LOCAL },
  { NULL, NULL, "global", NULL, LOCAL },
  { NULL, NULL, "nonlocal", NULL, "a function sees the locals around it" },
  { NULL, NULL, "yield", NULL, "a function returns a table of all" },
  { NULL, NULL, "match", NULL, "if x == 1 then ... elseif x == 2 then ... end" },
  { NULL, NULL, "case", NULL, "if x == 1 then ... elseif x == 2 then ... end" },
  { NULL, NULL, "switch", NULL, "if x == 1 then ... elseif x == 2 then ... end" },
  { NULL, "@", NULL, NULL, "Lua has no decorators: f = g(f)" },
  { NULL, "\\", NULL, NULL, "a statement goes on in the next line by itself" },
  { NULL, "$", NULL, NULL, "a name stands alone, and \"a\" .. x joins texts" },
  { NULL, NULL, NULL, "if", "if x then ... end" },
  { NULL, NULL, NULL, "elif", "Lua writes elseif x then" },
  { NULL, NULL, NULL, "elseif", "elseif x then" },
  { NULL, NULL, NULL, "else", "else has no colon, and the block ends with end" },
  { NULL, NULL, NULL, "while", "while x do ... end" },
  { NULL, NULL, NULL, "for", "for i = 0, n - 1 do ... end" },
  { NULL, NULL, NULL, "def", FUNCTION },
  { NULL, NULL, NULL, "try", PCALL },
  { NULL, NULL, NULL, "except", PCALL },
  { NULL, NULL, NULL, "finally", PCALL },
  { NULL, NULL, NULL, "class", "a recipe has tables and functions, no classes" },
  { NULL, NULL, NULL, "with", "Lua has no with, and a recipe opens no files" },
  { NULL, "[", NULL, NULL, LIST },
  { "')' expected", "=", NULL, NULL, NAMED },
  { "')' expected", ",", NULL, NULL, LIST },
  { "'}' expected", "=", NULL, NULL, FIELD },
  { "')' expected", "for", NULL, NULL, FILLED },
  { "'}' expected", "for", NULL, NULL, FILLED },
  { "'(' expected", NULL, "function", NULL, "in a table write build = function(world, p, t)" },
  { "unexpected symbol", "::", NULL, NULL, SLICE },
};

static bool agrees(const char *text, const token *t) { return !text || is(t, text); }

/* Return the bracket that is open at the place; 0: none, or a block inside it is open. */
static char bracket(const place *p) {
  const token *top = p->nopen ? &p->open[p->nopen - 1] : NULL;
  return top && !opens_block(top) ? *top->at : '\0';
}

/* Return whether the line continues with " for ", as in [f(x) for x in list]. */
static bool comprehends(const char *at, const char *end) {
  while (end - at > 5 && *at != '\n' && strncmp(at, " for ", 5) != 0) at++;
  return end - at > 5 && *at == ' ';
}

static bool quote(const token *t) { return t->len && strchr("\"'", *t->at); }

/* Return a hint for a colon that is not a method's. */
static const char *by_colon(const place *p, const token *near) {
  const token *b = p->before;
  if (!is(near, ":") && !is(&b[0], ":") && !is(&b[1], ":")) return NULL;
  if (is(&b[1], "lambda") || is(&b[2], "lambda") || is(&b[3], "lambda")) return ARROW;
  if (bracket(p) == '{') return FIELD;
  if (bracket(p) == '[') return SLICE;
  return is(&p->first, "local") ? "Lua has no types" : NULL;
}

static const char *by_habit(const place *p, const char *said, const token *near, const char *end) {
  const token colon = before_colon(p, near);
  if (is(near, "[") && comprehends(p->at, end)) return FILLED;
  for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
    const habit *h = &habits[i];
    if ((!h->said || strstr(said, h->said)) && agrees(h->near, near) && agrees(h->before, &p->before[0])
        && agrees(h->colon, &colon))
      return h->hint;
  }
  const char *hint = by_colon(p, near);
  if (hint) return hint;
  if (is(&p->first, "elif")) return "Lua writes elseif";
  if (strstr(said, "malformed number"))
    return memchr(near->at, '.', near->len) ? COUNT : "digits stand side by side: 1000";
  if (strstr(said, "unfinished string") && (p->slashes == near->line || is(&p->before[0], "#"))) return COMMENT;
  if (p->slashes && p->slashes == p->before[0].line && strstr(said, "syntax error")) return COMMENT ", // divides";
  if (strstr(said, "syntax error") && is(&p->first, "print")) return "a call is print(x)";
  if (is(near, "=") && strncmp(p->at, "=>", 2) == 0) return ARROW;
  if (!quote(near) && !quote(&p->before[0])) return NULL;
  if (is(near, ".") || is(near, ":"))
    return "a method of a text is (\"a\"):upper(), and table.concat(list, \", \") joins texts";
  if (near->len == 2 || is(&p->before[0], "\"\"")) return LONG_TEXT;
  return quote(near) && quote(&p->before[0]) && strstr(said, "unexpected symbol") ? "texts join with .." : NULL;
}

/* Return whether the token starts or continues a statement or a value, where Lua expects the end of something. */
static bool goes_on(const token *t, bool in_list) {
  static const char *const ends[] = { "end", "else", "elseif", "until" };
  static const char *const statements[] = { "return", "local", "if", "for", "while", "repeat", "do", "in", "then" };
  bool                     on = t->len && in_word(*t->at);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) on &= !is(t, ends[i]);
  for (size_t i = 0; i < sizeof statements / sizeof *statements && in_list; i++) on &= !is(t, statements[i]);
  return on || (in_list && (quote(t) || is(t, "{")));
}

/* Return the block that lacks its end: the one that the `end` of an outer block closed, else the innermost open one. */
static const token *lacking(const place *p, const char *said, const token *near) {
  bool stops = near->len == 1 && strchr(")},", *near->at);
  if (!strstr(said, "'end' expected") && !(stops && strstr(said, "unexpected symbol"))) return NULL;
  if (p->lacking.len) return &p->lacking;
  for (int i = p->nopen - 1; i >= 0 && !(stops && p->open[p->nopen - 1].len == 1); i--)
    if (opens_block(&p->open[i])) return &p->open[i];
  return NULL;
}

static void hint_of_block(const place *p, const char *said, const token *near, char *hint, size_t room) {
  const token *b = lacking(p, said, near);
  char         told[64];
  if (b && (is(b, "if") || !p->lacking.len) && p->else_if >= b->line) {
    snprintf(hint, room, "; the else if of line %d opens a block of its own; Lua writes elseif", p->else_if);
  } else if (goes_on(near, false) && (strstr(said, "'end' expected") || strstr(said, "<eof> expected"))) {
    snprintf(hint, room, "; return is the last statement of a block");
  } else if (b) {
    snprintf(told, sizeof told, "(to close '%.*s' at line %d)", (int)b->len, b->at, b->line);
    if (!strstr(said, told)) snprintf(hint, room, "; the '%.*s' of line %d lacks its end", (int)b->len, b->at, b->line);
  } else if (goes_on(near, true) && (strstr(said, "')' expected") || strstr(said, "'}' expected"))) {
    snprintf(hint, room, "; a comma may be missing before it");
  } else if (is(near, "end") && (strstr(said, "<eof> expected") || strstr(said, "'}' expected"))) {
    snprintf(hint, room, "; this end closes no block");
  }
}

/* Return the line in "FILE:LINE: ... near 'TOKEN'". */
static int line_of(const char *message) {
  for (const char *at = message; (at = strchr(at, ':')); at++) {
    char *end;
    long  line = strtol(at + 1, &end, 10);
    if (end > at + 1 && strncmp(end, ": ", 2) == 0) return (int)line;
  }
  return 0;
}

void mgrid_syntax_hint(const char *message, const char *text, size_t len, char *hint, size_t room) {
  enum { MOST = 16 };
  const char *near = NULL;
  for (const char *at = message; (at = strstr(at, " near ")); at++) near = at + strlen(" near ");
  const int line = line_of(message);
  *hint = '\0';
  if (!near || !line) return;
  const bool  quotes = *near == '\'' && strlen(near) > 2; /* <eof> has none */
  const token t = { .at = quotes ? near + 1 : near, .len = quotes ? strlen(near) - 2 : 0, .line = line };
  place       p;
  const char *said;
  bool        more = true;
  for (int nth = 0; more && nth < MOST && !*hint; nth++) { /* the parser does not say which of several equal tokens */
    more = find_place(&p, text, len, nth, &t);
    if ((more || nth == 0) && (said = by_habit(&p, message, &t, text + len))) snprintf(hint, room, "; %s", said);
  }
  more = true;
  for (int nth = 0; more && nth < MOST && !*hint; nth++) {
    more = find_place(&p, text, len, nth, &t);
    if (more || nth == 0) hint_of_block(&p, message, &t, hint, room);
  }
}
