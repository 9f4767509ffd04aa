/* SPDX-License-Identifier: MIT
**
** resources.c - what the NCCL communicators of a plan need, and budgets for it. The numbers take into account the
** environment variables that override a family's options in NCCL; recipes never see these.
*/
#include "base/base.h"
#include "command/cli.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- environment */

/* Return a number as NCCL reads it: 0 if not set; NCCL ignores values up to 0 and caps those above 64. */
static int64_t ctas_of(const char *variable) {
  const char *text = getenv(variable);
  int64_t     n = text ? strtoll(text, NULL, 0) : 0;
  return n < 1 ? 0 : n > 64 ? 64 : n;
}

static void note(const cli *c, const char *variable, const char *what) {
  if (c->me == 0) fprintf(stderr, "moongrid: note: %s=%s in the environment %s\n", variable, getenv(variable), what);
}

void cli_site(const cli *c, mgrid_site *site) {
  static const char *const unheeded[] = { "NCCL_BUFFSIZE",       "NCCL_LL_BUFFSIZE",    "NCCL_LL128_BUFFSIZE",
                                          "NCCL_NVLS_CHUNKSIZE", "NCCL_NVLS_NCHANNELS", "NCCL_MIN_NCHANNELS",
                                          "NCCL_MAX_NCHANNELS",  "NCCL_CUMEM_ENABLE",   NULL };
  const char              *sharp = getenv("NCCL_NVLS_ENABLE");
  site->machine_ranks = MGRID_SITE_RANKS;
  if ((site->min_ctas = ctas_of("NCCL_MIN_CTAS")))
    note(c, "NCCL_MIN_CTAS", "overrides min_ctas of every family; the numbers for NCCL include that");
  if ((site->max_ctas = ctas_of("NCCL_MAX_CTAS")))
    note(c, "NCCL_MAX_CTAS", "overrides max_ctas of every family; the numbers for NCCL include that");
  if (sharp && strtoll(sharp, NULL, 0) == 0) {
    site->no_nvls = true;
    note(c, "NCCL_NVLS_ENABLE", "turns NVLink SHARP off; the numbers for NCCL include that");
  }
  for (const char *const *name = unheeded; *name; name++)
    if (getenv(*name)) note(c, *name, "changes what NCCL needs; the numbers for NCCL ignore that");
}

/* ------------------------------------------------------------------ budgets */

static double mib(int64_t bytes) { return (double)bytes / (1 << 20); }

static mgrid_status over(mgrid_error *err, const char *what, int64_t n, int64_t budget, const char *advice) {
  return mgrid_fail(err, MGRID_LIMIT, "NCCL may need %" PRId64 " %s, the budget is %" PRId64 "; %s", n, what, budget,
                    advice);
}

mgrid_status cli_check_budgets(const cli_budgets *b, const mgrid_plan *p, int64_t rank, const mgrid_site *site,
                               mgrid_error *err) {
  mgrid_resources r = MGRID_RESOURCES_INIT;
  if (!b->gpu_memory && !b->sms && !b->nvls_slots && !b->files) return MGRID_OK;
  mgrid_status s = mgrid_plan_resources(p, rank, site, &r, err);
  if (s) return s;
  if (b->gpu_memory && r.created > b->gpu_memory << 20)
    return mgrid_fail(err, MGRID_LIMIT,
                      "%" PRId64 " NCCL communicator%s may take %.0f MiB of a GPU, the budget is %" PRId64
                      " MiB; fewer channels (nccl = { max_ctas = ... }) take less",
                      r.communicators, mgrid_s_of(r.communicators), mib(r.created), b->gpu_memory);
  if (b->sms && r.blocks > b->sms)
    return over(err, "SMs of a GPU at once", r.blocks, b->sms,
                "fewer channels (nccl = { max_ctas = ... }) of concurrent families take less");
  if (b->nvls_slots && r.nvls_slots > b->nvls_slots)
    return over(err, "multicast slots of a machine", r.nvls_slots, b->nvls_slots,
                "fewer communicators take less, and with NCCL_NVLS_ENABLE=0 none do");
  if (b->files && r.files > b->files)
    return over(err, "file descriptors of a process", r.files, b->files,
                "fewer channels (nccl = { max_ctas = ... }) take less");
  return MGRID_OK;
}

void cli_machine_of(const cli *c, const mgrid_plan *p, mgrid_site *site) {
  static const char *const names[] = { "gpus_per_node", "ranks_per_node", "nproc_per_node" };
  int64_t                  asked = cli_machine_ranks(c, p);
  for (size_t i = 0; i < p->content.nparams && !asked; i++)
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
      if (strcmp(p->content.param[i].name, names[k]) == 0) asked = strtoll(p->content.param[i].value, NULL, 10);
  site->machine_ranks = asked >= 1 && asked <= MGRID_MACHINE_RANKS_MAX ? asked : MGRID_SITE_RANKS;
}

/* --------------------------------------------------------------------- print */

mgrid_status cli_show_resources(const cli *c, const cli_budgets *b, const mgrid_plan *p, const mgrid_site *site,
                                mgrid_error *err) {
  mgrid_resources r = MGRID_RESOURCES_INIT;
  mgrid_text      t = { 0 };
  mgrid_status    s = mgrid_plan_resources(p, -1, site, &r, err);
  if (s) return s;
  mgrid_text_add(&t,
                 "with NCCL at most %.0f MiB a rank for %" PRId64 " communicator%s, %.0f MiB more with their first use",
                 mib(r.created), r.communicators, mgrid_s_of(r.communicators), mib(r.ring));
  cli_wrap(c, "GPU memory", &t);
  if (r.communicators == 0) return MGRID_OK;
  mgrid_text_add(&t, "then trees %.0f MiB, messages between all members %.0f", mib(r.tree), mib(r.p2p));
  if (r.nvls_created)
    mgrid_text_add(&t, ", NVLink SHARP %.0f (and %.0f when they are made)", mib(r.nvls), mib(r.nvls_created));
  cli_wrap(c, "", &t);
  mgrid_text_add(&t,
                 "%" PRId64 " of %" PRId64 " SMs at once, %" PRId64 " of %" PRId64 " multicast slots, %" PRId64
                 " file descriptors, with %" PRId64 " rank%s a machine%s",
                 r.blocks, b && b->sms ? b->sms : MGRID_SITE_SMS, r.nvls_slots,
                 b && b->nvls_slots ? b->nvls_slots : MGRID_SITE_NVLS_SLOTS, r.files, site->machine_ranks,
                 mgrid_s_of(site->machine_ranks), r.sampled ? " (of three machines)" : "");
  cli_wrap(c, "NCCL takes", &t);
  return MGRID_OK;
}
