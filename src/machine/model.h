/* SPDX-License-Identifier: MIT
**
** model.h - the struct of a machine. A place is a slot for one rank. Places are numbered so that
** the places of a domain are consecutive. So a level is a list of bounds: the first place of each
** domain. A regular level, whose domains have equally many places, needs no list. Domains that
** cross levels (rail = gpu) have no bounds: the domain of a place is computed from the index of the
** place's gpu within its node.
*/
#ifndef MGRID_MACHINE_MODEL_H
#define MGRID_MACHINE_MODEL_H

#include "families/family.h"
#include "moongrid.h"

#include <jansson.h>

enum {
  MGRID_LEVELS_MAX = 16,        /* levels of a machine; as many more may cross them */
  MGRID_MACHINE_TEXT = 1 << 20, /* bytes of the text of a machine */
  MGRID_COUNTS_MAX = 1 << 22,   /* numbers of domains, over all levels of a machine */
  MGRID_PLACED_MAX = 1 << 24,   /* ranks whose places may be listed */
  MGRID_COUNTED_MAX = 1 << 26,  /* ranks of a world whose domains may be found one by one */
};

/* What a domain can send to the other domains of its level; 0: not known. */
typedef struct mgrid_link {
  double bandwidth, latency; /* bytes per second; seconds */
} mgrid_link;

typedef struct mgrid_tier { /* one level */
  char name[MGRID_NAME_MAX + 1];
  /* the number of domains in each domain of the level before: one number for all of these, or a
  ** number for each */
  int64_t ncounts, *counts;
  int64_t domains; /* 0: as many as the ranks need; then this is so in all levels */
  int64_t each;    /* places of every domain; 0: the domains differ */
  int64_t most;    /* places of the largest domain */
  int64_t *starts; /* [domains + 1]: the first place of each domain; NULL if `each` is not 0 */
  char **names;    /* [domains], some NULL; NULL: no domain has a name */
  mgrid_link link;
} mgrid_tier;

typedef struct mgrid_crossing { /* domains that cross levels */
  char name[MGRID_NAME_MAX + 1];
  /* a level: the index of a domain of it, within the domain of the level before, chooses the
  ** domain */
  size_t of;
  int64_t share; /* how many neighbouring indices belong to one domain */
  /* each domain of this level has crossing domains of its own; -1: crossing domains span the
  ** machine */
  int in;
  int64_t domains;
  int64_t width; /* domains within the largest domain of `in`; smaller ones leave numbers unused */
  mgrid_link link;
} mgrid_crossing;

struct mgrid_machine_model {
  atomic_int refs;
  size_t ntiers, ncrossings;
  mgrid_tier tier[MGRID_LEVELS_MAX];
  mgrid_crossing crossing[MGRID_LEVELS_MAX];
  int64_t places; /* 0: as many as the ranks need */
  int64_t nranks; /* length of `at` */
  int32_t *at;    /* the place of each rank; NULL: rank r is at place r */
  bool topology;  /* the source is an NCCL topology file, which NCCL can read, too */
  char *notes; /* lines about what the reader left out, "host 'n0' gets no ranks: ..."; or NULL */
  /* where the machine came from, for messages: "dgx-h100", "hosts.txt"; NULL: from words alone */
  char *source;
};

/* ------------------------------------------------------------------ model.c */

mgrid_machine_model *mgrid_machine_alloc(mgrid_error *err);
/* Add a level; levels are added from far to near. counts[i] is the number of its domains in domain
** i of the level before; n = 1: in every domain of the level before. The first level has one
** number; 0: as many as the ranks need. */
mgrid_status mgrid_machine_add(mgrid_machine_model *m, const char *name, size_t n,
                               const int64_t *counts, mgrid_link link, mgrid_error *err);
/* Set the number of domains of the first level, which had as many as the ranks need. If `link` has
** a bandwidth, set the level's link, too. */
mgrid_status mgrid_machine_number(mgrid_machine_model *m, int64_t n, mgrid_link link,
                                  mgrid_error *err);
mgrid_status mgrid_machine_add_crossing(mgrid_machine_model *m, const char *name, const char *of,
                                        int64_t share, const char *in, mgrid_link link,
                                        mgrid_error *err);
