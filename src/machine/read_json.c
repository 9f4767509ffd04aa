/* SPDX-License-Identifier: MIT
**
** read_json.c - machines in JSON: what json.c writes; the nodes of a cluster by `kubectl get nodes -o json`, whose label
** nvidia.com/gpu.clique is their NVLink domain; and dlrover's map of nodes to switches, {"10.0.0.1": "sw-3"}.
*/
#include "machine/tree.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool is_json(const char *text) {
  text += strspn(text, " \t\r\n");
  return *text == '{' || *text == '[';
}

static json_t *parse(mgrid_tree *t, const char *text, size_t length) {
  json_error_t why;
  json_t      *all = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
  if (!all) mgrid_tree_fault(t, why.line > 0 ? why.line : 0, MGRID_BAD_VALUE, "%s", why.text);
  return all;
}

static const char *text_of(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

/* ----------------------------------------------------------------------- ours */

static bool is_ours(const char *text, size_t length) {
  (void)length;
  return is_json(text) && strstr(text, "\"levels\"");
}

static mgrid_status refuse(mgrid_tree *t, const char *where, const char *expected) {
  return mgrid_tree_fault(t, 0, MGRID_BAD_VALUE, "%s: %s expected", where, expected);
}

static mgrid_link link_of(const json_t *object) {
  const json_t *b = json_object_get(object, "bandwidth"), *l = json_object_get(object, "latency");
  return (mgrid_link){ json_is_number(b) ? json_number_value(b) : 0, json_is_number(l) ? json_number_value(l) : 0 };
}

/* A list of integers, to be freed; NULL after a refusal. */
static int64_t *integers(mgrid_tree *t, const json_t *list, const char *where, size_t *n) {
  *n = json_array_size(list);
  int64_t *all = malloc((*n + 1) * sizeof *all);
  if (!all) return mgrid_oom(t->err), NULL;
  for (size_t i = 0; i < *n; i++) {
    const json_t *one = json_array_get(list, i);
    all[i] = json_integer_value(one);
    if (json_is_integer(one) && all[i] >= 0 && all[i] <= MGRID_WORLD_MAX) continue;
    free(all);
    return refuse(t, where, "a list of integers from 0"), NULL;
  }
  if (*n) return all;
  free(all);
  return refuse(t, where, "a list of integers"), NULL;
}

static mgrid_status add_level(mgrid_tree *t, mgrid_machine_model *m, const json_t *level) {
  const char *name = text_of(level, "name");
  size_t      n;
  if (!name) return refuse(t, "levels", "objects with a name and counts");
  int64_t *counts = integers(t, json_object_get(level, "counts"), "counts", &n);
  if (!counts) return t->err->status;
  mgrid_status  s = mgrid_machine_add(m, name, n, counts, link_of(level), t->err);
  const json_t *names = json_object_get(level, "domains");
  free(counts);
  if (s || !names) return s;
  mgrid_tier *tier = &m->tier[m->ntiers - 1];
  if (!json_is_array(names) || (int64_t)json_array_size(names) != tier->domains)
    return refuse(t, "domains", "as many names as the level has domains");
  for (int64_t d = 0; d < tier->domains && !s; d++) {
    const char *one = json_string_value(json_array_get(names, (size_t)d));
    if (one) s = mgrid_machine_name_domain(m, m->ntiers - 1, d, one, t->err);
  }
  return s;
}

static mgrid_status add_crossing(mgrid_tree *t, mgrid_machine_model *m, const json_t *x) {
  const char   *name = text_of(x, "name"), *of = text_of(x, "of");
  const json_t *share = json_object_get(x, "share");
  if (!name || !of) return refuse(t, "crossings", "objects with a name and the level `of`");
  return mgrid_machine_add_crossing(m, name, of, share ? json_integer_value(share) : 1, text_of(x, "in"), link_of(x),
                                    t->err);
}

static mgrid_status add_ranks(mgrid_tree *t, mgrid_machine_model *m, const json_t *ranks) {
  size_t   n;
  int64_t *list = integers(t, ranks, "ranks", &n);
  int32_t *at = list ? malloc((n + 1) * sizeof *at) : NULL;
  for (size_t i = 0; i < n && at; i++) at[i] = (int32_t)list[i];
  free(list);
  if (at) return mgrid_machine_set_ranks(m, (int64_t)n, at, t->err);
  return t->err->status ? t->err->status : mgrid_oom(t->err);
}

static mgrid_status make(mgrid_tree *t, mgrid_machine_model *m, const json_t *all) {
  mgrid_status s = MGRID_OK;
  size_t       i;
  json_t      *one, *ranks = json_object_get(all, "ranks");
  if (!json_is_array(json_object_get(all, "levels"))) return refuse(t, "levels", "a list");
  json_array_foreach(json_object_get(all, "levels"), i, one) if (!s) s = add_level(t, m, one);
  if (!s) s = mgrid_machine_finish(m, t->err);
  json_array_foreach(json_object_get(all, "crossings"), i, one) if (!s) s = add_crossing(t, m, one);
  return s || !ranks ? s : add_ranks(t, m, ranks);
}

static mgrid_status read_ours(mgrid_tree *t, const char *text, size_t length, const char *choice,
                              mgrid_machine_model **made) {
  json_t *all = parse(t, text, length);
  (void)choice;
  *made = all ? mgrid_machine_alloc(t->err) : NULL;
  mgrid_status s = *made ? make(t, *made, all) : t->err->status;
  json_decref(all);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_json;
const mgrid_machine_reader mgrid_reads_json = { "json", "what moongrid machine --json prints", is_ours, read_ours };

/* -------------------------------------------------------------------- kubectl */

static bool is_kubectl(const char *text, size_t length) {
  (void)length;
  return is_json(text) && strstr(text, "\"metadata\"") && (strstr(text, "\"items\"") || strstr(text, "\"Node\""));
}

static int64_t gpus_of(const json_t *node) {
  const json_t *allocatable = json_object_get(json_object_get(node, "status"), "allocatable");
  const char   *count = text_of(json_object_get(json_object_get(node, "metadata"), "labels"), "nvidia.com/gpu.count");
  const char   *gpus = text_of(allocatable, "nvidia.com/gpu");
  if (!gpus) gpus = text_of(allocatable, "amd.com/gpu");
  if (!gpus) gpus = count;
  return gpus && strlen(gpus) < 6 ? strtol(gpus, NULL, 10) : 0;
}

/* Nodes without the GPUs that others have, such as the control plane, get no ranks. */
static mgrid_status add_node(mgrid_tree *t, const json_t *node, bool gpus) {
  const json_t *meta = json_object_get(node, "metadata");
  const char *name = text_of(meta, "name"), *clique = text_of(json_object_get(meta, "labels"), "nvidia.com/gpu.clique");
  int32_t     above = -1;
  if (!name) return refuse(t, "items", "nodes with metadata.name");
  if (clique && (above = mgrid_tree_node_of(t, false, clique, 0)) < 0) return t->err->status;
  if (!gpus || gpus_of(node) > 0) return mgrid_tree_add_host(t, name, above, gpus_of(node), 0);
  return mgrid_tree_node_of(t, true, name, 0) < 0 ? t->err->status : MGRID_OK;
}

/* No node has GPUs: refuse devices of another name, "google.com/tpu", of which nobody knows how many a rank has. */
static mgrid_status check_devices(mgrid_tree *t, const json_t *node) {
  const char *name;
  json_t     *value;
  json_object_foreach(
      json_object_get(json_object_get(node, "status"), "allocatable"), name,
      value) if (strchr(name, '/')) return mgrid_tree_fault(t, 0, MGRID_REFUSED,
                                                            "no node has nvidia.com/gpu or amd.com/gpu that is "
                                                            "allocatable, and '%.60s' is not read; levels are "
                                                            "written as 'node:4 gpu:8'",
                                                            name);
  return MGRID_OK;
}

static mgrid_status read_kubectl(mgrid_tree *t, const char *text, size_t length, const char *choice,
                                 mgrid_machine_model **made) {
  json_t       *all = parse(t, text, length), *one;
  const json_t *items = json_object_get(all, "items");
  mgrid_status  s = all ? MGRID_OK : t->err->status;
  size_t        i;
  (void)choice, (void)made;
  t->above = "clique";
  bool gpus = gpus_of(all) > 0;
  json_array_foreach(items, i, one) gpus |= gpus_of(one) > 0;
  json_array_foreach(items, i, one) if (!s && !gpus) s = check_devices(t, one);
  if (!s && !items) s = add_node(t, all, gpus);
  json_array_foreach(items, i, one) if (!s) s = add_node(t, one, gpus);
  json_decref(all);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_kubectl;
const mgrid_machine_reader mgrid_reads_kubectl = { "kubectl", "kubectl get nodes -o json, by nvidia.com/gpu.clique",
                                                   is_kubectl, read_kubectl };

/* -------------------------------------------------------------------- dlrover */

static bool is_map(const char *text, size_t length) {
  (void)length;
  return is_json(text);
}

static mgrid_status read_map(mgrid_tree *t, const char *text, size_t length, const char *choice,
                             mgrid_machine_model **made) {
  json_t      *all = parse(t, text, length), *value;
  mgrid_status s = all ? MGRID_OK : t->err->status;
  const char  *key;
  (void)choice, (void)made;
  if (all && (!json_is_object(all) || json_object_size(all) == 0))
    s = refuse(t, "the map", "an object that names the switch of each node, {\"10.0.0.1\": \"sw-3\"},");
  json_object_foreach(all, key, value) {
    if (s) continue;
    const char *name = json_string_value(value);
    int32_t     above = name ? mgrid_tree_node_of(t, false, name, 0) : -1;
    s = !name       ? mgrid_tree_fault(t, 0, MGRID_BAD_VALUE, "node '%.60s': the name of its switch expected", key)
        : above < 0 ? t->err->status
                    : mgrid_tree_add_host(t, key, above, 0, 0);
  }
  json_decref(all);
  return s;
}

extern const mgrid_machine_reader mgrid_reads_dlrover;
const mgrid_machine_reader        mgrid_reads_dlrover = { "dlrover", "{\"node_ip\": \"switch\"}", is_map, read_map };
