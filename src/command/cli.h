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

/* A lua_CFunction: push the table `host`. */
int cli_open_words(lua_State *L);
/* The function `editor` of `host` (editor.c). editor(complete [, path]) returns read(prompt),
** which returns a line, or nil at the end. It returns nothing if this machine has no library that
** edits lines. complete(line up to the cursor) returns a list of candidates. The history is kept in
** the file at `path`. */
int cli_editor(lua_State *L);
/* Let `require` find only what is in package.preload and the files of lua/command and
** lua/pictures. */
void cli_open_files(lua_State *L);

/* If the launcher ends the job, print on ranks 0 and 1 what the rank was `in`, such as "materialize
** train". NULL: print nothing, because all is done or an error was printed. The text must stay
** valid. This function and the next do nothing if no known launcher started the process. guard.c */
void cli_guard(const char *in);
/* Unless cli_guard_end is called within `seconds`, print "after N seconds <what>: ..." and exit
** with status 4. If MPI ends the process by exit before that call, print who started it. */
void cli_guard_alarm(double seconds, const char *what);
void cli_guard_end(void);

/* Show progress (progress.c): what is being done, and for how long. It appears on the last line of
** the terminal after the first second, until the end. Do nothing on a rank other than 0, or if
** stderr is not a terminal. A second call before the end changes the text and keeps the time. */
void cli_progress(const char *what);
/* Add to the number of written bytes, which the progress shows. */
void cli_progress_wrote(size_t bytes);
/* End the progress. Call this before anything is printed. */
void cli_progress_end(void);

/* Refuse an output if it, or OUTPUT.part (base/files.h), is the input or a folder that contains the
** input. `tree`: if the input is a folder, also refuse an output in it. apart.c */
mgrid_status cli_apart(const char *output, const char *input, bool tree, mgrid_error *err);

/* Append to `words` the limits of the system for this process; without `all`, only those that are
** too low for `ranks` ranks. Return whether all limits are high enough. limits.c */
bool cli_limits(int64_t ranks, bool all, mgrid_text *words);

#endif
