#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs that hang, simulated: simulate.py SEED N [gloo] [rival]. Ranks of a random layout (tensor, data, pipeline) run a random step
in order, a fault is put into one step of some ranks, and the job runs until nothing moves. Each rank's last calls are
written as a dump (version 2.10) and given to `moongrid blame`, whose verdict is compared with the fault. Prints the
cases that are wrong and the sums; MOONGRID is the command (build/moongrid). With gloo the dumps are those of gloo, which
have no sends and receives, no states and no members; and of some cases the dump of one rank is missing. With rival torch's own analyzer reads the same dumps."""
import collections
import contextlib
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

KINDS = {"skip": ["skip"], "stopped": ["gone"], "slow": ["stall"], "wrong_size": ["mismatch"], "wrong_dtype": ["mismatch"],
         "other_op": ["mismatch"], "swap_one": ["order"], "swap_half": ["order"], "extra": ["extra"], "send_no_recv": ["peer"],
         "recv_wrong_peer": ["peer"], "exception_barrier": ["elsewhere", "skip"], "group_ahead": ["ahead", "stall"],
         "wrong_group": ["other_group"], "early_exit": ["stall", "gone"], "healthy": ["healthy"]}
START = 1.7e9  # of the clock, in seconds
QUIET = 3      # seconds from the last call to the dumps; none where the job runs


class Layout:
    def __init__(self, rng):
        sizes = [s for s in ((t, p, d) for t in (1, 2, 3) for p in (1, 2, 3) for d in (2, 3, 4)) if 4 <= s[0] * s[1] * s[2] <= 16]
        self.tp, self.pp, self.dp = tp, pp, dp = rng.choice(sizes)
        self.world = tp * pp * dp

        def rank(t, d, p):
            return t + tp * (d + dp * p)
        groups = {"world": [list(range(self.world))], "dp": [[rank(t, d, p) for d in range(dp)] for p in range(pp) for t in range(tp)]}
        if tp > 1:
            groups["tp"] = [[rank(t, d, p) for t in range(tp)] for p in range(pp) for d in range(dp)]
        if pp > 1:
            groups["pp"] = [[rank(t, d, p) for p in range(pp)] for d in range(dp) for t in range(tp)]
        if pp > 1 and tp > 1:
            groups["mp"] = [[rank(t, d, p) for p in range(pp) for t in range(tp)] for d in range(dp)]
        self.groups = groups
        self.of = {f: {r: (i, g) for i, g in enumerate(gs) for r in g} for f, gs in groups.items()}

    def stage(self, rank):
        return rank // self.tp // self.dp


Call = collections.namedtuple("Call", "family op sizes dtype peer")


def program(lay, rank, width, batches, layers, buckets, zero, clip):
    """The calls of a step."""
    ops, stage, hop = [], lay.stage(rank), lay.tp * lay.dp

    def send(op, peer):
        ops.append(Call("pp", op, (4, width), "Float", peer))

    def tensor(op, dtype="Float"):
        if lay.tp > 1:
            ops.append(Call("tp", op, (4, width), dtype, None))
    tensor("broadcast", "Long")
    for _ in range(batches):
        if stage > 0:
            send("recv", rank - hop)
        for _ in range(layers):
            tensor("all_reduce")
            tensor("all_reduce")
        if stage < lay.pp - 1:
            send("send", rank + hop)
    for _ in range(batches):
        if stage < lay.pp - 1:
            send("recv", rank + hop)
        for _ in range(layers):
            tensor("all_reduce")
        if stage > 0:
            send("send", rank - hop)
    for k in range(buckets):
        ops.append(Call("dp", "_reduce_scatter_base" if zero else "all_reduce", (width, 5 + k), "Float", None))
    if zero:
        ops.append(Call("dp", "_all_gather_base", (width, 11), "BFloat16", None))
    ops.append(Call(clip, "all_reduce", (1,), "Double", None))
    return ops


