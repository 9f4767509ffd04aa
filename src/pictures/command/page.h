/* SPDX-License-Identifier: MIT
**
** page.h - the page of moongrid draw.
*/
#ifndef MGRID_PICTURES_PAGE_H
#define MGRID_PICTURES_PAGE_H

#include "command/cli.h"

/* Append a page of the plans for each world and each of the values of parameters, as tp=1,2,4. page.c */
mgrid_status cli_page(const cli *c, const cli_sizes *worlds, mgrid_runtime *rt, mgrid_text *out, mgrid_error *err);

#endif
