/* SPDX-License-Identifier: MIT
**
** value_file.h - reads files that hold a table by name, which hosts pass as values of parameters.
*/
#ifndef MGRID_READ_H
#define MGRID_READ_H

#include "base/base.h"

#include <jansson.h>

/* Read a file that holds one table by name: JSON if its path ends in .json, else YAML. Return a new
** reference, or NULL. If a line is wrong, the message starts with file:line:. */
json_t *mgrid_read_table(const char *path, mgrid_error *err);
/* Read YAML with any contents; messages call it `name`. Return a new reference, or NULL. */
json_t *mgrid_read_yaml(const char *name, const char *text, size_t len, mgrid_error *err);

#endif
