/* SPDX-License-Identifier: MIT
**
** moongrid_machine.h - where ranks run: machines as levels of domains, families of these domains,
** and the groups that cross them. moongrid.h includes this header, and its rules on words, errors,
** ownership, structs and threads hold here, too.
**
**     mgrid_machine_model *m = mgrid_machine_parse("rack:4 node:18[400GB/s,3us] gpu:4 rail = gpu", &e);
**     mgrid_family        *node = mgrid_machine_family(m, "node", 288, &e);   // 72 groups of 4 ranks
**     mgrid_machine_counts c = MGRID_MACHINE_COUNTS_INIT;
**     mgrid_machine_count(m, tp, "node", &c, &e);                             // c.crossing groups leave their node
**
** For the nodes of a running job, as its ranks find them, see mgrid_machine in moongrid_state.h.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* includes this header after the headers that it needs */
#elif !defined MOONGRID_MACHINE_H
#define MOONGRID_MACHINE_H

#ifdef __cplusplus
extern "C" {
#endif

/* A machine: places for ranks, numbered from 0 so that the places of a domain follow each other,
** and levels of domains, from far to near. A domain of the last level is one place. Rank r runs at
** place r, unless the machine lists the places of its ranks. Immutable and counted, as families
** are. */
typedef struct mgrid_machine_model mgrid_machine_model;

/* Make a machine from text, words with blanks between (src/machine/README.md):
**   rack:4            a level, far to near: 4 domains in each domain of the level before it. `*` instead of the first
**                     number: as many as the ranks need. A list has a number for each domain of the level before,
**                     "node:18,17" or "node:3x18,17"
**   node:18[400GB/s,3us]  the link of a domain: bandwidth to other domains of the level, latency of the first byte
**   rail = gpu        domains that cross levels: the places with equal index of gpu. "rail = gpu / 2": two
**                     neighbouring indices share one; "rail = gpu in rack": separate in each rack. [50GB/s] may follow
**   ranks = 8..15,0..7    the place of each rank
** or from the name of a preset (mgrid_machine_preset), which more words may follow: "dgx-h100 node:4". "8" is
** "node:* gpu:8". At most 2^20 bytes; MGRID_BAD_VALUE names the character that does not fit. */
MGRID_API mgrid_machine_model *mgrid_machine_parse(const char *text, mgrid_error *err);
/* Make a machine from one of three sources: text as for mgrid_machine_parse; a file of another tool
** that a reader knows (src/machine/README.md), which words may follow, "hosts.txt gpu:8"; or
** "slurm", the Slurm job of this process. The source is a file if the whole of it, or its first
** word, is the name of a file. MGRID_BAD_VALUE names the line, or in JSON the path, that a reader
** refuses. The readers are in libmoongrid_lua: MGRID_MISSING without it. */
MGRID_API mgrid_machine_model *mgrid_machine_open(const char *source, mgrid_error *err);
/* Make a machine from the contents of such a file, `length` bytes; messages call it `name` (NULL:
** "machine"). `words` are the words after its name; NULL: none. Errors are those of
** mgrid_machine_open; MGRID_LIMIT: the text stands for more data than a reader accepts
** (src/machine/README.md has the limits). */
MGRID_API mgrid_machine_model *mgrid_machine_read(const char *text, size_t length, const char *name,
                                                  const char *words, mgrid_error *err);
/* another owner; never fails */
MGRID_API mgrid_machine_model *mgrid_machine_ref(const mgrid_machine_model *m);
MGRID_API void mgrid_machine_free(mgrid_machine_model *m);
/* Get the ith preset, in the order of names: its name, its text, and the source of its figures.
** Return false if there is none. Each pointer may be NULL. */
MGRID_API bool mgrid_machine_preset(size_t i, const char **name, const char **text,
                                    const char **source);

/* Return the number of places; 0: as many as the ranks need. */
MGRID_API int64_t mgrid_machine_places(const mgrid_machine_model *m);
/* Return the number of levels. Kinds of domains that cross levels, such as rails, count as levels,
** after the others. */
MGRID_API size_t mgrid_machine_nlevels(const mgrid_machine_model *m);
/* A description of a level. */
typedef struct mgrid_machine_level {
  size_t size;      /* sizeof(mgrid_machine_level) */
  const char *name; /* borrowed from the machine */
  bool crosses;     /* its domains cross those of other levels, as rails do */
  /* -1: as many as the ranks need. If domains that cross levels differ, some of their numbers, 0 to
  ** domains - 1, may have no places */
  int64_t domains;
  /* places of the largest domain, or a bound if domains that cross levels differ; -1: as many as
  ** the ranks need */
  int64_t most;
  bool regular;     /* all domains have `most` places */
  double bandwidth; /* bytes a second that one domain can send to the others; 0: not known */
  double latency;   /* seconds; 0: not known */
} mgrid_machine_level;
#define MGRID_MACHINE_LEVEL_INIT \
  { sizeof(mgrid_machine_level), NULL, false, 0, 0, false, 0, 0 }
/* Describe level i, 0 the farthest. MGRID_OUT_OF_RANGE: there is none. */
MGRID_API mgrid_status mgrid_machine_describe_level(const mgrid_machine_model *m, size_t i,
                                                    mgrid_machine_level *out, mgrid_error *err);
/* Return the domain of level i in which a rank runs, or -1. O(log domains). */
MGRID_API int64_t mgrid_machine_domain(const mgrid_machine_model *m, size_t i, int64_t rank);
/* Return the name of a domain, such as a host name; NULL: it has none. Borrowed from the
** machine. */
MGRID_API const char *mgrid_machine_domain_name(const mgrid_machine_model *m, size_t i,
                                                int64_t domain);
/* Write the canonical text, as snprintf; equal machines have equal text. Names of domains are not
** in it. */
MGRID_API size_t mgrid_machine_describe(const mgrid_machine_model *m, char *buf, size_t len);
/* Print the machine as JSON, with the names of its domains; mgrid_machine_read reads it back. */
MGRID_API mgrid_status mgrid_machine_print_json(const mgrid_machine_model *m, mgrid_sink sink,
                                                void *ud, mgrid_error *err);

/* Make the family of the domains of a level: a group for each domain in which ranks run, in the
** order of domains; its members are these ranks, in order. MGRID_REFUSED if the machine has fewer
** places than the world has ranks. O(levels) for a regular machine, O(domains) for an irregular
** one. But O(ranks), and MGRID_LIMIT above 2^26 ranks, if the machine lists the places of ranks, or
** if the level crosses others and the machine is irregular or the ranks do not fill its domains. */
MGRID_API mgrid_family *mgrid_machine_family(const mgrid_machine_model *m, const char *level,
                                             int64_t world, mgrid_error *err);

/* How the groups of a family lie in the domains of a level. */
typedef struct mgrid_machine_counts {
  size_t size;      /* sizeof(mgrid_machine_counts) */
  int64_t inside;   /* groups whose ranks lie in one domain */
  int64_t crossing; /* groups whose ranks lie in several domains */
  /* pairs of consecutive members in two domains, over all groups. In a group of more than two, the
  ** last and the first member are a pair, too */
  int64_t edges;
  /* pairs of a group and a domain with some of its members. mgrid_family_total / touched is the
  ** mean number of members of a group in a domain */
  int64_t touched;
} mgrid_machine_counts;
#define MGRID_MACHINE_COUNTS_INIT \
  { sizeof(mgrid_machine_counts), 0, 0, 0, 0 }
/* Count how the groups of a family lie. If modes describe the groups, and the machine does not list
** the places of ranks, count in closed form, O(min(domains, places of a domain) x modes). Otherwise
** count member by member, O(members), with MGRID_LIMIT in a world of more than 2^26 ranks. */
MGRID_API mgrid_status mgrid_machine_count(const mgrid_machine_model *m, const mgrid_family *f,
                                           const char *level, mgrid_machine_counts *out,
                                           mgrid_error *err);

/* Set the machine that a runtime's recipe reads (`machine.node` and its like), for the plans that
** it makes from now on. NULL: the machine of the recipe's field `machine`, if it has one. A plan
** whose recipe reads the machine has the machine in its text and digest. mgrid_materialize compares
** that machine with the nodes of the job before it creates communicators. It fails with
** MGRID_REFUSED if ranks that the machine puts on one node run on two, if ranks that it puts on two
** nodes run on one, or if it gives the name of a rank's node to a different node. A job on one node
** may use any machine. */
MGRID_API mgrid_status mgrid_runtime_machine(mgrid_runtime *rt, const mgrid_machine_model *m,
                                             mgrid_error *err);
/* Return the machine of mgrid_runtime_machine, or of the recipe's field `machine`, when the plan
** was made; NULL: none. Borrowed from the plan. */
MGRID_API const mgrid_machine_model *mgrid_plan_machine(const mgrid_plan *p);

#ifdef __cplusplus
}
#endif
#endif
