/* SPDX-License-Identifier: MIT
**
** tree.h - what readers of files find: hosts, and switches, blocks or cliques above them. It becomes a machine whose
** levels are the heights of the tree, and whose ranks go to the hosts in the order in which they were listed.
*/
#ifndef MGRID_MACHINE_TREE_H
#define MGRID_MACHINE_TREE_H

#include "machine/model.h"

typedef struct mgrid_tree_node {
  char   *name;
  int32_t parent; /* -1: none */
  int32_t line;   /* that named it first */
  int32_t slots;  /* of a host; 0: not said */
  int32_t height; /* 0: a host; found by _build */
  int64_t order;  /* of a host: in which ranks go to it; -1: it has none, and is left out if another one has */
  bool    host;
} mgrid_tree_node;

typedef struct mgrid_tree {
  const char      *file;              /* for messages */
  const char      *above, *slots_are; /* what a switch is called ("switch"), and a slot ("gpu") */
  mgrid_error     *err;
  mgrid_tree_node *node;
  int32_t          n;
  int32_t         *slot; /* names: open addressing; -1: free */
  uint32_t         room;
  int64_t          ordered; /* hosts with an order */
  int64_t          named;   /* by lists, each as often as it is there */
  int64_t          most;    /* that lists may name */
} mgrid_tree;

/* Lists may name so many, and one more for each byte of the text. */
enum { MGRID_NAMES_MAX = 1 << 18 };

void mgrid_tree_free(mgrid_tree *t);
/* "FILE:LINE: ...". Return the status, which is that of t->err. */
mgrid_status mgrid_tree_fault(mgrid_tree *t, int line, mgrid_status status, const char *fmt, ...) MGRID_PRINTF(4, 5);
/* Return the index of a host or a switch, or -1. */
int32_t mgrid_tree_find(const mgrid_tree *t, bool host, const char *name);
/* The same, and add it if it is not there; -1 after an error. */
int32_t mgrid_tree_node_of(mgrid_tree *t, bool host, const char *name, int line);
/* Add a host that must not be there yet, the next in the order of ranks. */
mgrid_status mgrid_tree_add_host(mgrid_tree *t, const char *name, int32_t parent, int64_t slots, int line);
/* Put a node below a switch. Refuse one that is below another already. */
mgrid_status mgrid_tree_put_below(mgrid_tree *t, int32_t node, int32_t parent, int line);
/* Give ranks to hosts in this order: those of "n[1-3,07],m1", each there. */
mgrid_status mgrid_tree_order(mgrid_tree *t, const char *list, int line);
/* Make the machine; more words may add levels and domains that cross them. */
mgrid_machine_model *mgrid_tree_machine(mgrid_tree *t, const char *words);

/* Call `each` for every name of Slurm's "n[1-3,07],m[1-2]x[0-1]", until it fails. False: it cannot be read, *at is where.
** MGRID_LIMIT: the lists of the file name more than t->most. */
typedef mgrid_status mgrid_name_fn(void *ud, const char *name);
bool mgrid_hostlist(mgrid_tree *t, int line, const char *list, const char **at, mgrid_name_fn *each, void *ud,
                    mgrid_status *status);

/* ------------------------------------------------------------------- readers */

/* A format: one row in its own file, read_NAME.c. */
typedef struct mgrid_machine_reader {
  const char *name, *reads; /* "hostfile", what it is */
  bool (*is)(const char *text, size_t length);
  /* Read into the tree, or make the machine at once (*made). `choice`: of several topologies in the file; NULL. */
  mgrid_status (*read)(mgrid_tree *t, const char *text, size_t length, const char *choice, mgrid_machine_model **made);
} mgrid_machine_reader;

/* A line of a text: its words are cut in place. False: no more. Lines that end with a backslash are one. */
typedef struct mgrid_lines {
  char *at, *end, *line;
  int   number; /* of the line, from 1 */
  int   next;
} mgrid_lines;
mgrid_lines mgrid_lines_begin(char *text, size_t length);
bool        mgrid_lines_next(mgrid_lines *l);
/* The value of "Key=value" in a line of such words, NULL: it is not there. Keys are compared without case. */
char *mgrid_line_value(const char *line, const char *key, char *buf, size_t room);

#endif
