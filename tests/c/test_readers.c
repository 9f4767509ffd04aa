/* SPDX-License-Identifier: MIT
**
** test_readers.c - machines from files of clusters: what each reader makes of a text, what it refuses, and trees of random
** switches, in which two hosts share a domain exactly if the test says so.
*/
#include "random.h"

#include "machine/model.h"
#include "machine/tree.h"

#include <time.h>

enum { CASES = 400, HOSTS = 40, SWITCHES = 12 };

typedef struct sample {
  const char *text, *words, *makes; /* the canonical text of the machine, or the message */
} sample;

static void check_all(const sample *s) {
  for (; s->text; s++) {
    char                 buf[1024];
    mgrid_error          err = MGRID_ERROR_INIT;
    mgrid_machine_model *m = mgrid_machine_read(s->text, strlen(s->text), "f", s->words, &err);
    if (m)
      mgrid_machine_describe(m, buf, sizeof buf);
    else
      snprintf(buf, sizeof buf, "%s", err.message);
    assert_string_equal(buf, s->makes);
    mgrid_machine_free(m);
  }
}

static void test_hostfile(void **unused) {
  (void)unused;
  static const sample samples[] = {
    { "n0 slots=4\nn1 slots=4 # two\n\n# none\nn2 slots=2\n", "", "node:3 gpu:2x4,2" },
    { "n0:4\nn1:4\n", "rail = gpu[50GB/s]", "node:2 gpu:4 rail = gpu[50GB/s]" },
    { "10.0.0.1\n10.0.0.2\r\n", "gpu:8", "node:2 gpu:8" },
    { "n0 slots=4\nn1\n", "", "node:2 gpu:4,1" },
    { "n0 slots=4 max_slots=8\n", "node[400GB/s]", "node:1[400GB/s] gpu:4" },
    { "n0\nn1\nn2\n", "nodes=n2,n0 gpu:2", "node:2 gpu:2" },
    { "n0\nn1\nn2\n", "gpu:2 nodes=n2,n0", "node:2 gpu:2" },
    { "n0 slots=4\nn1 slots=4\nn0 slots=2\n", "", "f:3: host 'n0' is there twice, first in line 1" },
    { "n0 slots=four\n", "", "f:1: slots=four is no number" },
    { "n0 8\n", "", "f:1: 'slots=8' or nothing expected behind host 'n0', not '8'" },
    { "n0 slots=100000\n", "", "f:1: host 'n0' has 1 to 65536 slots, not 100000" },
    { "n0 slots=4\n", "gpu:8", "f: level 'gpu' is there twice" },
    { "n0 slots=4\n", "rail = gpus", "f: unknown level 'gpus'; nearest is 'gpu' (node, gpu)" },
    { "n0\n", "nodes=n1", "f: nodes=: there is no host 'n1' in it" },
    { "n0\nn1\n", "nodes=n[0-1],n0", "f: nodes=: host 'n0' is there twice" },
    { "# none\n", "", "f: there is no host in it" },
    { "", "", "f: no reader of machines knows this text" },
    { "n0 lots=8\n", "", "f:1: 'slots=8' or nothing expected behind host 'n0', not 'lots=8'" },
    { "n0 slots = 8\n", "", "f:1: 'slots=8' or nothing expected behind host 'n0', not 'slots = 8'" },
    { "n0 slots=4 n1 slots=4\n", "", "f:1: 'slots=8' or nothing expected behind host 'n0', not 'n1 slots=4'" },
    { "n0 count=2 user=me\nn1 max-slots=4\nn2 Slots=3 max_slots=9\n", "", "node:3 gpu:2,4,3" },
    { "n0 slots=0\n", "", "f:1: host 'n0' has no slots: leave its line out" },
    { "n0:0\n", "", "f:1: host 'n0' has no slots: leave its line out" },
    { "node[01-04] slots=2\n", "", "f:1: a host expected, as 'n0 slots=8', not 'node[01-04]'" },
    { "rank 0=n0 slot=0\n", "", "f:1: this is a rankfile; its hosts are read from a hostfile, as 'n0 slots=8'" },
    { "what is this?\n", "", "f:1: 'slots=8' or nothing expected behind host 'what', not 'is this?'" },
    { NULL, NULL, NULL },
  };
  check_all(samples);
}

