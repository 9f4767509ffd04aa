/* SPDX-License-Identifier: MIT
**
** cli.h - what is C in the command: the words that its Lua (lua/command) asks for, `require
** "host"`, and what they are made of.
*/
#ifndef MGRID_COMMAND_WORDS_H
#define MGRID_COMMAND_WORDS_H

#include "recipe/bundle.h"

#include "base/base.h"
#include "moongrid.h"

/* The files of lua/command, the charts of a step, and as text alone what `init` writes; a NULL name
** at the end. Made by scripts/make/embed.lua. */
extern const mgrid_chunk cli_files[];

/* A lua_CFunction: push the table of words. */
int cli_open_words(lua_State *L);
/* A word of its own file, editor.c. editor(complete [, path]) -> read(prompt) -> line | nil;
** nothing: no library is here that edits lines. complete(line up to the cursor) returns a list of
** words; the history is in the file. */
int cli_editor(lua_State *L);
/* Let `require` find the files of lua/command, and nothing else. */
void cli_open_files(lua_State *L);

/* On a rank of a launcher: if the launcher ends the job, print what the rank is `in`. NULL: print
** nothing, because an error was printed. The text must stay valid. guard.c */
void cli_guard(const char *in);
/* Until cli_guard_end: after `seconds` print "after N seconds <what>: ..." and exit with status 4.
** If MPI ends the process by exit, print who started it. */
void cli_guard_alarm(double seconds, const char *what);
void cli_guard_end(void);

/* Show progress, in progress.c: after the first second, until the end, show on the last line of the
** terminal what is being done and for how long. Does nothing if stderr is not a terminal. A second
** call before the end changes the text and keeps the time. */
void cli_progress(const char *what);
/* Add to the bytes written, which are shown. */
void cli_progress_wrote(size_t bytes);
/* End it before anything is printed. */
void cli_progress_end(void);

/* Refuse an output that would replace an input, or have it in OUTPUT.part, where it is made
** (base/files.h). `tree`: nothing is to be written into the input either, if it is a folder.
** apart.c */
mgrid_status cli_apart(const char *output, const char *input, bool tree, mgrid_error *err);

/* Append the limits of the system for this process: all, or those too low for so many ranks. Return
** whether all are enough. limits.c */
bool cli_limits(int64_t ranks, bool all, mgrid_text *words);

#endif
