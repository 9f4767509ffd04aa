/* SPDX-License-Identifier: MIT
**
** value_file.h - files that hold a table by name, which hosts give as values of parameters.
*/
#ifndef MGRID_READ_H
#define MGRID_READ_H

#include "base/base.h"

#include <jansson.h>

/* Read a file that holds one table by name: JSON if its path ends in .json, else YAML. Return a new
** reference, or NULL; the message starts with file:line: where a line is wrong. */
json_t *mgrid_read_table(const char *path, mgrid_error *err);
/* Read YAML, whatever it holds; messages call it `name`. A new reference, or NULL. */
json_t *mgrid_read_yaml(const char *name, const char *text, size_t len, mgrid_error *err);

#endif
