/* SPDX-License-Identifier: MIT
**
** cli.h - the C part of the command: the functions that its Lua (lua/command) gets by `require
** "host"`.
*/
#ifndef MGRID_COMMAND_CLI_H
#define MGRID_COMMAND_CLI_H

#include "recipe/bundle.h"

#include "base/base.h"
#include "moongrid.h"

/* The Lua files of lua/command, those that draw a step, and the texts that `init` writes. The last
** name is NULL. scripts/make/embed.lua makes this list. */
extern const mgrid_chunk cli_files[];

/* A lua_CFunction: push the table of these functions. */
int cli_open_words(lua_State *L);
/* The function `editor` of that table (editor.c). editor(complete [, path]) returns read(prompt),
** which returns a line, or nil at the end. It returns nothing if this machine has no library that
** edits lines. complete(line up to the cursor) returns a list of candidates. The history is kept in
** the file at `path`. */
int cli_editor(lua_State *L);
/* Let `require` find the files of lua/command, and nothing else. */
void cli_open_files(lua_State *L);

/* If the launcher ends the job, print what the rank was `in`, such as "materialize train". NULL:
** print nothing, because an error was printed. The text must stay valid. guard.c */
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

/* Refuse an output if it, or OUTPUT.part (base/files.h), is the input or a folder that contains the
** input. `tree`: if the input is a folder, also refuse an output in it. apart.c */
mgrid_status cli_apart(const char *output, const char *input, bool tree, mgrid_error *err);

/* Append the limits of the system for this process; without `all`, only those that are too low for
** `ranks` ranks. Return whether all limits are high enough. limits.c */
bool cli_limits(int64_t ranks, bool all, mgrid_text *words);

#endif
