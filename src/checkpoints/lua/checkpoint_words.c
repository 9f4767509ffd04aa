/* SPDX-License-Identifier: MIT
**
** checkpoint_words.c - checkpoints in Lua, for hosts: their tensors, and copies in another layout.
*/
#include "checkpoints/reshard.h"
#include "recipe/bind.h"

#define MGRID_LUA_CHECKPOINT "moongrid.Checkpoint"
#define MGRID_LUA_RESHARDING "moongrid.Resharding"

void mgrid_lua_open_checkpoint(lua_State *L);

/* --------------------------------------------------------------- checkpoint */

static void free_checkpoint(void *box) { shards_close(*(shards **)box); }

static shards *check_checkpoint(lua_State *L) {
  return *(shards **)mgrid_lua_check_box(L, 1, MGRID_LUA_CHECKPOINT);
}

/* checkpoint(path) -> Checkpoint. The path is an index, a folder with an index, or a .safetensors
** file */
static int new_checkpoint(lua_State *L) {
  const char *path = (luaL_checkstring(L, 1), mgrid_lua_name(L, 1));
  mgrid_error e = MGRID_ERROR_INIT;
  shards **box = mgrid_lua_new_box(L, sizeof *box, 0, MGRID_LUA_CHECKPOINT, free_checkpoint);
  *box = shards_open(path, &e);
  return *box ? 1 : mgrid_lua_raise_error(L, &e);
}

/* checkpoint.tensors -> { { name, type, shape }, ... }, in the order of the index */
static int checkpoint_tensors(lua_State *L) {
  const shards *s = check_checkpoint(L);
  lua_createtable(L, (int)s->n, 0);
  for (size_t k = 0; k < s->n; k++) {
    const shards_tensor *t = &s->tensor[k];
    lua_createtable(L, 0, 3);
    mgrid_lua_set_string(L, "name", t->name);
    mgrid_lua_set_string(L, "type", t->type);
    MGRID_LUA_LIST(L, t->naxes, lua_pushinteger(L, t->shape[i]));
    lua_setfield(L, -2, "shape");
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  return 1;
}

static int checkpoint_tostring(lua_State *L) {
  lua_pushfstring(L, "Checkpoint of %d tensors", (int)check_checkpoint(L)->n);
  return 1;
}

/* ----------------------------------------------------------------- resharding */

static void free_resharding(void *box) { reshard_end(*(resharding **)box); }

/* Return the string in a field of the options at 4, or NULL if there is none. The list at `kept`
** keeps the string alive, because the caller's table may change. If `length` is NULL, refuse zero
** bytes. */
static const char *checkpoint_text_of(lua_State *L, const char *name, size_t *length, int kept) {
  if (lua_getfield(L, 4, name) == LUA_TNIL) return NULL;
  if (lua_type(L, -1) != LUA_TSTRING || (!length && !mgrid_lua_is_whole(L, -1)))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "%s is not a text%s", name,
                       length ? "" : " without zero bytes");
  const char *text = lua_tolstring(L, -1, length);
  lua_rawseti(L, kept, (lua_Integer)lua_rawlen(L, kept) + 1);
  return text;
}

static bool flag_of(lua_State *L, const char *name) {
  lua_getfield(L, 4, name);
  return lua_toboolean(L, -1);
}

/* Read the options at 4. */
static void checkpoint_read_options(lua_State *L, reshard_options *o, int kept) {
  static const char *const known[] = { "convert", "empty",        "names", "names_from",
                                       "recipe",  "recipe_names", "window" };
  luaL_checktype(L, 4, LUA_TTABLE);
  mgrid_lua_check_keys(L, 4, "option of reshard", known, sizeof known / sizeof known[0], false);
  o->convert = flag_of(L, "convert"), o->empty = flag_of(L, "empty");
  o->given = checkpoint_text_of(L, "names", &o->given_length, kept);
  o->own = checkpoint_text_of(L, "recipe_names", &o->own_length, kept);
  const char *from = checkpoint_text_of(L, "names_from", NULL, kept),
             *recipe = checkpoint_text_of(L, "recipe", NULL, kept);
  if (from) o->given_from = from;
  if (recipe) o->recipe = recipe;
  if (lua_getfield(L, 4, "window") != LUA_TNIL) o->window = mgrid_lua_check_integer(L, -1);
  if (o->window < 1 << 10)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "window has 1024 bytes or more");
}

