/* SPDX-License-Identifier: MIT
**
** machine_item.h - a machine in a plan: one that its recipe read, with the laws that held. And the laws.
*/
#ifndef MGRID_MACHINE_ITEM_H
#define MGRID_MACHINE_ITEM_H

#include "machine/model.h"
#include "plan/topology.h"

typedef struct mgrid_machine_item {
  atomic_int refs;
  mgrid_machine_model *model;
  int64_t world;   /* 0: lent to a runtime, for any */
  bool unread;     /* the recipe has not read it */
  mgrid_text laws; /* a line for each that held: "within(tp, machine.node)" */
} mgrid_machine_item;

/* The kind; the name of the only one in a plan is MGRID_MACHINE_NAME. A runtime is lent one, too.
** machine_item.c */
extern const mgrid_item_kind mgrid_machine_kind;
#define MGRID_MACHINE_NAME "machine"
mgrid_machine_item *mgrid_machine_item_new(const mgrid_machine_model *m, int64_t world,
                                           mgrid_error *err);
/* Return the machine of the plan; NULL: none. */
const mgrid_machine_item *mgrid_content_machine(const mgrid_content *c);

/* A law about a family and the domains of a level. domains.c */
typedef struct mgrid_machine_law {
  const char *name;
  /* Return how many groups break it, 0: it holds, or -1 after an error. *first is the first of
  ** them; append what is wrong with it. */
  int64_t (*broken)(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                    int64_t *first, mgrid_text *wrong, mgrid_error *err);
  const char *breaks, *break_; /* what one group does, what several do */
  /* may be NULL */
  void (*advise)(const mgrid_machine_model *m, const mgrid_family *f, size_t level, mgrid_text *t);
} mgrid_machine_law;
const mgrid_machine_law *mgrid_machine_law_named(const char *name);
/* Check a law of a family, which messages call `family`. MGRID_REFUSED if it does not hold: with
** the first group that breaks it, how many do, and what would do. O(members) unless the closed form
** counts. */
mgrid_status mgrid_machine_hold(const mgrid_machine_law *law, const mgrid_machine_model *m,
                                const mgrid_family *f, const char *family, const char *level,
                                mgrid_error *err);
/* Check "within(tp, machine.node)" for a family of the plan. */
mgrid_status mgrid_machine_check_law(const mgrid_machine_model *m, const mgrid_plan *p,
                                     const char *law, mgrid_error *err);
/* Return whether a law is about the machine: it names `machine.` or is one that only machines
** have. */
bool mgrid_machine_is_law(const char *law);
/* Append "node 3", with its name where it has one. */
void mgrid_domain_text(const mgrid_machine_model *m, size_t level, int64_t domain, mgrid_text *t);

#endif
