/* SPDX-License-Identifier: MIT
**
** value_file.h - reads values from JSON and YAML, such as a host's file of parameters.
*/
#ifndef MGRID_VALUE_FILE_H
#define MGRID_VALUE_FILE_H

#include "base/base.h"

#include <jansson.h>

/* Read a file with one table by name: JSON if its path ends in .json, else YAML. Return a new
** reference, or NULL. If a line is wrong, the message starts with file:line:. */
json_t *mgrid_read_table(const char *path, mgrid_error *err);
/* Read any value from YAML text, which messages call `name`. Return a new reference, or NULL. */
json_t *mgrid_read_yaml(const char *name, const char *text, size_t len, mgrid_error *err);

#endif