/* checkpoint:reshard(plan, folder [, { names, names_from, recipe, recipe_names, convert, empty,
** window }]) -> Resharding */
static int checkpoint_reshard(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  reshard_options o = { .given_from = "names",
                        .recipe = "the recipe",
                        .window = INT64_C(64) << 20 };
  lua_settop(L, 4);
  mgrid_lua_stack(L, 24);
  resharding **box = mgrid_lua_new_box(L, sizeof *box, 2, MGRID_LUA_RESHARDING, free_resharding);
  lua_newtable(L); /* the strings that the resharding borrows */
  o.folder = (luaL_checkstring(L, 3), mgrid_lua_name(L, 3));
  lua_pushvalue(L, 3);
  lua_rawseti(L, 6, 1);
  if (!lua_isnil(L, 4)) checkpoint_read_options(L, &o, 6);
  lua_pushvalue(L, 6);
  lua_setiuservalue(L, 5, 1);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, 5, 2);
  *box = reshard_begin(check_checkpoint(L), mgrid_lua_check_plan(L, 2), &o, &e);
  if (!*box) return mgrid_lua_raise_error(L, &e);
  lua_settop(L, 5);
  return 1;
}

static resharding *check_resharding(lua_State *L) {
  return *(resharding **)mgrid_lua_check_box(L, 1, MGRID_LUA_RESHARDING);
}

/* resharding:step() -> whether there is more to write */
static int resharding_step(lua_State *L) {
  resharding *r = check_resharding(L);
  mgrid_error e = MGRID_ERROR_INIT;
  bool more = false;
  if (r && reshard_step(r, &more, &e)) return mgrid_lua_raise_error(L, &e);
  return lua_pushboolean(L, more), 1;
}

/* resharding.progress -> { tensors, bytes, files, done, made } */
static int resharding_progress(lua_State *L) {
  const resharding *r = check_resharding(L);
  reshard_done told = r ? reshard_so_far(r) : (reshard_done){ 0 };
  lua_createtable(L, 0, 5);
  mgrid_lua_set_integer(L, "tensors", (int64_t)told.tensors);
  mgrid_lua_set_integer(L, "bytes", told.bytes);
  mgrid_lua_set_integer(L, "files", told.files);
  mgrid_lua_set_integer(L, "done", told.done);
  mgrid_lua_set_integer(L, "made", told.made);
  return 1;
}

/* End the resharding. If it is not complete, its folder is removed. */
static int resharding_close(lua_State *L) {
  resharding **box = mgrid_lua_check_box(L, 1, MGRID_LUA_RESHARDING);
  reshard_end(*box);
  *box = NULL;
  return 0;
}

static int resharding_tostring(lua_State *L) {
  const resharding *r = check_resharding(L);
  reshard_done told = r ? reshard_so_far(r) : (reshard_done){ 0 };
  lua_pushfstring(L, r ? "Resharding: %I of %I bytes" : "Resharding (ended)",
                  (LUAI_UACINT)told.done, (LUAI_UACINT)told.bytes);
  return 1;
}

static const luaL_Reg checkpoint_fields[] = { { "tensors", checkpoint_tensors }, { NULL, NULL } };
static const luaL_Reg checkpoint_methods[] = { { "reshard", checkpoint_reshard }, { NULL, NULL } };
static const luaL_Reg checkpoint_meta[] = { { "__tostring", checkpoint_tostring },
                                            { "__gc", mgrid_lua_free_box },
                                            { NULL, NULL } };
static const mgrid_lua_class checkpoint_class = { MGRID_LUA_CHECKPOINT, checkpoint_fields,
                                                  checkpoint_methods, NULL, checkpoint_meta };

static const luaL_Reg resharding_fields[] = { { "progress", resharding_progress }, { NULL, NULL } };
static const luaL_Reg resharding_methods[] = { { "step", resharding_step }, { NULL, NULL } };
static const luaL_Reg resharding_meta[] = { { "__tostring", resharding_tostring },
                                            { "__close", resharding_close },
                                            { "__gc", mgrid_lua_free_box },
                                            { NULL, NULL } };
static const mgrid_lua_class resharding_class = { MGRID_LUA_RESHARDING, resharding_fields,
                                                  resharding_methods, NULL, resharding_meta };

void mgrid_lua_open_checkpoint(lua_State *L) {
  mgrid_lua_open_class(L, &checkpoint_class);
  mgrid_lua_open_class(L, &resharding_class);
  lua_pushcfunction(L, new_checkpoint);
  lua_setfield(L, -2, "checkpoint");
}
