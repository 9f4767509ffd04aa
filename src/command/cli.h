/* SPDX-License-Identifier: MIT
**
** cli.h - the C part of the command: the words that its Lua (lua/command) gets by `require "host"`,
** and the functions behind them.
*/
#ifndef MGRID_COMMAND_WORDS_H
#define MGRID_COMMAND_WORDS_H

#include "recipe/bundle.h"

#include "base/base.h"
#include "moongrid.h"

/* The files of lua/command and the charts of a step, and as text what `init` writes. The last name
** is NULL. scripts/make/embed.lua makes this list. */
extern const mgrid_chunk cli_files[];

/* A lua_CFunction: push the table of words. */
int cli_open_words(lua_State *L);
/* A word in a file of its own, editor.c. editor(complete [, path]) -> read(prompt) -> line | nil.
** It returns nothing if there is no library here that edits lines. complete(line up to the cursor)
** returns a list of words. The history is in the file at `path`. */
int cli_editor(lua_State *L);
/* Let `require` find the files of lua/command, and nothing else. */
void cli_open_files(lua_State *L);

/* If a launcher ends the job of this rank, print what the rank is `in`. NULL: print nothing,
** because an error was printed. The text must stay valid. guard.c */
void cli_guard(const char *in);
/* Until cli_guard_end, print "after N seconds <what>: ..." after `seconds`, and exit with status 4.
** If MPI ends the process by exit, print who started it. */
void cli_guard_alarm(double seconds, const char *what);
void cli_guard_end(void);

/* Show progress (progress.c): what is being done, and for how long. It appears on the last line of
** the terminal after the first second, until the end. If stderr is not a terminal, do nothing.
** A second call before the end changes the text and keeps the time. */
void cli_progress(const char *what);
/* Add to the count of bytes written, which is shown. */
void cli_progress_wrote(size_t bytes);
/* End the progress. Call this before anything is printed. */
void cli_progress_end(void);

/* Refuse an output that would replace an input, or that would be made where the input is, in
** OUTPUT.part (base/files.h). `tree`: if the input is a folder, also refuse to write into it.
** apart.c */
mgrid_status cli_apart(const char *output, const char *input, bool tree, mgrid_error *err);

/* Append the limits of the system for this process: all of them, or those that are too low for so
** many ranks. Return whether all are high enough. limits.c */
bool cli_limits(int64_t ranks, bool all, mgrid_text *words);

#endif