#define TREE \
  "# a tree\nSwitchName=s0 Nodes=n[0-1]\nswitchname=s1 nodes=n[2-3] LinkSpeed=1\nSwitchName=s2 \\\n  " \
  "Switches=s[0-1]\n"
#define BLOCKS "BlockName=b0 Nodes=n[01-03]\nBlockName=b1 Nodes=n[04-06]\nBlockSizes=3\n"

static void test_slurm(void **unused) {
  (void)unused;
  static const sample samples[] = {
    { TREE, "", "switch2:1 switch:2 node:2" },
    { TREE, "nodes=n3,n0,n2 gpu:2", "switch2:1 switch:2 node:2,1 gpu:2 ranks = 0..1,4..5,2..3" },
    { "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[2-3]\n"
      "SwitchName=s2 Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-1]\n",
      "gpu:8", "switch2:1 switch:2 node:2 gpu:8" },
    { "SwitchName=s0 Nodes=n0\nSwitchName=s1 Switches=s0 \nSwitchName=top Switches=s1,s2\nSwitchName=s2 Nodes=n[1-2]\n",
      "", "switch3:1 switch2:2 switch:1 node:1,2" },
    { BLOCKS, "gpu:4", "block:2 node:3 gpu:4" },
    { TREE BLOCKS, "topology=tree", "switch2:1 switch:2 node:2" },
    { TREE BLOCKS, "topology=block", "block:2 node:3" },
    { TREE BLOCKS, "",
      "f: it has a tree of switches and blocks: topology=tree or topology=block behind the file's name chooses" },
    { TREE, "topology=ring", "f: unknown topology 'ring'; known: tree, block" },
    { "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Switches=s2,s0\nSwitchName=s2 Switches=s1\n", "",
      "f:2: switch 's1' is below itself: s1 < s2 < s1" },
    { "SwitchName=s0 Nodes=n0\nSwitchName=s1 Switches=s2\nSwitchName=s2 Switches=s1\n", "",
      "f:2: switch 's1' is below itself: s1 < s2 < s1" },
    { "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[1-2]\n", "",
      "f:2: host 'n1' is below switch 's1', and below 's0' already" },
    { "SwitchName=s0 Nodes=n0\nSwitchName=s0 Nodes=n1\n", "", "f:2: switch 's0' is there twice, first in line 1" },
    { "SwitchName=top Switches=s[0-1]\nSwitchName=s0 Nodes=n0\n", "",
      "f:1: switch 's1' is named here and has no line of its own: the file may be cut short" },
    { "SwitchName=s0 Nodes=n[0-\n", "", "f:1: a list of names, as n[1-4,08],m1, expected, not '[0-'" },
    { "SwitchName=s0 Nodes=n[5-1]\n", "", "f:1: a list of names, as n[1-4,08],m1, expected, not '-1]'" },
    { "SwitchName=s0\n", "", "f:1: switch 's0' has no Nodes= and no Switches=" },
    { "SwitchName=s0 Nodes=n0\nNodes=n1\n", "", "f:2: SwitchName= or BlockName= expected, not 'Nodes=n1'" },
    { "SwitchName=s0 Nodes= n[0-1]\n", "",
      "f:1: Key=value expected, without blanks around = and without quotes, not 'n[0-1]'" },
    { "SwitchName=s0 Nodes =n[0-1]\n", "",
      "f:1: Key=value expected, without blanks around = and without quotes, not 'Nodes =n[0-1]'" },
    { "SwitchName=s0 Nodes=\"n[0-1]\"\n", "",
      "f:1: Key=value expected, without blanks around = and without quotes, not 'Nodes=\"n[0-1]\"'" },
    { "SwitchName=s0 Nodes=\n", "", "f:1: switch 's0' has no Nodes= and no Switches=" },
    { "SLURM_JOB_NODELIST=n[0-3]\n", "gpu:2", "node:4 gpu:2" },
    { "0: SLURM_JOB_NODELIST=n[0-3]\n0: SLURM_TOPOLOGY_ADDR=s2.s0.n0\n1: SLURM_TOPOLOGY_ADDR=s2.s1.n1\n"
      "2: SLURM_TOPOLOGY_ADDR=s2.s0.n2\n3: SLURM_TOPOLOGY_ADDR=s2.s1.n3\n",
      "", "switch2:1 switch:2 node:2 ranks = 0,2,1,3" },
    { "SLURM_TOPOLOGY_ADDR=b0.n0\nSLURM_TOPOLOGY_ADDR_PATTERN=block.node\nSLURM_TOPOLOGY_ADDR=b1.n1\n", "",
      "block:2 node:1" },
    { "SLURM_JOB_NODELIST=n[0-2]\nSLURM_TOPOLOGY_ADDR=s0.n0\nSLURM_TOPOLOGY_ADDR=s0.n1\n", "",
      "f:1: nodes=: there is no host 'n2' in it" },
    { NULL, NULL, NULL },
  };
  check_all(samples);
}

