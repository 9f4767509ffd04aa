/* SPDX-License-Identifier: MIT
**
** slice.c - what tensors add to the command: run A vs B --move.
*/
#include "tensors/command/words.h"

static const cli_addition additions[] = {
  { .to = "run",
    .usage = "mpirun -n N moongrid run A [NAME=VALUE ...] vs [B] [NAME=VALUE ...] --move [--tensor T] [--window MIB]",
    .before = "devices",
    .options = {
        { "move", cli_flag,
          .help = "move the tensors of A to the layout of B (see moongrid move), with a number in each element "
                  "that identifies it, and prove every element where it arrives; ranks receive from their own "
                  "machine what a rank there holds, if all machines have the same number of ranks, in order", .agreed = true },
        { "tensor", cli_text, 0, "T", .help = "only this tensor", .head = "with --move" },
        { "map", cli_text, 0, "RANKS", .help = "the rank that each rank of B is, as 8..15,0..7" },
        { "convert", cli_flag, .help = "tensors may be f32 on one side and bf16 on the other; they are sent as bf16" },
        { "rounds", cli_flag, .help = "in rounds: a rank sends one message at a time and receives one" },
        { "window", cli_number, 0, "MIB", .help = "memory for packing on a rank, 64" },
    },
    .sides = "move tensors from one to the other",
    .go = cli_run_move },
  { .to = NULL },
};

extern const cli_slice cli_slice_tensors;
const cli_slice        cli_slice_tensors = { .additions = additions };
