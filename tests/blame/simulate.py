#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs that hang, simulated: simulate.py SEED N [gloo] [rival]. Ranks of a random layout of a system (tensor, context, expert,
data, pipeline) run a random step in order, a fault is put into one step of some ranks, and the job runs until nothing moves.
Each rank's last calls are written as a dump (version 2.10) and given to `moongrid blame`, whose verdict is compared with the
fault. Prints the cases that are wrong and the sums; MOONGRID is the command (build/moongrid). With gloo the dumps are those of
gloo, which have no sends and receives, no states and no members. As in recorded hangs, a call that does not fit may abort a
process, an error may end the calls of its peers, and a dump may be missing, older, cut short, or have few calls. With rival
torch's own analyzer reads the same dumps."""
import collections
import contextlib
import functools
import io
import json
import logging
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile

KINDS = {"skip": ["skip"], "stopped": ["gone"], "killed": ["gone"], "slow": ["stall"], "loader_stall": ["stall"], "wrong_size": ["mismatch"],
         "wrong_dtype": ["mismatch"], "other_op": ["mismatch"], "swap_one": ["order"], "swap_half": ["order"], "extra": ["extra"],
         "send_no_recv": ["peer"], "recv_wrong_peer": ["peer"], "exception_barrier": ["elsewhere", "skip"], "group_ahead": ["ahead", "stall"],
         "wrong_group": ["other_group"], "wrong_root": ["inside", "mismatch"], "early_exit": ["stall", "gone"], "healthy": ["healthy"]}
ABSENT = ("stopped", "killed")
MOONGRID = os.environ.get("MOONGRID", "build/moongrid")
START = 1.7e9  # of the clock, in seconds
QUIET = 3      # seconds from the last call to the dumps; none where the job runs

# The families of each system that play a part in the step, the parameters that make it, and how torch describes them.
SYSTEMS = {
    "megatron": (("tp", "cp", "ep", "pp"), lambda n: {"dp": "dp_cp" if n["cp"] > 1 else "dp", "edp": "expt_dp", "mp": "mp"}),
    "deepspeed": (("tp", "pp"), lambda n: {"dp": "dp"}),
    "deepspeed_moe": (("ep",), lambda n: {"ep": "ep_size_%d" % n["ep"], "edp": "edp_size_%d" % n["ep"], "dp": "world"}),
    "torchtitan": (("tp", "cp", "pp"), lambda n: {"fsdp": "dp_shard"}),
    "picotron": (("tp", "cp", "pp"), lambda n: {"dp": "cp_dp"}),
    "nanotron": (("tp", "pp"), lambda n: {"dp": "dp"}),
}
WORDS = {"tp": "TENSOR_MODEL_PARALLEL_GROUP", "pp": "PIPELINE_MODEL_PARALLEL_GROUP", "mp": "MODEL_PARALLEL_GROUP",
         "cp": "CONTEXT_PARALLEL_GROUP", "ep": "EXPERT_MODEL_PARALLEL_GROUP", "expt_dp": "EXPERT_DATA_PARALLEL_GROUP",
         "dp": "DATA_PARALLEL_GROUP", "dp_cp": "DATA_PARALLEL_GROUP_WITH_CP"}


@functools.cache
def groups_of(recipe, world, params):
    done = subprocess.run([MOONGRID, "plan", recipe, "--world", str(world), *params.split(), "--json"], capture_output=True, text=True, check=False)
    return {f: one["groups"] for f, one in json.loads(done.stdout)["families"].items()} if done.returncode == 0 else None


