/* SPDX-License-Identifier: MIT
**
** machine_item.h - the machine as an item of a plan: the machine that the plan's recipe read, with
** the laws about the machine that held. Also the functions that check these laws (domains.c).
*/
#ifndef MGRID_MACHINE_ITEM_H
#define MGRID_MACHINE_ITEM_H

#include "machine/model.h"
#include "plan/topology.h"

typedef struct mgrid_machine_item {
  atomic_int refs;
  mgrid_machine_model *model;
  int64_t world;   /* 0: lent to a runtime, for plans of any world */
  bool unread;     /* the recipe has not read the machine */
  mgrid_text laws; /* a line for each law that held: "within(tp, machine.node)" */
} mgrid_machine_item;

/* The kind of this item. A plan has at most one such item, under the name MGRID_MACHINE_NAME. A
** host can lend such an item to a runtime, too. (machine_item.c) */
extern const mgrid_item_kind mgrid_machine_kind;
#define MGRID_MACHINE_NAME "machine"
mgrid_machine_item *mgrid_machine_item_new(const mgrid_machine_model *m, int64_t world,
                                           mgrid_error *err);
/* Return the machine of the plan; NULL: none. */
const mgrid_machine_item *mgrid_content_machine(const mgrid_content *c);

/* A law about a family and the domains of a level (domains.c). */
typedef struct mgrid_machine_law {
  const char *name;
  /* Return the number of groups that break the law, 0 if it holds, or -1 after an error. Set *first
  ** to the first group that breaks the law, and append to *wrong how. */
  int64_t (*broken)(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                    int64_t *first, mgrid_text *wrong, mgrid_error *err);
  const char *breaks; /* in messages about one group: "crosses" */
  const char *break_; /* in messages about several groups: "cross" */
  /* append advice: which change would make the law hold */
  void (*advise)(const mgrid_machine_model *m, const mgrid_family *f, size_t level, mgrid_text *t);
} mgrid_machine_law;
const mgrid_machine_law *mgrid_machine_law_named(const char *name);
/* Check a law for a family, which messages call `family`. MGRID_REFUSED if the law does not hold;
** the message has the first group that breaks the law, the number of such groups, and advice. It
** takes O(members) unless the groups are counted in closed form. */
mgrid_status mgrid_machine_hold(const mgrid_machine_law *law, const mgrid_machine_model *m,
                                const mgrid_family *f, const char *family, const char *level,
                                mgrid_error *err);
/* Check a law as text, "within(tp, machine.node)", for families of the plan. */
mgrid_status mgrid_machine_check_law(const mgrid_machine_model *m, const mgrid_plan *p,
                                     const char *law, mgrid_error *err);
/* Return whether a law is about the machine: its text contains `machine.`, or only machines have a
** law of this name. */
bool mgrid_machine_is_law(const char *law);
/* Append "node 3", and the name of the domain if it has one. */
void mgrid_domain_text(const mgrid_machine_model *m, size_t level, int64_t domain, mgrid_text *t);

#endif
