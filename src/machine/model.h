/* SPDX-License-Identifier: MIT
**
** model.h - what a machine is inside. Places are numbered so that those of a domain follow each
** other: a level is a list of bounds, which a regular level does not store. Domains that cross
** levels have no bounds: their number follows from the index of one level's domain within
** another's.
*/
#ifndef MGRID_MACHINE_MODEL_H
#define MGRID_MACHINE_MODEL_H

#include "families/family.h"
#include "moongrid.h"

#include <jansson.h>

enum {
  MGRID_LEVELS_MAX = 16,        /* levels of a machine, and as many that cross them */
  MGRID_MACHINE_TEXT = 1 << 20, /* bytes of the text of a machine */
  MGRID_COUNTS_MAX = 1 << 22,   /* numbers of domains in all levels of a machine */
  MGRID_PLACED_MAX = 1 << 24,   /* ranks whose places are listed */
  MGRID_COUNTED_MAX = 1 << 26,  /* ranks of a world whose domains are found one by one */
};

/* What one domain can send to the others; 0: not known. */
typedef struct mgrid_link {
  double bandwidth, latency; /* bytes a second, seconds */
} mgrid_link;

typedef struct mgrid_tier { /* one level */
  char name[MGRID_NAME_MAX + 1];
  /* its domains in each domain of the level before: one number, or one for each */
  int64_t ncounts, *counts;
  int64_t domains; /* 0: as many as the ranks need, of the first level */
  int64_t each;    /* places of every domain; 0: they differ */
  int64_t most;    /* of the largest */
  int64_t *starts; /* [domains + 1]: first places; NULL where `each` is not 0 */
  char **names;    /* [domains], some NULL; NULL: none has a name */
  mgrid_link link;
} mgrid_tier;

typedef struct mgrid_crossing { /* domains that cross levels */
  char name[MGRID_NAME_MAX + 1];
  size_t of;     /* the level whose index within the level before it chooses the domain */
  int64_t share; /* so many neighbouring indices make one */
  int in;        /* apart in each domain of this level; -1: over the whole machine */
  int64_t domains;
  int64_t width; /* domains within one of `in`: of the largest, with gaps in the smaller ones */
  mgrid_link link;
} mgrid_crossing;

struct mgrid_machine_model {
  atomic_int refs;
  size_t ntiers, ncrossings;
  mgrid_tier tier[MGRID_LEVELS_MAX];
  mgrid_crossing crossing[MGRID_LEVELS_MAX];
  int64_t places; /* 0: as many as the ranks need */
  int64_t nranks; /* of `at` */
  int32_t *at;    /* the place of each rank; NULL: rank r is at place r */
  bool topology;  /* the source is an NCCL topology, which NCCL reads, too */
  char *notes;  /* lines: what its reader left out, "host 'n0' gets no ranks: ..."; NULL: nothing */
  char *source; /* what it was made from, for messages: "dgx-h100", "hosts.txt"; NULL: text */
};

/* ------------------------------------------------------------------ model.c */

mgrid_machine_model *mgrid_machine_alloc(mgrid_error *err);
/* Add a level, nearest last, whose domains have `counts[i]` domains of this level each: one number
** for all domains of the level before (n = 1), or one for each of them. The first level has one
** number, 0: as many as the ranks need. */
mgrid_status mgrid_machine_add(mgrid_machine_model *m, const char *name, size_t n,
                               const int64_t *counts, mgrid_link link, mgrid_error *err);
/* Say how many domains the first level has, of which there were as many as the ranks need; and its
** link, if it has a bandwidth. */
mgrid_status mgrid_machine_number(mgrid_machine_model *m, int64_t n, mgrid_link link,
                                  mgrid_error *err);
mgrid_status mgrid_machine_add_crossing(mgrid_machine_model *m, const char *name, const char *of,
                                        int64_t share, const char *in, mgrid_link link,
                                        mgrid_error *err);
