/* SPDX-License-Identifier: MIT
**
** test_readers.c - machines from files of clusters by mgrid_machine_read: trees of random switches,
** in which two hosts share a domain exactly if the test says so, and a text that is not there. What
** each reader makes of a text is in tests/lua/readers_spec.lua.
*/
#include "random.h"

#include "machine/model.h"

enum { CASES = 400, HOSTS = 40, SWITCHES = 12 };

typedef struct forest {
  int hosts, switches, above[SWITCHES], of[HOSTS]; /* -1: none */
} forest;

static int depth_of(const forest *f, int s) { return s < 0 ? 0 : 1 + depth_of(f, f->above[s]); }

static void draw_forest(rng *r, forest *f) {
  f->switches = (int)rng_between(r, 1, SWITCHES);
  f->hosts = (int)rng_between(r, f->switches, HOSTS);
  for (int i = 0; i < f->switches; i++) {
    f->above[i] = i == 0 || rng_chance(r, 15) ? -1 : (int)rng_between(r, 0, i - 1);
    if (depth_of(f, i) > 5) f->above[i] = 0;
  }
  for (int i = 0; i < f->hosts; i++)
    f->of[i] = i < f->switches ? i : (int)rng_between(r, 0, f->switches - 1);
}

/* The height of a switch over its hosts: every one has a host. */
static int height_of(const forest *f, int s) {
  int most = 0;
  for (int i = 0; i < f->switches; i++)
    if (f->above[i] == s && height_of(f, i) > most) most = height_of(f, i);
  return most + 1;
}

/* What a host is in at a height: a switch, or itself (-1 - host). */
static int in(const forest *f, int host, int height) {
  int at = -1 - host;
  for (int s = f->of[host]; s >= 0 && height_of(f, s) <= height; s = f->above[s]) at = s;
  return at;
}

static void write_conf(rng *r, const forest *f, mgrid_text *t) {
  size_t order[SWITCHES];
  for (int i = 0; i < f->switches; i++) order[i] = (size_t)i;
  rng_shuffle(r, (size_t)f->switches, order);
  for (int k = 0; k < f->switches; k++) {
    int s = (int)order[k];
    bool some = false;
    for (int i = 0; i < f->switches; i++) some |= f->above[i] == s;
    /* hosts directly below it have a switch between, as Slurm wants, or its own line would be said
    ** twice */
    if (some) {
      mgrid_text_add(t, "SwitchName=s%d Switches=", s);
      for (int i = 0, n = 0; i < f->switches; i++)
        if (f->above[i] == s) mgrid_text_add(t, "%ss%d", n++ ? "," : "", i);
    } else {
      mgrid_text_add(t, "SwitchName=s%d Nodes=", s);
      for (int i = 0, n = 0; i < f->hosts; i++)
        if (f->of[i] == s) mgrid_text_add(t, "%sh%03d", n++ ? "," : "", i);
    }
    mgrid_text_str(t, "\n");
  }
}

/* Keep hosts below leaves alone. */
static void settle(forest *f) {
  for (int i = 0; i < f->hosts; i++)
    for (int k = 0; k < f->switches; k++)
      if (f->above[k] == f->of[i]) f->of[i] = k, k = -1;
}

static void test_trees(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    forest f;
    mgrid_text t = { 0 }, list = { 0 };
    mgrid_error err = MGRID_ERROR_INIT;
    size_t order[HOSTS];
    draw_forest(&r, &f);
    settle(&f);
    write_conf(&r, &f, &t);
    for (int i = 0; i < f.hosts; i++) order[i] = (size_t)i;
    rng_shuffle(&r, (size_t)f.hosts, order);
    mgrid_text_str(&list, "nodes=");
    for (int i = 0; i < f.hosts; i++) mgrid_text_add(&list, "%sh%03d", i ? "," : "", (int)order[i]);
    mgrid_machine_model *m = mgrid_machine_read(t.data, t.len, "f", list.data, &err);
    if (!m) fail_msg("%s in\n%s; MOONGRID_SEED=%" PRIu64, err.message, t.data, seed);
    int64_t node = mgrid_machine_find(m, "node");
    for (int64_t l = 0; l <= node; l++)
      for (int a = 0; a < f.hosts; a++)
        for (int b = 0; b < f.hosts; b++) {
          bool same = in(&f, (int)order[a], (int)(node - l))
                      == in(&f, (int)order[b], (int)(node - l));
          check(&r, (mgrid_machine_domain(m, (size_t)l, a) == mgrid_machine_domain(m, (size_t)l, b))
                        == same);
        }
    char own[16];
    for (int a = 0; a < f.hosts; a++) {
      snprintf(own, sizeof own, "h%03d", (int)order[a]);
      const char *name =
          mgrid_machine_domain_name(m, (size_t)node, mgrid_machine_domain(m, (size_t)node, a));
      check(&r, name && strcmp(name, own) == 0);
    }
    /* what mgrid_machine_json writes is read back as the same machine */
    mgrid_text json = { 0 };
    check(&r, mgrid_machine_print_json(m, mgrid_text_sink, &json, &err) == MGRID_OK);
    mgrid_machine_model *again = mgrid_machine_read(json.data, json.len, "j", NULL, &err);
    check(&r, again != NULL);
    mgrid_text x = { 0 }, y = { 0 };
    mgrid_machine_text(m, &x);
    mgrid_machine_text(again, &y);
    check(&r, strcmp(x.data, y.data) == 0);
    mgrid_machine_free(again);
    mgrid_machine_free(m);
    mgrid_text_free(&x), mgrid_text_free(&y), mgrid_text_free(&t), mgrid_text_free(&list),
        mgrid_text_free(&json);
  }
}

static void test_arguments(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  assert_null(mgrid_machine_read(NULL, 3, "f", "", &err));
  assert_int_equal(err.status, MGRID_USAGE);
  mgrid_error_clear(&err);
  mgrid_machine_model *m = mgrid_machine_read("n0 slots=4\n# and no zero", 10, NULL, NULL, &err);
  assert_non_null(m);
  assert_int_equal(mgrid_machine_places(m), 4);
  mgrid_machine_free(m);
  assert_null(mgrid_machine_read("n0 slot=4", 9, NULL, NULL, &err));
  assert_string_equal(err.message, "machine:1: in a list of hosts 'slots=8' or nothing is expected "
                                   "after host 'n0', not 'slot=4'");
  assert_int_equal(err.status, MGRID_BAD_VALUE);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_trees),
                                      cmocka_unit_test(test_arguments) };
  return run_program("readers", tests, argc, argv);
}
