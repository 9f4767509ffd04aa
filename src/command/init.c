/* SPDX-License-Identifier: MIT
**
** init.c - moongrid init: a folder with a first recipe, and with what editors need to know the words of recipes.
*/
#include "command/cli.h"
#include "base/output.h"
#include "command/built_in_texts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ANNOTATIONS ".moongrid"

/* For the Lua language server: annotations are a library, and recipes are Lua 5.4. */
static const char luarc[] = "{\n"
                            "  \"runtime.version\": \"Lua 5.4\",\n"
                            "  \"workspace.library\": [\"" ANNOTATIONS "\"],\n"
                            "  \"workspace.checkThirdParty\": false\n"
                            "}\n";

static mgrid_status refused(const char *what, const char *path, mgrid_error *err) {
  return mgrid_fail(err, MGRID_OUTPUT, "cannot %s %s: %s", what, path, strerror(errno));
}

/* Make a folder, and those above it. */
static mgrid_status make_folder(const char *path, mgrid_error *err) {
  char all[4096];
  snprintf(all, sizeof all, "%s", path);
  for (char *slash = all + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
    *slash = '\0';
    if (mkdir(all, 0777) && errno != EEXIST) return refused("make", all, err);
  }
  return mkdir(all, 0777) && errno != EEXIST ? refused("make", path, err) : MGRID_OK;
}

/* Refuse a link, which may lead out of the folder. */
static mgrid_status check_no_link(const char *path, mgrid_error *err) {
  struct stat about;
  if (lstat(path, &about) || !S_ISLNK(about.st_mode)) return MGRID_OK;
  return mgrid_fail(err, MGRID_REFUSED, "%s is a link; nothing is written behind it; take it away", path);
}

/* Write a file of the folder and say so. */
static mgrid_status put(const char *folder, const char *name, const char *text, const char *otherwise,
                        mgrid_error *err) {
  char        path[4096];
  struct stat about;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  bool         kept = lstat(path, &about) == 0;
  mgrid_status s = kept ? MGRID_OK : mgrid_write_file(path, MGRID_WRITE_HERE, text, strlen(text), err);
  if (!s) printf("%-14s %s\n", name, kept ? otherwise : "written");
  return s;
}

static mgrid_status put_annotations(const char *folder, mgrid_error *err) {
  char         path[4096];
  size_t       n = 0;
  mgrid_status s = MGRID_OK;
  snprintf(path, sizeof path, "%s/" ANNOTATIONS, folder);
  if (check_no_link(path, err) || make_folder(path, err)) return err->status;
  for (const cli_file *f = cli_files; f->name && !s; f++) {
    if (strncmp(f->name, ":meta", 5) != 0) continue;
    snprintf(path, sizeof path, "%s/" ANNOTATIONS "/%s", folder, f->name + 1);
    s = mgrid_write_file(path, MGRID_WRITE_HERE, f->text, strlen(f->text), err);
    n++;
  }
  if (!s) printf("%-14s written: %zu files of annotations\n", ANNOTATIONS, n);
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  cli         c = { 0 };
  mgrid_error err = MGRID_ERROR_INIT;
  if (!cli_parse(&c, self, argc, argv)) return c.code;
  const char *folder = c.nwords ? c.words[0] : ".";
  if (strlen(folder) > 2048) return cli_usage(&c, "the name of the folder is longer than 2048 bytes");
  mgrid_status s = make_folder(folder, &err);
  if (!s) s = put(folder, "layout.lua", cli_text_of(":layout.lua"), "is there already, and stays", &err);
  if (!s)
    s = put(folder, ".luarc.json", luarc,
            "is there already, and stays; \"workspace.library\" with \"" ANNOTATIONS "\" shows the annotations", &err);
  if (!s) s = put_annotations(folder, &err);
  if (!s) printf("next: moongrid draw %s%slayout.lua --world 8\n", c.nwords ? folder : "", c.nwords ? "/" : "");
  if (s) cli_say(&c, &err);
  return cli_finish(&c, s);
}

const cli_command command_init = {
  .name = "init",
  .takes = "[FOLDER]",
  .does = "a folder to write recipes in",
  .usage = "moongrid init [FOLDER]",
  .about =
      "Make a folder to write recipes in, or add to this one: layout.lua, a first recipe; and for editors with the\n"
      "Lua language server .luarc.json and annotations of all words, in .moongrid. Files that are there already\n"
      "stay, except for these annotations: after an update of moongrid run it again.",
  .sample = "moongrid init FOLDER",
  .words = 1,
  .run = run,
};
