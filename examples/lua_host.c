/* SPDX-License-Identifier: MIT
**
** lua_host.c - an MPI program with an interpreter of Lua: a user's script makes groups on the
** program's communicator, and returns a plan and a state. The state outlives the interpreter.
**
**     mpicc -o lua_host examples/lua_host.c $(pkg-config --cflags --libs moongrid_lua moongrid_mpi lua5.4)
**     mpirun -n 8 ./lua_host examples/lua_host.lua
*/
#include <moongrid_lua.h>
#include <moongrid_mpi.h>

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>

/* Run the script with two arguments: the job, and the communicator, for a script that opens a job
** of its own, mg.mpi(comm). Return a new reference to the script's state, or NULL. */
static mgrid_state *run(const char *script, mgrid_backend *b, MPI_Comm comm) {
  mgrid_state *state = NULL;
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  luaL_requiref(L, "moongrid", mgrid_lua_open, 0);
  if (luaL_loadfile(L, script)
      || (mgrid_lua_push(L, "Job", b), lua_pushinteger(L, MPI_Comm_c2f(comm)),
          lua_pcall(L, 2, 2, 0))) {
    fprintf(stderr, "lua_host: %s\n", lua_tostring(L, -1));
  } else if (!(state = mgrid_state_ref(mgrid_lua_to(L, -1, "State")))) {
    fprintf(stderr, "lua_host: %s returns no State\n", script);
  } else if (mgrid_backend_rank(b) == 0) {
    const mgrid_plan *plan = mgrid_lua_to(L, -2, "Plan");
    for (size_t i = 0; i < mgrid_plan_nfamilies(plan); i++)
      printf("family %s\n", mgrid_plan_family_name(plan, i));
  }
  lua_close(L);
  return state;
}

int main(int argc, char **argv) {
  MPI_Comm comm;
  int mine, sum = 0, rank, bad = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  /* the program's own communicator: one of the even ranks, one of the odd ranks */
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
  MPI_Comm_rank(comm, &mine);

  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_mpi_backend(comm, NULL, &e);
  mgrid_state *state = argc == 2 && b ? run(argv[1], b, comm) : NULL;
  if (state) {
    const mgrid_group *tp = mgrid_state_group(state, "tp", &e);
    bad = !tp || MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, mgrid_mpi_comm(tp));
    printf("rank %d: the ranks of its tp sum to %d\n", rank, sum);
  }
  if (e.status) fprintf(stderr, "lua_host: %s\n", e.message);
  mgrid_state_free(state);
  mgrid_backend_free(b);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return bad;
}