#define YAML \
  "---\n- topology: fat\n  cluster_default: true\n  tree:\n    switches:\n      - switch: sw_root\n        children: " \
  "s[1-2]\n" \
  "      - switch: s1\n        nodes: node[01-02]\n      - switch: s2\n        nodes: \"node[03-04]\"\n"
#define YAML2 \
  "- topology: nvl\n  cluster_default: false\n  block:\n    block_sizes:\n      - 4\n      - 16\n    blocks:\n" \
  "      - block: b1\n        nodes: node[01-03]\n      - block: b2\n        nodes: node04\n"

static void test_yaml(void **unused) {
  (void)unused;
  static const sample samples[] = {
    { YAML, "gpu:4", "switch2:1 switch:2 node:2 gpu:4" },
    { YAML2, "", "block:2 node:3,1" },
    { YAML YAML2, "topology=nvl", "block:2 node:3,1" },
    { YAML YAML2, "topology=fat", "switch2:1 switch:2 node:2" },
    { YAML YAML2, "", "f: it has 2 topologies (fat, nvl): topology=NAME behind the file's name chooses one" },
    { YAML YAML2, "topology=nvm", "f: unknown topology 'nvm'; known: fat, nvl" },
    { "- topology: a\n  tree:\n    switches:\n      - switch: s\n        children: t\n", "",
      "f:5: switch 't' is named here and has no entry of its own: the file may be cut short" },
    { "- topology: a\n  tree:\n    switches:\n      - nodes: n1\n", "",
      "f:4: 'nodes:' before the name of a switch or block" },
    { "- topology: a\n  tree:\n    swithces:\n", "",
      "f:3: unknown key 'swithces'; known: topology, tree, block, switches, blocks, switch, block, children, nodes, "
      "block_sizes, cluster_default" },
    { "- topology: a\n  tree\n", "", "f:2: 'key: value' expected, not 'tree'" },
    { NULL, NULL, NULL },
  };
  check_all(samples);
}

#define NODE(name, devices) "{\"metadata\": {\"name\": \"" name "\"}, \"status\": {\"allocatable\": {" devices "}}}"
#define GPUS(n)             "\"nvidia.com/gpu\": \"" n "\""