/* Set the places of the ranks. The machine owns `at` from now on, also after a failure. */
mgrid_status mgrid_machine_set_ranks(mgrid_machine_model *m, int64_t n, int32_t *at,
                                     mgrid_error *err);
/* Name a domain of a level. The machine copies the name. */
mgrid_status mgrid_machine_name_domain(mgrid_machine_model *m, size_t tier, int64_t domain,
                                       const char *name, mgrid_error *err);
/* Return about how many bytes of memory the machine takes. */
size_t mgrid_machine_held(const mgrid_machine_model *m);
mgrid_machine_model *mgrid_machine_copy(const mgrid_machine_model *m, mgrid_error *err);
/* Complete a machine after its last level: count the places, and store equal domains as `each`.
** Refuse a machine without levels. */
mgrid_status mgrid_machine_finish(mgrid_machine_model *m, mgrid_error *err);

/* Return the index of a level by its name, or -1. */
int64_t mgrid_machine_find(const mgrid_machine_model *m, const char *level);
/* Return the domain of a level in which a place is. mgrid_place_domain takes the index of a level
** or of domains that cross levels. */
int64_t mgrid_tier_domain(const mgrid_tier *t, int64_t place);
int64_t mgrid_place_domain(const mgrid_machine_model *m, size_t level, int64_t place);
/* Return the first place of a domain; for domain = t->domains: the place after the last. */
static inline int64_t mgrid_tier_start(const mgrid_tier *t, int64_t domain) {
  return t->starts ? t->starts[domain] : domain * t->each;
}
/* Return how many domains of the level have ranks, if a world runs at places 0 to world - 1. */
int64_t mgrid_tier_used(const mgrid_tier *t, int64_t world);
const char *mgrid_level_name(const mgrid_machine_model *m, size_t level);
/* Return the index of a level. If there is none, return -1 after an error that names the most
** similar level. */
int64_t mgrid_machine_require(const mgrid_machine_model *m, const char *level, mgrid_error *err);
/* Return the level whose domains are nodes: "node", else the last level before the single
** places. */
size_t mgrid_node_level(const mgrid_machine_model *m);
/* Return the level of NVLink domains: "clique" or "nvlink". Without these, return the farthest
** level in whose domains each place can send at its own bandwidth; if no bandwidth is known, return
** the level of nodes. */
size_t mgrid_nvlink_level(const mgrid_machine_model *m);
/* Compare the machine with the nodes on which the ranks of a job run. host[r] identifies the node
** of rank r in the job; `name` is the name of the node of `rank`. Refuse if two ranks are on one
** node in the machine and on two in the job, or the other way round; the message names the first
** such ranks. Then refuse if another node of the machine has this name. A job on one node is a
** trial, for which any machine is accepted. A machine without a level of nodes is accepted for any
** job. (machine_item.c) */
mgrid_status mgrid_machine_check_hosts(const mgrid_machine_model *m, const uint64_t *host,
                                       int64_t world, int64_t rank, const char *name,
                                       mgrid_error *err);
/* Refuse a world that has more ranks than the machine has places. */
mgrid_status mgrid_machine_fits(const mgrid_machine_model *m, int64_t world, mgrid_error *err);
/* Return the place of a rank. The rank must fit. */
static inline int64_t mgrid_machine_at(const mgrid_machine_model *m, int64_t rank) {
  return m->at ? m->at[rank] : rank;
}

/* --------------------------------------------------------- machine_text.c */

/* Append the canonical text of the machine. It has no names of domains: machines that differ only
** in these names have equal texts. */
void mgrid_machine_text(const mgrid_machine_model *m, mgrid_text *t);
/* Make a machine from text, or from a preset and text. The budget pays for the memory. Return NULL
** with *err after an error, or NULL without *err once the budget is exhausted. Messages begin with
** `what`: "machine". */
mgrid_machine_model *mgrid_machine_words(const char *text, const char *what, mgrid_budget *budget,
                                         mgrid_error *err);
/* Apply more words, "gpu:8 rail = gpu", to a machine that a reader made, and complete the
** machine. */
mgrid_status mgrid_machine_more(mgrid_machine_model *m, const char *words, mgrid_error *err);

/* Append "[400GB/s,3us]", or nothing if nothing is known. */
void mgrid_link_text(mgrid_link link, mgrid_text *t);

#endif