/* Give the places of the ranks; the machine owns `at` from now on, also on failure. */
mgrid_status mgrid_machine_set_ranks(mgrid_machine_model *m, int64_t n, int32_t *at,
                                     mgrid_error *err);
/* Name a domain of a level; the machine copies the name. */
mgrid_status mgrid_machine_name_domain(mgrid_machine_model *m, size_t tier, int64_t domain,
                                       const char *name, mgrid_error *err);
/* Return the bytes that it has, about. */
size_t mgrid_machine_held(const mgrid_machine_model *m);
/* Make another machine that is the same. */
mgrid_machine_model *mgrid_machine_copy(const mgrid_machine_model *m, mgrid_error *err);
/* Complete it: count places, make what is regular canonical. Refuse a machine without levels. */
mgrid_status mgrid_machine_finish(mgrid_machine_model *m, mgrid_error *err);

/* Return the index of a level by its name, or -1. */
int64_t mgrid_machine_find(const mgrid_machine_model *m, const char *level);
/* The domain of a level, and of any level with those that cross, in which a place is. */
int64_t mgrid_tier_domain(const mgrid_tier *t, int64_t place);
int64_t mgrid_place_domain(const mgrid_machine_model *m, size_t level, int64_t place);
/* The first place of a domain; of `domains` the end. */
static inline int64_t mgrid_tier_start(const mgrid_tier *t, int64_t domain) {
  return t->starts ? t->starts[domain] : domain * t->each;
}
/* How many domains of the level have ranks of a world that runs at places 0 to world - 1. */
int64_t mgrid_tier_used(const mgrid_tier *t, int64_t world);
const char *mgrid_level_name(const mgrid_machine_model *m, size_t level);
/* Return the index of a level, or -1 after a refusal with the nearest name. */
int64_t mgrid_machine_require(const mgrid_machine_model *m, const char *level, mgrid_error *err);
/* Return the level of hosts: "node", else the last before the places. */
size_t mgrid_node_level(const mgrid_machine_model *m);
/* Return the level of NVLink domains: "clique" or "nvlink", else the farthest whose places reach
** each other at the bandwidth of a place; that of hosts if no bandwidth is known. */
size_t mgrid_nvlink_level(const mgrid_machine_model *m);
/* Compare with where the ranks of a job run: `host` identifies the host of each, `name` is the name
** of `rank`'s. Refuse the first ranks that the machine puts into one host and that run in two, or
** the other way; then a host with the name of another. A job on one host is a trial of any machine:
** nothing differs. machine_item.c */
mgrid_status mgrid_machine_check_hosts(const mgrid_machine_model *m, const uint64_t *host,
                                       int64_t world, int64_t rank, const char *name,
                                       mgrid_error *err);
/* Refuse a world that has more ranks than the machine places. */
mgrid_status mgrid_machine_fits(const mgrid_machine_model *m, int64_t world, mgrid_error *err);
/* The place of a rank that fits. */
static inline int64_t mgrid_machine_at(const mgrid_machine_model *m, int64_t rank) {
  return m->at ? m->at[rank] : rank;
}

/* --------------------------------------------------------- machine_text.c */

/* Append the canonical text. */
void mgrid_machine_text(const mgrid_machine_model *m, mgrid_text *t);
/* Make a machine from words: text, or a preset and text, charged to the budget. NULL with *err, or
** without it once that is exhausted. `what` is before messages: "machine". */
mgrid_machine_model *mgrid_machine_words(const char *text, const char *what, mgrid_budget *budget,
                                         mgrid_error *err);
/* Apply more words to a machine that a reader made, "gpu:8 rail = gpu", and finish it. */
mgrid_status mgrid_machine_more(mgrid_machine_model *m, const char *words, mgrid_error *err);

void mgrid_link_text(mgrid_link link, mgrid_text *t); /* "[400GB/s,3us]", "" */

#endif