static void test_json(void **unused) {
  (void)unused;
  static const sample samples[] = {
    { "{\"levels\": [{\"name\": \"node\", \"counts\": [2], \"bandwidth\": 4e11, \"domains\": [\"a\", \"b\"]},\n"
      " {\"name\": \"gpu\", \"counts\": [3, 4]}], \"crossings\": [{\"name\": \"rail\", \"of\": \"gpu\"}], \"ranks\": "
      "[6, 5, 0]}",
      "", "node:2[400GB/s] gpu:3,4 rail = gpu ranks = 6,5,0" },
    { "{\"levels\": [{\"name\": \"node\"}]}", "", "f: counts: a list of integers expected" },
    { "{\"levels\": [{\"name\": \"node\", \"counts\": [2], \"domains\": [\"a\"]}]}", "",
      "f: domains: as many names as the level has domains expected" },
    { "{\"levels\": [{\"name\": \"node\", \"counts\": [2]", "", "f:1: '}' expected near end of file" },
    { "{\"10.0.0.1\": \"sw-3\", \"10.0.0.2\": \"sw-4\", \"10.0.0.3\": \"sw-3\"}", "gpu:2",
      "switch:2 node:2,1 gpu:2 ranks = 0..1,4..5,2..3" },
    { "{\"10.0.0.1\": \"sw-3\", \"10.0.0.1\": \"sw-4\"}", "", "f:1: duplicate object key near '\"10.0.0.1\"'" },
    { "{\"10.0.0.1\": 3}", "", "f: node '10.0.0.1': the name of its switch expected" },
    { "[]", "", "f: the map: an object that names the switch of each node, {\"10.0.0.1\": \"sw-3\"}, expected" },
    { "{\"kind\": \"List\", \"items\": [\n"
      "{\"metadata\": {\"name\": \"a\", \"labels\": {\"nvidia.com/gpu.clique\": \"u.1\"}}, \"status\": "
      "{\"allocatable\": {\"nvidia.com/gpu\": \"4\"}}},\n"
      "{\"metadata\": {\"name\": \"b\", \"labels\": {\"nvidia.com/gpu.clique\": \"u.1\"}}, \"status\": "
      "{\"allocatable\": {\"nvidia.com/gpu\": \"4\"}}},\n"
      "{\"metadata\": {\"name\": \"c\", \"labels\": {\"nvidia.com/gpu.clique\": \"u.2\", \"nvidia.com/gpu.count\": "
      "\"4\"}}}]}",
      "", "clique:2 node:2,1 gpu:4" },
    { "{\"items\": [" NODE("cp", "\"cpu\": \"8\"") ", " NODE("a", GPUS("4")) ", " NODE("b", GPUS("0")) "]}", "",
      "node:1 gpu:4" },
    { "{\"items\": [" NODE("cp", "\"cpu\": \"8\"") ", " NODE("a", GPUS("4")) "]}", "nodes=a,cp", "node:2 gpu:4,1" },
    { "{\"items\": [" NODE("a", "\"cpu\": \"8\", \"google.com/tpu\": \"4\"") "]}", "",
      "f: no node has nvidia.com/gpu or amd.com/gpu that is allocatable, and 'google.com/tpu' is not read; levels are "
      "written as 'node:4 gpu:8'" },
    { "{\"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}}", "", "node:1" },
    { "{\"items\": [{\"metadata\": {}}]}", "", "f: items: nodes with metadata.name expected" },
    { NULL, NULL, NULL },
  };
  check_all(samples);
}

#define Q(uuid, clique) \
  "==============NVSMI LOG==============\n\nAttached GPUs                             : 2\n" \
  "GPU 00000000:01:00.0\n    Fabric\n        CliqueId                          : " clique \
  "\n        ClusterUUID                       : " uuid "\n" \
  "GPU 00000000:02:00.0\n    Fabric\n        CliqueId                          : " clique \
  "\n        ClusterUUID                       : " uuid "\n"
#define NONE "00000000-0000-0000-0000-000000000000"

#define GPU(name)       "<object type=\"PCIDev\"><object type=\"OSDev\" name=\"" name "\"/></object>"
#define PACKAGE(inside) "<object type=\"Package\"><object type=\"Core\"/>" inside "</object>"

