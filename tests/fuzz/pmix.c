/* SPDX-License-Identifier: MIT
**
** pmix.c - fuzz target: a PMIx that lies. The functions of PMIx that src/comm/carriers/pmix.c calls
** are these here. What they say of the job is of the bytes; the value of another rank is that of
** this one, as honest ranks of one plan put it, or bent: of another type, another size, other
** bytes, or not there.
*/
#include "fuzz.h"

#include "comm/backend.h"

#include <pmix.h>

extern const mgrid_backend_entry mgrid_pmix_entry;

static bytes in;
static struct {
  char key[PMIX_MAX_KEYLEN + 1];
  char data[4096];
  size_t bytes;
} kept[16];
static size_t nkept;

pmix_status_t PMIx_Init(pmix_proc_t *me, pmix_info_t info[], size_t n) {
  (void)info, (void)n;
  memset(me, 0, sizeof *me);
  snprintf(me->nspace, sizeof me->nspace, "fuzz");
  me->rank = byte(&in) % 5;
  if (me->rank == 4) me->rank = UINT32_MAX - byte(&in);
  return PMIX_SUCCESS;
}

pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t n) {
  (void)info, (void)n;
  return PMIX_SUCCESS;
}

int PMIx_Initialized(void) { return 1; }
const char *PMIx_Get_version(void) { return "fuzz"; }
const char *PMIx_Error_string(pmix_status_t s) {
  return s == PMIX_SUCCESS ? "SUCCESS" : "\033[31merror\n";
}

pmix_status_t PMIx_Commit(void) { return PMIX_SUCCESS; }

pmix_status_t PMIx_Put(pmix_scope_t scope, const pmix_key_t key, pmix_value_t *v) {
  size_t i = 0;
  (void)scope;
  CHECK(v->type == PMIX_BYTE_OBJECT);
  if (v->data.bo.size > sizeof kept[0].data) return PMIX_SUCCESS; /* and does not keep it */
  while (i < nkept && strcmp(kept[i].key, key) != 0) i++;
  if (i == sizeof kept / sizeof *kept) i = nkept = 0;
  if (i == nkept) nkept++;
  snprintf(kept[i].key, sizeof kept[i].key, "%s", key);
  memcpy(kept[i].data, v->data.bo.bytes, kept[i].bytes = v->data.bo.size);
  return PMIX_SUCCESS;
}

pmix_status_t PMIx_Get(const pmix_proc_t *p, const pmix_key_t key, const pmix_info_t info[],
                       size_t n, pmix_value_t **value) {
  static const char *const peers[] = { "0,1,2,3",  "",      "-1,7,9999999999999999999,x,,2",
                                       "1\033[2J", ",,,,,", "3-1" };
  uint8_t how = byte(&in);
  (void)p, (void)info, (void)n;
  *value = NULL;
  if (how == 255) return PMIX_ERR_NOT_FOUND;
  if (how == 254) return PMIX_SUCCESS; /* and no value */
  pmix_value_t *v = calloc(1, sizeof *v);
  if (!v) return PMIX_ERR_NOMEM;
  bool size = strcmp(key, PMIX_JOB_SIZE) == 0;
  v->type = how >= 240 ? PMIX_UINT64 : how >= 230 ? PMIX_UNDEF : size ? PMIX_UINT32 : PMIX_STRING;
  if (v->type == PMIX_STRING)
    v->data.string = how < 200 ? strdup(peers[how % 6]) : NULL;
  else if (v->type == PMIX_UINT32)
    v->data.uint32 = how < 200   ? 1 + how % 4U
                     : how < 210 ? UINT32_MAX
                     : how < 220 ? 0
                                 : (uint32_t)1 << 31;
  *value = v;
  return PMIX_SUCCESS;
}

pmix_status_t PMIx_Get_nb(const pmix_proc_t *p, const pmix_key_t key, const pmix_info_t info[],
                          size_t n, pmix_value_cbfunc_t then, void *ud) {
  char data[4096] = "";
  pmix_value_t v = { .type = PMIX_BYTE_OBJECT, .data.bo = { data, 0 } };
  uint8_t how = byte(&in);
  (void)p, (void)info, (void)n;
  for (size_t i = 0; i < nkept; i++)
    if (strcmp(kept[i].key, key) == 0) memcpy(data, kept[i].data, v.data.bo.size = kept[i].bytes);
  if (how >= 128 && how < 160) data[byte(&in) % 128] ^= (char)(1 << how % 8);
  if (how >= 160 && how < 176) memset(data, 0xff, sizeof data);
  if (how >= 176 && how < 192) memset(data + byte(&in), (char)byte(&in), 8);
  if (how >= 192 && how < 200) v.data.bo.size = byte(&in) * 4;
  if (how >= 200 && how < 208) v.type = PMIX_STRING;
  if (how >= 208 && how < 212) v.data.bo.bytes = NULL;
  if (how >= 212 && how < 220) return PMIX_ERR_NOT_FOUND;
  if (how >= 220 && how < 224) return PMIX_ERROR;
  bool none = v.data.bo.size == 0 || (how >= 224 && how < 232);
  then(none ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS, how >= 232 && how < 236 ? NULL : &v, ud);
  return PMIX_SUCCESS;
}

pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t n, const pmix_info_t info[], size_t k,
                            pmix_op_cbfunc_t then, void *ud) {
  (void)procs, (void)n, (void)info, (void)k;
  then(byte(&in) == 255 ? PMIX_ERROR : PMIX_SUCCESS, ud);
  return PMIX_SUCCESS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend_options o = MGRID_BACKEND_OPTIONS_INIT;
  in = (bytes){ data, data + size };
  nkept = 0;
  o.timeout = 0.01;
  mgrid_backend *b = mgrid_pmix_entry.open(&o, &e);
  fuzz_check_error(&e, !b);
  if (!b) return 0;
  int64_t world = b->world;
  mgrid_topology *t = mgrid_topology_new(world, NULL);
  const char *dim = "all";
  mgrid_dim dims[] = { { "all", world } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 1, dims, NULL);
  mgrid_family *all = mgrid_grid_along(g, 1, &dim, MGRID_GRID_ORDER, NULL);
  mgrid_topology_add(t, "all", all, NULL, NULL);
  mgrid_plan *plan = mgrid_plan_new(t, NULL);
  mgrid_state *s = mgrid_materialize(plan, b, "train", &e);
  fuzz_check_error(&e, !s);
  mgrid_error_clear(&e);
  mgrid_agree(b, plan, NULL, &e);
  fuzz_check_error(&e, false);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(plan);
  mgrid_family_free(all);
  mgrid_grid_free(g);
  mgrid_topology_free(t);
  return 0;
}
