/* SPDX-License-Identifier: MIT
**
** init.c - moongrid init: a folder with a first recipe, and with what editors need to know the words of recipes.
*/
#include "command/cli.h"
#include "base/base.h"
#include "command/built_in_texts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Write a file; unless `ours`, only where there is none: *kept says that there was one. */
static mgrid_status write_file(const char *path, const char *text, bool ours, bool *kept, mgrid_error *err) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (ours ? O_TRUNC : O_EXCL), 0666);
  *kept = fd < 0 && errno == EEXIST && !ours;
  if (*kept) return MGRID_OK;
  FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
  if (!file) {
    refused("write", path, err);
    if (fd >= 0) close(fd);
    return err->status;
  }
  bool failed = fputs(text, file) < 0;
  failed |= fclose(file) != 0;
  return failed ? refused("write", path, err) : MGRID_OK;
}

/* Write a file of the folder and say so. */
static mgrid_status put(const char *folder, const char *name, const char *text, const char *otherwise,
                        mgrid_error *err) {
  char path[4096];
  bool kept;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  mgrid_status s = write_file(path, text, false, &kept, err);
  if (!s) printf("%-14s %s\n", name, kept ? otherwise : "written");
  return s;
}

static mgrid_status put_annotations(const char *folder, mgrid_error *err) {
  char         path[4096];
  bool         kept;
  size_t       n = 0;
  mgrid_status s = MGRID_OK;
  snprintf(path, sizeof path, "%s/" ANNOTATIONS, folder);
  if (make_folder(path, err)) return err->status;
  for (const cli_file *f = cli_files; f->name && !s; f++) {
    if (strncmp(f->name, ":meta", 5) != 0) continue;
    snprintf(path, sizeof path, "%s/" ANNOTATIONS "/%s", folder, f->name + 1);
    s = write_file(path, f->text, true, &kept, err);
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