class Layout:
    def __init__(self, rng):
        groups = None
        while not groups:
            self.recipe = rng.choice(sorted(SYSTEMS))
            dims, others = SYSTEMS[self.recipe]
            n = {d: rng.choice((1, 2, 2, 3, 4)) if d in dims[:1] + ("pp",) else rng.choice((1, 1, 2)) for d in ("tp", "cp", "ep", "pp")}
            n = {d: size if d in dims else 1 for d, size in n.items()}
            if self.recipe == "deepspeed_moe":
                n["ep"] = rng.choice((2, 4))
            self.world = n["tp"] * n["cp"] * n["pp"] * rng.choice((2, 2, 3, 4)) * (2 if n["ep"] == 4 else 1)
            if self.world < 4 or self.world > 24 or n["ep"] > 1 and self.world // n["pp"] % (n["ep"] * 2):
                continue
            self.params = " ".join("%s=%d" % (d, n[d]) for d in dims if n[d] > 1 or self.recipe == "deepspeed_moe")
            if self.recipe == "nanotron":
                self.params += " local_world_size=%d" % self.world
            if n["ep"] > 1 and self.recipe == "megatron":
                self.params += " etp=1"
            groups = groups_of(self.recipe, self.world, self.params)
        groups["world"] = [list(range(self.world))]
        self.role = {d: d for d in ("tp", "cp", "ep", "pp") if n[d] > 1}
        for role, family in others(n).items():
            if len(groups.get(family, [[]])[0]) > 1:
                self.role[role] = family
        if n["ep"] == 1:
            self.role.pop("edp", None)
        if n["tp"] == 1 or n["pp"] == 1:
            self.role.pop("mp", None)
        self.groups = {f: groups[f] for f in sorted(set(self.role.values()) | {"world"})}
        self.of = {f: {r: (i, g) for i, g in enumerate(gs) for r in g} for f, gs in self.groups.items()}

    def stage(self, rank):
        return self.of["pp"][rank][1].index(rank) if "pp" in self.groups else 0

    def word(self, family):
        if family == "world":
            return "default_pg"
        return WORDS[family] if self.recipe == "megatron" else "mesh_" + family if self.recipe == "torchtitan" else "undefined"


Call = collections.namedtuple("Call", "family op sizes dtype peer site late", defaults=[False])


def program(lay, rank, width, batches, layers, buckets, zero, late, clip, log):
    """The calls of a step; None: those that are late must have ended."""
    ops, stage, role = [], lay.stage(rank), lay.role
    pipe = lay.of["pp"][rank][1] if "pp" in role else [rank]

    def send(op, to, site):
        if 0 <= to < len(pipe):
            ops.append(Call("pp", op, (4, width), "Float", pipe[to], site))

    def put(part, op, site, sizes=(4, width), dtype="Float"):
        if part in role or part == "world":
            ops.append(Call(role.get(part, part), op, sizes, dtype, None, site))
    put("tp", "broadcast", "broadcast_data", dtype="Long")
    put("fsdp", "_all_gather_base", "unshard_params", (width, 3), "BFloat16")
    for _ in range(batches):
        send("recv", stage - 1, "recv_forward")
        for _ in range(layers):
            put("cp", "_all_gather_base", "attention_gather_kv", (2, width), "Half")
            put("tp", "all_reduce", "attention_forward")
            put("ep", "all_to_all", "moe_dispatch", (8, width))
            put("ep", "all_to_all", "moe_combine", (8, width))
            put("ep" if "ep" in role else "tp", "all_to_all" if "ep" in role else "all_reduce", "mlp_forward")
        send("send", stage + 1, "send_forward")
    for _ in range(batches):
        send("recv", stage + 1, "recv_backward")
        for _ in range(layers):
            put("tp", "all_reduce", "mlp_backward")
        send("send", stage - 1, "send_backward")
    first = len(ops)
    put("fsdp", "_reduce_scatter_base", "reduce_grads", (width * 4, 3))
    for k in range(buckets):
        put("dp", "_reduce_scatter_base" if zero else "all_reduce", "reduce_grads", (width, 5 + k))
    put("edp", "all_reduce", "reduce_expert_grads", (width, 7), "BFloat16")
    if late and len(ops) > first:
        ops[first:] = [call._replace(late=True) for call in ops[first:]] + [None]
    if zero:
        put("dp", "_all_gather_base", "gather_params", (width, 11), "BFloat16")
    put(clip if clip in role else "world", "all_reduce", "clip_grad_norm", (1,), "Double")
    if log:
        put("world", "all_reduce", "log_loss", (2,))
    return ops


