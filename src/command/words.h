/* SPDX-License-Identifier: MIT
**
** words.h - what the Lua of the command (lua/command) asks of C: `require "host"`.
*/
#ifndef MGRID_COMMAND_WORDS_H
#define MGRID_COMMAND_WORDS_H

#include "recipe/bundle.h"

/* The files of lua/command; a NULL name at the end. Made by scripts/embed.lua. */
extern const mgrid_chunk cli_lua[];

/* A lua_CFunction: push the table of words. */
int cli_open_words(lua_State *L);
/* A word of its own file, editor.c. editor(complete [, path]) -> read(prompt) -> line | nil; nothing: no library is here that
** edits lines. complete(line up to the cursor) returns a list of words; the history is in the file. */
int cli_editor(lua_State *L);
/* The state in which cli_tell runs. tell.c */
void cli_tell_by(lua_State *L);
/* Let `require` find the files of lua/command, and nothing else. */
void cli_open_files(lua_State *L);

#endif