static void test_gpus(void **unused) {
  (void)unused;
  static const sample samples[] = {
    { "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\nGPU0\t X \tNV4\tSYS\tSYS\tPXB\t0-15\nGPU1\tNV4\t X "
      "\tSYS\tSYS\tPXB\t0-15\n"
      "GPU2\tSYS\tSYS\t X \tNV4\tSYS\t16-31\nGPU3\tSYS\tSYS\tNV4\t X \tSYS\t16-31\nNIC0\tPXB\tPXB\tSYS\tSYS\t "
      "X\n\nLegend:\n",
      "", "node:* nvlink:2 gpu:2" },
    { "\t\033[4mGPU0\tGPU1\tCPU Affinity\033[0m\nGPU0\t X \tNV18\t0-15\nGPU1\tNV18\t X \t0-15\nLegend:\n", "rail = gpu",
      "node:* nvlink:1 gpu:2 rail = gpu" },
    { "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-15\n", "", "f: 1 rows of 2 GPUs: the text may be cut short" },
    { "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tWAT\nGPU1\tNV18\t X \n", "",
      "f:2: 'WAT' is no link of two GPUs, as NV18 or SYS" },
    { "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tSYS\tNV2\nGPU1\tSYS\t X \tSYS\nGPU2\tNV2\tSYS\t X \n", "",
      "f: GPUs of one NVLink domain do not follow each other: GPU2 is of that of GPU0" },
    { "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\t X \tSYS\tSYS\tNV4\nGPU1\tSYS\t X \tNV4\tSYS\n"
      "GPU2\tSYS\tNV4\t X \tSYS\nGPU3\tNV4\tSYS\tSYS\t X \n",
      "", "f: GPUs of one NVLink domain do not follow each other: GPU3 is of that of GPU0" },
    { Q("2e9b", "1") Q("2e9b", "1") Q("2e9b", "2"), "", "clique:2 node:2,1 gpu:2" },
    { Q(NONE, "0"), "", "node:1 gpu:2" },
    { "NVSMI LOG\nAttached GPUs  : 2\nGPU 00000000:01:00.0\n", "", "f:3: 1 of 2 GPUs: the text may be cut short" },
    { "<system version=\"1\"><cpu numaid=\"0\"><pci><gpu dev=\"0\"/></pci><pci><gpu dev=\"1\"/></pci></cpu>\n"
      "<cpu numaid=\"1\"><pci><gpu dev=\"2\"/></pci><gpu dev=\"3\"></gpu></cpu><cpu/></system>",
      "", "node:* cpu:2 gpu:2" },
    { "<system><cpu><gpu/></cpu><cpu><gpu/><gpu/></cpu></system>", "", "f: its cpus hold different numbers of gpus" },
    { "<system><cpu><gpu/>\n", "", "f:2: it ends within <cpu>: the text may be cut short" },
    { "<system><cpu></system>", "", "f:1: </system> closes nothing" },
    { "<system></system>", "", "f: no gpu is in it" },
    { "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\"><object "
      "type=\"Machine\">"
      "<object type=\"Package\"><object type=\"Core\"/><object type=\"Core\"/><object type=\"OSDev\" name=\"cuda0\"/>"
      "<object type=\"OSDev\" name=\"nvml0\"/></object><object type=\"Package\"><object type=\"OSDev\" "
      "name=\"nvml1\"/></object>"
      "</object></topology>",
      "", "node:* package:2 gpu:1" },
    { "<system><cpu host_hash=\"0x1\"><gpu/></cpu><cpu host_hash=\"0x1\"><gpu/></cpu>\n"
      "<cpu host_hash='0x2'><gpu/></cpu></system>",
      "", "f:2: CPUs of several hosts, 0x1 and 0x2: a topology of one node is read" },
    { "<system><cpu><gpu dev=\"0\"/><gpu dev=\"2\"/></cpu>\n<cpu><gpu dev=\"1\"/><gpu dev=\"3\"/></cpu></system>", "",
      "f:2: GPU 1 is behind GPU 2: GPUs of one part do not follow each other" },
    { "<topology><object name=\"a type=x b\" type = \"y\"/><object name=\"a type=x b\" type=\"Package\">"
      "<object type=\"Core\"/></object><object name=' type=\"Core\" ' type='Package'><object "
      "type='Core'/></object></topology>",
      "", "node:* package:2 core:1" },
    { "<topology>" PACKAGE(GPU("nvml0")) "\n" PACKAGE(GPU("nvml1")) GPU("nvml2") GPU("nvml3") "</topology>", "",
      "f:2: a GPU is in none of the 2 packages: the nearest is not known" },
    { "<topology>" PACKAGE("") GPU("nvml0") GPU("nvml1") "</topology>", "", "node:* package:1 gpu:2" },
    { "<topology>" PACKAGE(GPU("ze0") GPU("ze0.0")) PACKAGE(GPU("ze1")) "</topology>", "", "node:* package:2 gpu:1" },
    { "<topology>" PACKAGE(GPU("nvml0") GPU("nvml2")) PACKAGE(GPU("nvml1") GPU("nvml3")) "</topology>", "",
      "f:1: GPU 1 is behind GPU 2: GPUs of one part do not follow each other" },
    { "<topology><object type=\"Machine\"><object type=\"Package\"><object type=\"Core\"/><object "
      "type=\"Core\"/></object></object>"
      "<!-- <broken --></topology>",
      "", "node:* package:1 core:2" },
    { NULL, NULL, NULL },
  };
  check_all(samples);
}

/* --------------------------------------------------------------------- limits */