def put_fault(kind, rng, lay, rank, ops):
    """(the ranks with the fault, what it makes of the calls of a rank), or None: this step cannot have it."""
    collective = [i for i, o in enumerate(ops) if o.peer is None and len(lay.of[o.family][rank][1]) > 1]
    pairs = [i for i in range(len(ops) - 1) if ops[i].peer is ops[i + 1].peer is None and ops[i].family != ops[i + 1].family]
    ends = {"send_no_recv": [i for i, o in enumerate(ops) if o.op == "send"], "recv_wrong_peer": [i for i, o in enumerate(ops) if o.op == "recv"]}
    among = {"swap_one": pairs, "swap_half": pairs, "early_exit": [0], **ends}.get(kind)
    if among is None:
        among = range(len(ops)) if kind in ("stopped", "slow", "exception_barrier", "group_ahead", "healthy") else collective
    if not among:
        return None
    at = rng.choice(list(among))
    old, ranks = ops[at], [rank]
    new = {"wrong_size": old._replace(sizes=old.sizes[:-1] + (old.sizes[-1] + rng.choice((1, 3)),)),
           "wrong_dtype": old._replace(dtype="Half"), "other_op": old._replace(op="all_gather" if old.op == "all_reduce" else "all_reduce")}
    if kind == "swap_half":
        same = [r for r in range(lay.world) if lay.stage(r) == lay.stage(rank)]
        ranks = rng.sample(same, len(same) // 2)
    elif kind == "group_ahead":
        ranks = lay.of[rng.choice([f for f in lay.groups if f not in ("world", "pp")])][rank][1]
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
        if kind in ("stopped", "slow", "early_exit"):
            return ops[:at] + [None]
        if kind == "group_ahead":
            return []
        if kind == "exception_barrier":
            return ops[:at] + [Call("world", "barrier", (), "", None), None]
        if kind == "extra":
            return ops[:at] + [old._replace(op="all_reduce", sizes=(3,), dtype="Int")] + ops[at:]
        if kind == "send_no_recv":
            return ops[:at + 1] + [old] + ops[at + 1:]
        if kind in ("swap_one", "swap_half"):
            return ops[:at] + [ops[at + 1], ops[at]] + ops[at + 2:]
        return ops[:at] + [new[kind]] + ops[at + 1:] if kind in new else ops
    return ranks, change


def run(rng, lay, steps_of, moves):
    """Run until nothing moves, or so many calls were made; the calls of each rank as entries."""
    log, waiting, counts, met, sides, now = [[] for _ in range(lay.world)], {}, collections.Counter(), {}, collections.defaultdict(list), START

    def ends(r, entry, call):
        if call.peer is None:
            index, members = lay.of[call.family][r]
            signs = {met.get((call.family, index, entry["seq"], m)) for m in members}
            return len(signs) == 1 and None not in signs
        pair = (r, call.peer) if call.op == "send" else (call.peer, r)
        return len(sides["recv" if call.op == "send" else "send", pair]) > entry["nth"]
    moved, gone, made = True, set(), 0
    while moved and made < moves:
        moved = False
        for r in rng.sample(range(lay.world), lay.world):
            if r in waiting:
                if not ends(r, *waiting[r]):
                    continue
                waiting.pop(r)[0].update(done=True, ended=now)
            call = next(steps_of[r], None) if r not in gone else None
            if call is None:
                gone.add(r)
                continue
            now, moved, made = now + rng.uniform(0.0005, 0.003), True, made + 1
            counts[r, call.family, call.peer is None] += 1
            entry = dict(call=call, at=now, done=False, ended=0, seq=counts[r, call.family, call.peer is None])
            if call.peer is None:
                met[call.family, lay.of[call.family][r][0], entry["seq"], r] = call[1:4]
            else:
                pair = sides[call.op, (r, call.peer) if call.op == "send" else (call.peer, r)]
                entry["nth"] = len(pair)
                pair.append(r)
            log[r].append(entry)
            waiting[r] = entry, call
    return log, bool(waiting), now


def dump(lay, log, rank, ring, names, gloo):
    entries = []
    for i, one in list(enumerate(one for one in log[rank] if not gloo or one["call"].peer is None))[-ring:]:
        call = one["call"]
        index, members = lay.of[call.family][rank]
        name = "gloo:" + {"_all_gather_base": "all_gather", "_reduce_scatter_base": "all_reduce"}.get(call.op, call.op) if gloo else "nccl:" + call.op
        if call.peer is not None:
            name += " %d%s%d" % (members.index(rank), "->" if call.op == "send" else "<-", members.index(call.peer))
        sizes = [list(call.sizes)]
        entries.append({"record_id": i, "pg_id": int(names[call.family, index]), "op_id": i + 1, "frames": [], "timeout_ms": 600000,
                        "p2p_seq_id": 0 if call.peer is None else sum(e["call"].peer is not None for e in log[rank][:i + 1]),
                        "process_group": [names[call.family, index], "undefined"], "profiling_name": name,
                        "collective_seq_id": one["seq"] if call.peer is None else 0, "is_p2p": call.peer is not None,
                        "input_sizes": [] if call.op == "recv" else sizes, "output_sizes": [] if call.op == "send" else sizes,
                        "input_dtypes": [call.dtype], "output_dtypes": [call.dtype], "time_created_ns": int(one["at"] * 1e9),
                        "time_discovered_completed_ns": int(one["ended"] * 1e9), "retired": one["done"],
                        "time_discovered_started_ns": int(one["at"] * 1e9), "duration_ms": 1.0,
                        "state": "completed" if one["done"] and not gloo else "scheduled"})
    if gloo:
        return {"entries": entries, "version": "2.10", "pg_config": {"": {"name": "", "desc": "", "ranks": "[0]"}}}
    config = {names[f, lay.of[f][rank][0]]: {"name": names[f, lay.of[f][rank][0]], "desc": "undefined", "ranks": str(lay.of[f][rank][1])}
              for f in lay.groups}
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


def case(rng, gloo):
    lay = Layout(rng)
    kind = rng.choice(sorted(KINDS))
    how = dict(width=rng.choice((8, 16, 24)), batches=rng.choice((1, 2)), layers=rng.choice((1, 2)), buckets=rng.choice((1, 2, 3)),
               zero=rng.random() < 0.5, clip=rng.choice(("world", "mp")) if "mp" in lay.groups else "world")
    steps = [program(lay, r, **how) for r in range(lay.world)]
    fault = put_fault(kind, rng, lay, rank := rng.randrange(lay.world), steps[rank])
    if not fault:
        return None
    ranks, change = fault
    step, ring = rng.choice((2, 3, 4)), rng.choice((20, 36, 64))

    def calls(r):
        for n in range(step + 4):
            yield from change(steps[r]) if n == step and r in ranks else steps[r]
    moves = rng.randrange(3, 4) * lay.world * len(steps[0]) if kind == "healthy" else 1 << 30
    log, hangs, now = run(rng, lay, [calls(r) for r in range(lay.world)], moves)
    right = KINDS[kind] if hangs or kind == "stopped" else ["healthy"]
    names = {("world", 0): "0"}
    for f, groups in lay.groups.items():
        for i in range(len(groups)):
            names.setdefault((f, i), str(len(names)))
    others = [r for r in range(lay.world) if r not in ranks] if gloo and rng.random() < 0.15 else []
    lost = rng.choice(others) if others else None
    with tempfile.TemporaryDirectory() as folder:
        for r in range(lay.world):
            if kind == "stopped" and r in ranks or r == lost or not log[r]:
                continue
            path = os.path.join(folder, "rank%d" % r)
            with open(path, "wb") as file:
                pickle.dump(dump(lay, log, r, ring, names, gloo), file, 2)
            os.utime(path, (now, now + (0 if kind == "healthy" else QUIET)))
        words = [os.environ.get("MOONGRID", "build/moongrid"), "blame", folder, "--recipe", "nanotron", "--world", str(lay.world), "--json",
                 "tp=%d" % lay.tp, "pp=%d" % lay.pp, "local_world_size=%d" % lay.world]
        if gloo:
            with open(os.path.join(folder, ".names"), "w", encoding="utf-8") as file:
                json.dump({names[f, i]: group for f, groups in lay.groups.items() for i, group in enumerate(groups)}, file)
            words += ["--names", file.name]
        rival = ask_rival(folder) if "rival" in sys.argv else None
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            return kind, False, False, done.stderr.strip()
    said = json.loads(done.stdout)

    def fits(one):
        if one["kind"] not in right:
            return False
        half = set(r for r in range(lay.world) if lay.stage(r) == lay.stage(rank)) - set(ranks) if kind == "swap_half" else None
        return set(one["ranks"]) in ([set()] if right == ["healthy"] else [set(ranks), half])
    if rival:
        RIVAL["any"] += set(ranks) in rival[1]
        RIVAL["first"] += bool(rival[1]) and set(ranks) == rival[1][0]
        RIVAL["fails"] += rival[0]
        RIVAL["alarms"] += right == ["healthy"] and bool(rival[1])
        RIVAL["healthy"] += right == ["healthy"]
    words = "tp %d, pp %d, dp %d: %s of %s, said %s of %s" % (lay.tp, lay.pp, lay.dp, kind, sorted(ranks), said["kind"], said["ranks"])
    maybe = any(fits(one) for one in said["candidates"])
    return kind, fits(said), said["sure"] and not fits(said), words + (", sure" if said["sure"] else ", a candidate is right" if maybe else "") \
        + (", without the dump of %d" % lost if lost is not None else "")


def main():
    rng, n = random.Random(int(sys.argv[1])), 0
    good = wrong = 0
    while n < int(sys.argv[2]):
        one = case(rng, "gloo" in sys.argv)
        if one:
            n, good, wrong = n + 1, good + one[1], wrong + one[2]
            if not one[1]:
                print(one[3])
    if RIVAL or "rival" in sys.argv:
        print("torch's analyzer names these ranks first in %d, among its findings in %d; fails in %d, alarms on %d of %d healthy ones"
              % (RIVAL["first"], RIVAL["any"], RIVAL["fails"], RIVAL["alarms"], RIVAL["healthy"]))
    print("%d right of %d, %d wrong and sure" % (good, n, wrong))


main()