def put_fault(kind, rng, lay, rank, ops):
    """(the ranks with the fault, the call that it hits, what it makes of the calls of a rank), or None: this step cannot have it."""
    collective = [i for i, o in enumerate(ops) if o and o.peer is None]
    pairs = [i for i in range(len(ops) - 1) if ops[i] and ops[i + 1] and ops[i].peer is ops[i + 1].peer is None and ops[i].family != ops[i + 1].family]
    among = {"swap_one": pairs, "swap_half": pairs, "early_exit": [0], "loader_stall": [0], "skip": collective, "wrong_size": collective,
             "send_no_recv": [i for i, o in enumerate(ops) if o and o.op == "send"], "recv_wrong_peer": [i for i, o in enumerate(ops) if o and o.op == "recv"],
             "wrong_root": [i for i in collective if ops[i].op == "broadcast"]}.get(kind)
    if among is None:
        among = collective if kind in ("wrong_dtype", "other_op", "extra", "wrong_group") else [i for i, o in enumerate(ops) if o]
    if not among:
        return None
    at = rng.choice(list(among))
    old, ranks = ops[at], [rank]
    new = {"wrong_size": old._replace(sizes=old.sizes[:-1] + (old.sizes[-1] + rng.choice((1, 3)),)),
           "wrong_dtype": old._replace(dtype="Half" if old.dtype == "Float" else "Float"),
           "other_op": old._replace(op="all_gather" if old.op == "all_reduce" else "all_reduce"), "wrong_root": old._replace(dtype=old.dtype + " ")}
    if kind == "swap_half":
        same = lay.of[old.family][rank][1] if rng.random() < 0.5 else [r for r in range(lay.world) if lay.stage(r) == lay.stage(rank)]
        same = [r for r in same if lay.stage(r) == lay.stage(rank)]
        ranks = rng.sample(same, len(same) // 2)
    elif kind == "group_ahead":
        ranks = lay.of[rng.choice([f for f in lay.groups if f not in ("world", "pp")] or ["pp"])][rank][1]
    elif kind == "wrong_group":
        others = [f for f in lay.groups if f not in (old.family, "pp")]
        if not others:
            return None
        new[kind] = old._replace(family=rng.choice(others))
    elif kind == "recv_wrong_peer":
        others = [r for r in lay.of["pp"][rank][1] if r not in (rank, old.peer)]
        if not others:
            return None
        new[kind] = old._replace(peer=rng.choice(others))

    def change(ops):
        if kind == "skip":
            return ops[:at] + ops[at + 1:]
        if kind in ABSENT + ("slow", "loader_stall", "early_exit"):
            return ops[:at] + ["end"]
        if kind == "group_ahead":
            return []
        if kind == "exception_barrier":
            return ops[:at] + [Call("world", "barrier", (), "", None, "save_and_sync"), "end"]
        if kind == "extra":
            return ops[:at] + [old._replace(op="all_reduce", sizes=(3,), dtype="Float", site="debug_check")] + ops[at:]
        if kind == "send_no_recv":
            return ops[:at + 1] + [old] + ops[at + 1:]
        if kind in ("swap_one", "swap_half"):
            return ops[:at] + [ops[at + 1], ops[at]] + ops[at + 2:]
        return ops[:at] + [new[kind]] + ops[at + 1:] if kind in new else ops
    return ranks, old, change


class Run:
    """Run until nothing moves, or so many calls were made; `log` has the calls of each rank."""

    def __init__(self, rng, lay, steps_of, moves, fails, killed):
        self.lay, self.now, self.log, self.met, self.sides = lay, START, [[] for _ in range(lay.world)], {}, collections.defaultdict(list)
        self.lost, self.broken, counts, waiting, moved, made = set(), set(), collections.Counter(), [[] for _ in range(lay.world)], True, 0
        gone = set()
        while moved and made < moves:
            moved = False
            for r in rng.sample(range(lay.world), lay.world):
                for entry in list(self.log[r][-8:]):
                    if entry["ended"] is None and self.ends(r, entry):
                        entry.update(ended=self.now)
                if r in self.lost | self.broken | gone or any(e["ended"] is None for e in waiting[r]):
                    if r not in self.lost | self.broken and fails and self.error(rng, r, waiting[r], fails):
                        self.broken.add(r)
                        moved = True
                    continue
                call = next(steps_of[r], "end")
                if call == "end":
                    gone.add(r)
                    if r in killed:
                        self.lost.add(r)
                    continue
                moved = True
                if call is None:
                    waiting[r] = [e for e in self.log[r] if e["ended"] is None]
                    continue
                self.now, made = self.now + rng.uniform(0.0005, 0.003), made + 1
                counts[r, call.family, call.peer is None] += 1
                entry = dict(call=call, at=self.now, ended=None, error=False, seq=counts[r, call.family, call.peer is None])
                if call.peer is None:
                    self.met[call.family, lay.of[call.family][r][0], entry["seq"], r] = call[1:4]
                else:
                    pair = self.sides[call.op, (r, call.peer) if call.op == "send" else (call.peer, r)]
                    entry["nth"] = len(pair)
                    pair.append(r)
                self.log[r].append(entry)
                waiting[r] = [] if call.late else [entry]
        self.hangs = made < moves and any(e["ended"] is None for entries in waiting for e in entries)

    def signs(self, entry, r):
        """What each member makes of a call, None where it has not come."""
        call = entry["call"]
        index, members = self.lay.of[call.family][r]
        return [self.met.get((call.family, index, entry["seq"], m)) for m in members], members

    def ends(self, r, entry):
        """Whether all are there."""
        call = entry["call"]
        if call.peer is None:
            signs = self.signs(entry, r)[0]
            return len(set(signs)) == 1 and None not in signs
        pair = (r, call.peer) if call.op == "send" else (call.peer, r)
        return len(self.sides["recv" if call.op == "send" else "send", pair]) > entry["nth"]

    def error(self, rng, r, waiting, fails):
        """Whether gloo ends a rank's call by an error: a peer is gone, or the call of another does not fit and one of both aborts."""
        for entry in waiting:
            if entry["ended"] is not None:
                continue
            call = entry["call"]
            signs, members = ([], [call.peer]) if call.peer is not None else self.signs(entry, r)
            unlike = {s for s in signs if s}
            if len(unlike) > 1 and fails["abort"] and not any(s and s[2].endswith(" ") for s in signs):
                fails["abort"] = False
                self.lost.add(rng.choice([m for m, s in zip(members, signs) if s]))
            if any(m in self.lost for m in members) and r not in self.lost and rng.random() < 0.5:
                entry["error"] = True
                return True
        return False


def dump(lay, log, rank, ring, names, gloo, until, frames):
    entries, many = [], 0
    for i, one in list(enumerate(e for e in log[rank] if (not gloo or e["call"].peer is None) and e["at"] <= until))[-ring:]:
        call = one["call"]
        index, members = lay.of[call.family][rank]
        op = {"_all_gather_base": "all_gather", "_reduce_scatter_base": "all_reduce"}.get(call.op, call.op) if gloo else call.op
        name = "%s:%s" % ("gloo" if gloo else "nccl", op)
        if call.peer is not None:
            name += " %d%s%d" % (members.index(rank), "->" if call.op == "send" else "<-", members.index(call.peer))
        done, many = one["ended"] is not None and one["ended"] <= until, len(members)
        sizes, whole = [list(call.sizes)], [list((many, *call.sizes))]
        dtype = [call.dtype.strip()] if call.op != "barrier" else []
        entries.append({"record_id": i, "pg_id": int(names[call.family, index]), "op_id": i + 1, "timeout_ms": 600000,
                        "frames": [{"name": n, "filename": "/job/train.py", "line": 7} for n in ("call", call.site, "do", "train_step")] if frames else [],
                        "p2p_seq_id": 0 if call.peer is None else sum(e["call"].peer is not None for e in log[rank][:i + 1]),
                        "process_group": [names[call.family, index], lay.word(call.family)], "profiling_name": name,
                        "collective_seq_id": one["seq"] if call.peer is None else 0, "is_p2p": call.peer is not None,
                        "input_sizes": [] if call.op in ("recv", "barrier") else sizes, "input_dtypes": dtype, "output_dtypes": dtype,
                        "output_sizes": [] if call.op in ("send", "barrier") else whole if "all_gather" in call.op else sizes,
                        "time_created_ns": int(one["at"] * 1e9), "time_discovered_started_ns": int(one["at"] * 1e9), "duration_ms": 1.0,
                        "time_discovered_completed_ns": int(one["ended"] * 1e9) if done else None,
                        "retired": done or gloo and one["error"], "state": "completed" if done and not gloo else "scheduled"})
    mine = [f for f in lay.groups if f == "world" or rank in lay.of[f]]
    config = {names[f, lay.of[f][rank][0]]: {"name": names[f, lay.of[f][rank][0]], "desc": lay.word(f), "ranks": str(lay.of[f][rank][1])} for f in mine}
    if gloo:
        config = {"": {"name": "", "desc": "", "ranks": "[0]"}}
    return {"entries": entries, "version": "2.10", "pg_config": config}


RIVAL = collections.Counter()


def ask_rival(folder):
    """(whether it fails, the ranks that each finding of torch's own analyzer names, in its order)"""
    from torch.distributed.flight_recorder import fr_trace
    said = io.StringIO()
    failed = False
    with contextlib.redirect_stdout(said):
        logger = logging.getLogger()
        handler = logging.StreamHandler(said)
        logger.addHandler(handler)
        try:
            fr_trace.main([folder, "-p", "rank", "--allow-incomplete-ranks"])
        except (Exception, SystemExit):  # whatever it is, it has no finding
            failed = True
        finally:
            logger.removeHandler(handler)
    found = re.findall(r"missing ranks: \{([^}]*)\}|((?:Culprit rank \d+[^\n]*))", said.getvalue())
    return failed, [set(map(int, re.findall(r"\d+", a))) if a else set(map(int, re.findall(r"Culprit rank (\d+)", b))) for a, b in found]


def make(rng, gloo):
    """A case: (what is known of it, its dumps by rank, each with the time of its file)."""
    kind, fault = rng.choice(sorted(KINDS)), None
    while not fault:
        lay = Layout(rng)
        how = dict(width=rng.choice((8, 16, 24)), batches=rng.choice((1, 2, 3)), layers=rng.choice((1, 2)), buckets=rng.choice((1, 2, 3)),
                   zero=rng.random() < 0.5, late=rng.random() < 0.5, clip=rng.choice(("mp", "world")), log=rng.random() < 0.5)
        steps = [program(lay, r, **how) for r in range(lay.world)]
        fault = put_fault(kind, rng, lay, rank := rng.randrange(lay.world), steps[rank])
    ranks, old, change = fault
    step, ring = rng.choice((2, 3, 4, 5)), 12 if rng.random() < 0.05 else rng.choice((28, 36, 36, 64))

    def calls(r, ops):
        for n in range(step + 4):
            yield from change(ops) if n == step and r in ranks else ops
    moves = rng.uniform(step, step + 2) * lay.world * len(steps[0]) if kind == "healthy" else 1 << 30
    fails = {"abort": rng.random() < 0.4} if kind != "healthy" else None
    job = Run(rng, lay, [calls(r, ops) for r, ops in enumerate(steps)], moves, fails, set(ranks) if kind == "killed" else set())
    log, now = job.log, job.now
    until = {r: now - rng.uniform(0, 0.02) if kind == "healthy" else now for r in range(lay.world)}
    names = {("world", 0): "0"}
    for f, groups in lay.groups.items():
        for i in range(len(groups)):
            names.setdefault((f, i), str(len(names)))
    old_dump = kind in ABSENT and rng.random() < 0.25  # of a rank that is gone, an earlier one
    lost = set(job.lost) | (set(ranks) if kind in ABSENT else set())
    if old_dump:
        lost.clear()
    variant = rng.random()
    others = [r for r in range(lay.world) if r not in ranks]
    if variant < 0.08 and kind != "healthy":
        lost.add(rng.choice(others if rng.random() < 0.7 else ranks))
    late = gloo and kind == "healthy" and rng.random() < 0.5  # frames take seconds to write
    frames = gloo and rng.random() < 0.8
    dumps = {}
    for r in range(lay.world):
        if r in lost or not log[r]:
            continue
        at = now + (rng.uniform(0.1, 9) if late else 0 if kind == "healthy" else QUIET)
        before = until[r]
        if old_dump and r in ranks:
            at = before = START + (now - START) * 0.5
        text = pickle.dumps(dump(lay, log, r, ring, names, gloo, before, frames), 2)
        if 0.08 < variant < 0.11 and r == others[-1]:
            text = text[:len(text) // 2]
        dumps[r] = text, at
    group = [old.family, lay.of[old.family][rank][0]] if kind not in ("group_ahead", "healthy") else None
    peers = [r for r in range(lay.world) if lay.stage(r) == lay.stage(rank)]
    label = dict(kind=kind, culprits=sorted(ranks) if kind != "healthy" else [], recipe=lay.recipe, world=lay.world, params=lay.params, group=group,
                 hung=job.hangs, peers=peers if kind == "swap_half" else None, groups=lay.groups, lost=sorted(lost),
                 pgs={n: [f, i] for (f, i), n in names.items()}, ring=ring, step=step, async_=how["late"])
    return label, dumps


def fits(one, label):
    kinds = KINDS[label["kind"]] if label["hung"] else ["healthy"]
    rest = sorted(set(label["peers"] or []) - set(label["culprits"])) or label["culprits"]
    return one["kind"] in kinds and one["ranks"] in ([[]] if "healthy" in kinds else [label["culprits"], rest])


def judge(label, dumps, gloo):
    """(whether the verdict is right, whether it is sure and wrong, what it says)"""
    with tempfile.TemporaryDirectory() as folder:
        for r, (text, at) in dumps.items():
            path = os.path.join(folder, "rank%d" % r)
            with open(path, "wb") as file:
                file.write(text)
            os.utime(path, (at, at))
        words = [MOONGRID, "blame", folder, "--recipe", label["recipe"], "--world", str(label["world"]), *label["params"].split(), "--json"]
        if gloo:
            with open(os.path.join(folder, ".names"), "w", encoding="utf-8") as file:
                json.dump({n: label["groups"][f][i] for n, (f, i) in label["pgs"].items()}, file)
            words += ["--names", file.name]
        rival = ask_rival(folder) if "rival" in sys.argv else None
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if rival:
        culprits, healthy = set(label["culprits"]), not label["hung"]
        RIVAL["any"] += culprits in rival[1]
        RIVAL["first"] += bool(rival[1]) and culprits == rival[1][0]
        RIVAL["fails"] += rival[0]
        RIVAL["alarms"] += healthy and bool(rival[1])
        RIVAL["healthy"] += healthy
    words = "%s %d %s: %s of %s" % (label["recipe"], label["world"], label["params"], label["kind"], label["culprits"])
    if done.returncode:
        return False, True, "%s: %s" % (words, done.stderr.strip())
    said = json.loads(done.stdout)
    maybe = ", a candidate is right" if any(fits(one, label) for one in said["candidates"]) else ""
    words += " said %s of %s%s" % (said["kind"], said["ranks"], ", sure" if said["sure"] else maybe)
    return fits(said, label), said["sure"] and not fits(said, label), words + (", without the dumps of %s" % label["lost"] if label["lost"] else "")


def main():
    rng, gloo = random.Random(int(sys.argv[1])), "gloo" in sys.argv
    good = wrong = 0
    for _ in range(int(sys.argv[2])):
        right, sure, words = judge(*make(rng, gloo), gloo)
        good, wrong = good + right, wrong + sure
        if not right:
            print(words)
    if "rival" in sys.argv:
        print("torch's analyzer names these ranks first in %d, among its findings in %d; fails in %d, alarms on %d of %d healthy ones"
              % (RIVAL["first"], RIVAL["any"], RIVAL["fails"], RIVAL["alarms"], RIVAL["healthy"]))
    print("%d right of %d, %d wrong and sure" % (good, int(sys.argv[2]), wrong))


if __name__ == "__main__":
    main()