/* What a short text may make, and what is above it: texts that lists and numbers make larger. */
static void test_limits(void **unused) {
  (void)unused;
#define LEVELS14 "s1.s2.s3.s4.s5.s6.s7.s8.s9.s10.s11.s12.s13.s14"
  static const sample samples[] = {
    { "SwitchName=s1 Nodes=n[1-8000][1-8000]\n", "",
      "f:1: the lists of its names have more than 262182: 262144, and one for each of its bytes" },
    { "SLURM_JOB_NODELIST=n[0-99999999999]\n", "",
      "f:1: the lists of its names have more than 262180: 262144, and one for each of its bytes" },
    { "- topology: a\n  tree:\n    switches:\n    - switch: s\n      nodes: n[1-200000],n[1-200000]\n", "",
      "f:5: the lists of its names have more than 262233: 262144, and one for each of its bytes" },
    { "n0\n", "nodes=n0,n[0-999999]", "f: nodes=: host 'n0' is there twice" },
    { "SwitchName=s1 Nodes=n[1-200000]\n", "", "switch:1 node:200000" },
    { "SLURM_TOPOLOGY_ADDR=" LEVELS14 ".n0\n", "", "f: 14 levels of switches above a host are more than 13" },
    { "n0\n", "a:4194305x1", "f: character 3: at most 4194304 numbers in all levels expected, not '4194305x1'" },
    { "n0\n", "ranks = 0..16777216",
      "f: character 9: places from low to high, at most 16777216, expected, not '0..16777216'" },
    { NULL, NULL, NULL },
  };
  check_all(samples);
}

/* A chain of switches with a host at each is refused at once, however long. */
static void test_chain(void **unused) {
  (void)unused;
  enum { LENGTH = 100000 };
  mgrid_text  t = { 0 };
  mgrid_error err = MGRID_ERROR_INIT;
  for (int i = 0; i < LENGTH; i++)
    mgrid_text_add(&t, "SwitchName=s%d Switches=s%d,t%d\nSwitchName=t%d Nodes=n%d\n", i, i + 1, i, i, i);
  mgrid_text_add(&t, "SwitchName=s%d Nodes=n\n", LENGTH);
  clock_t began = clock();
  assert_null(mgrid_machine_read(mgrid_text_chars(&t), t.len, "f", "", &err));
  assert_string_equal(err.message, "f: 14 levels of switches above a host are more than 13");
  assert_true(clock() - began < 20 * CLOCKS_PER_SEC); /* 0.2 s; from switch to switch for each host, minutes */
  mgrid_text_free(&t);
}

/* ------------------------------------------------------------- random trees */

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
  for (int i = 0; i < f->hosts; i++) f->of[i] = i < f->switches ? i : (int)rng_between(r, 0, f->switches - 1);
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
    int  s = (int)order[k];
    bool some = false;
    for (int i = 0; i < f->switches; i++) some |= f->above[i] == s;
    if (some) { /* hosts directly below it have a switch between, as Slurm wants, or its own line would be said twice */
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
    rng         r = rng_new(seed);
    forest      f;
    mgrid_text  t = { 0 }, list = { 0 };
    mgrid_error err = MGRID_ERROR_INIT;
    size_t      order[HOSTS];
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
          bool same = in(&f, (int)order[a], (int)(node - l)) == in(&f, (int)order[b], (int)(node - l));
          check(&r, (mgrid_machine_domain(m, (size_t)l, a) == mgrid_machine_domain(m, (size_t)l, b)) == same);
        }
    char own[16];
    for (int a = 0; a < f.hosts; a++) {
      snprintf(own, sizeof own, "h%03d", (int)order[a]);
      const char *name = mgrid_machine_domain_name(m, (size_t)node, mgrid_machine_domain(m, (size_t)node, a));
      check(&r, name && strcmp(name, own) == 0);
    }
    /* what json.c writes is read back as the same machine */
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
    mgrid_text_free(&x), mgrid_text_free(&y), mgrid_text_free(&t), mgrid_text_free(&list), mgrid_text_free(&json);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_hostfile), cmocka_unit_test(test_slurm), cmocka_unit_test(test_yaml),
    cmocka_unit_test(test_json),     cmocka_unit_test(test_gpus),  cmocka_unit_test(test_trees),
    cmocka_unit_test(test_limits),   cmocka_unit_test(test_chain),
  };
  return run_program("readers", tests, argc, argv);
}
