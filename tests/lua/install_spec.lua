-- SPDX-License-Identifier: MIT
--
-- make install into a staging folder: a C program through pkg-config, shared and static, and stock Lua through require;
-- uninstall leaves nothing. Then into a prefix of the user's own, without environment variables.

local support = dofile("tests/lua/support.lua")
local run = support.run

local program = [[
#include <moongrid.h>
#include <stdio.h>
int main(void) {
  mgrid_error    e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  const char *args[] = { "tp=2" };
  if (!rt || mgrid_runtime_load(rt, "picotron", NULL, 0, &e)) { puts(e.message); return 1; }
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 1, args, &e);
  char digest[33];
  mgrid_plan_digest(p, digest);
  printf("%s %zu families\n", mgrid_version(), mgrid_plan_nfamilies(p));
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return 0;
}
]]

local mpi_program = [[
#include <moongrid_mpi.h>
int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Init(&argc, &argv);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  int ok = b && mgrid_backend_world(b) == 2;
  mgrid_backend_free(b);
  MPI_Finalize();
  return !ok;
}
]]

-- What is linked is not loaded: it is not where the loader looks.
local opening_program = [[
#include <moongrid_mpi.h>
#include <stdio.h>
int main(void) {
  mgrid_error           e = MGRID_ERROR_INIT;
  mgrid_mpi_options     mpi = MGRID_MPI_OPTIONS_INIT;
  mgrid_backend_options o = MGRID_BACKEND_OPTIONS_INIT;
  int                   level = -1, rank = 0;
  mpi.threads = MGRID_THREADS_SERIALIZED, o.mpi = &mpi;
  mgrid_backend *b = mgrid_backend_open("mpi", &o, &e);
  if (b) MPI_Query_thread(&level), rank = (int)mgrid_backend_rank(b);
  if (rank == 0) printf("%s %d %s\n", b ? mgrid_backend_name(b) : "none", level >= MPI_THREAD_SERIALIZED, e.message);
  mgrid_backend_free(b);
  return 0;
}
]]

describe("make install", function()
  local stage, prefix, pkg

  setup(function()
    stage = run("mktemp -d"):gsub("\n", "")
    prefix = stage .. "/usr/local"
    local _, err, code = run("make -s install DESTDIR=" .. stage .. " PREFIX=/usr/local")
    assert.equal(0, code, err)
    pkg = ("PKG_CONFIG_PATH=%s/lib/pkgconfig pkg-config --define-variable=prefix=%s --define-variable=libdir=%s/lib")
      :format(prefix, prefix, prefix)
  end)

  teardown(function() run("rm -rf " .. stage) end)

  it("writes pkg-config files with the PREFIX of the installation", function()
    local file = assert(io.open(prefix .. "/lib/pkgconfig/moongrid.pc"))
    assert.equal("prefix=/usr/local", file:read())
    file:close()
  end)

  it("serves a C program, shared and static", function()
    local source = support.file(program):gsub("%.lua$", "")
    run(("mv %s.lua %s.c"):format(source, source))
    for _, name in ipairs { "moongrid", "moongrid_static" } do
      local libs = ("$(%s --libs %s)"):format(pkg, name)
      local _, err, code = run(("cc -Wall -Werror %s.c -o %s $(%s --cflags moongrid) %s"):format(source, source, pkg, libs))
      assert.equal(0, code, err)
      local out = run(("LD_LIBRARY_PATH=%s/lib %s"):format(prefix, source))
      assert.equal(support.version .. " 7 families\n", out)
      local loaded = run("ldd " .. source)
      assert.equal(name == "moongrid", loaded:find "moongrid" ~= nil, loaded)
      assert.is_nil(loaded:find "liblua")
    end
    run(("rm -f %s %s.c"):format(source, source))
  end)

  it("serves an MPI program", function()
    local source = support.file(mpi_program):gsub("%.lua$", "")
    run(("mv %s.lua %s.c"):format(source, source))
    local own = stage .. "/own" -- a prefix that is really there: MPI's own .pc must not be moved
    local _, err, code = run("make -s install PREFIX=" .. own)
    assert.equal(0, code, err)
    _, err, code = run(("cc %s.c -o %s $(PKG_CONFIG_PATH=%s/lib/pkgconfig pkg-config --cflags --libs moongrid_mpi)")
      :format(source, source, own))
    assert.equal(0, code, err)
    _, _, code = run("scripts/launch 2 " .. source) -- it knows where its libraries are
    run(("rm -rf %s %s %s.c"):format(own, source, source))
    assert.equal(0, code)
  end)

  it("opens the backends that a static program was linked with", function()
    if not io.open(prefix .. "/lib/libmoongrid_mpi.a") then return pending("no MPI here") end
    local source = support.file(opening_program):gsub("%.lua$", "")
    run(("mv %s.lua %s.c"):format(source, source))
    local own = stage .. "/archives"
    run("make -s install PREFIX=" .. own)
    local pc = ("PKG_CONFIG_PATH=%s/lib/pkgconfig pkg-config"):format(own)
    local _, err, code = run(("cc %s.c -o %s $(%s --cflags moongrid_mpi) "
      .. "-Wl,-u,mgrid_mpi_entry -l:libmoongrid_mpi.a $(%s --libs moongrid_static) $(pkg-config --libs $(scripts/mpi --module))")
      :format(source, source, pc, pc))
    assert.equal(0, code, err)
    local out
    out, err = run(("rm -rf %s; scripts/launch 2 %s"):format(own, source))
    run(("rm -f %s %s.c"):format(source, source))
    assert.equal("mpi 1 \n", out, err)
  end)

  it("has the header that a backend shares with another one", function()
    local headers = run("make -n install HAVE_nccl= HAVE_rccl=yes PREFIX=/x"):match "\ninstall %-m 644 (src/moongrid%.h[^\n]*)"
    assert.truthy(headers:find("src/moongrid_nccl.h", 1, true), headers)
  end)

  it("has a pkg-config file for each backend", function()
    for _, name in ipairs { "mpi", "nccl" } do
      if io.open(("%s/lib/libmoongrid_%s.so"):format(prefix, name)) then
        local out, err, code = run(("PKG_CONFIG_PATH=%s/lib/pkgconfig pkg-config --print-requires moongrid_%s"):format(prefix, name))
        assert.equal(0, code, err)
        assert.truthy(out:find "^moongrid\n")
      end
    end
    if not io.open(prefix .. "/lib/libmoongrid_nccl.so") then return end
    local source = os.tmpname() -- the header finds those of NCCL and CUDA
    local file = assert(io.open(source .. ".c", "w"))
    file:write "#include <moongrid_nccl.h>\nint main(void) { return mgrid_nccl_comm(0) != 0; }\n"
    file:close()
    local _, err, code = run(("cc %s.c -o %s $(PKG_CONFIG_PATH=%s/lib/pkgconfig %s --cflags --libs moongrid_nccl) && LD_LIBRARY_PATH=%s/lib %s")
      :format(source, source, prefix, pkg:gsub("^%S+ ", ""), prefix, source))
    run(("rm -f %s %s.c"):format(source, source))
    assert.equal(0, code, err)
  end)

  it("is found by CMake, with its components", function()
    if select(3, run "command -v cmake") ~= 0 then return pending("no cmake here") end
    local folder = (run "mktemp -d"):gsub("\n", "")
    local function write(name, text)
      local file = assert(io.open(folder .. "/" .. name, "w"))
      file:write(text)
      file:close()
    end
    write("mpi.c", mpi_program)
    write("plain.c", program)
    write("opening.c", opening_program)
    write("CMakeLists.txt", [[
      cmake_minimum_required(VERSION 3.13)
      project(trainer C)
      find_package(moongrid ]] .. support.interface .. [[ REQUIRED COMPONENTS mpi static)
      add_executable(plain plain.c)
      target_link_libraries(plain moongrid::moongrid)
      add_executable(mpi mpi.c)
      target_link_libraries(mpi moongrid::mpi)
      add_executable(archives plain.c)
      target_link_libraries(archives moongrid::static)
      add_executable(mpi_archives opening.c)
      target_link_libraries(mpi_archives moongrid::mpi_static)
    ]])
    local _, err, code = run(("cd %s && cmake -DCMAKE_PREFIX_PATH=%s . && make"):format(folder, prefix))
    assert.equal(0, code, err)
    local out
    out, err = run(folder .. "/plain")
    assert.equal(support.version .. " 7 families\n", out, err)
    _, err, code = run(("scripts/launch 2 %s/mpi"):format(folder))
    assert.equal(0, code, err)
    out, err = run(folder .. "/archives")
    assert.equal(support.version .. " 7 families\n", out, err)
    out, err = run(("scripts/launch 2 %s/mpi_archives"):format(folder)) -- the backend that it opens is inside
    assert.equal("mpi 1 \n", out, err)
    for _, name in ipairs { "archives", "mpi_archives" } do
      assert.is_nil(run(("ldd %s/%s"):format(folder, name)):find "moongrid")
    end
    if select(3, run "command -v c++") == 0 then -- a project of C++ alone
      write("mpi.cc", mpi_program)
      write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.13)\nproject(trainer CXX)\n"
        .. "find_package(moongrid REQUIRED COMPONENTS mpi)\nadd_executable(mpi mpi.cc)\n"
        .. "target_link_libraries(mpi moongrid::mpi)\n")
      _, err, code = run(("cd %s && rm -f mpi CMakeCache.txt && cmake -DCMAKE_PREFIX_PATH=%s . && make && "
        .. "$OLDPWD/scripts/launch 2 ./mpi"):format(folder, prefix))
      assert.equal(0, code, err)
    end
    write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.13)\nproject(trainer C)\nfind_package(moongrid 99.1 REQUIRED)\n")
    _, err, code = run(("cd %s && cmake -DCMAKE_PREFIX_PATH=%s ."):format(folder, prefix))
    assert.truthy(code ~= 0 and err:find(support.version, 1, true), err)
    write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.13)\nproject(trainer C)\nfind_package(moongrid REQUIRED COMPONENTS ucc)\n")
    _, err, code = run(("cd %s && cmake -DCMAKE_PREFIX_PATH=%s ."):format(folder, prefix))
    assert.truthy(code ~= 0 and err:find "has no component 'ucc'; there%s+are lua, mpi,", err)
    write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.13)\nproject(trainer C)\nfind_package(moongrid REQUIRED COMPONENTS mpi)\n")
    local config = prefix .. "/lib/cmake/moongrid/moongrid-config.cmake"
    local was = assert(io.open(config)):read "a" -- as if it were for another MPI
    assert(io.open(config, "w")):write((was:gsub("%^%(%d+%)%$", "^(7)$"))):close()
    _, err, code = run(("cd %s && cmake -DCMAKE_PREFIX_PATH=%s ."):format(folder, prefix))
    assert(io.open(config, "w")):write(was):close()
    assert.truthy(code ~= 0 and err:find "and%s+CMake%s+found%s+%S+/libmpi%S+;%s+set%s+MPI_C_COMPILER%s+to", err)
    write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.13)\nproject(trainer C)\nfind_package(moongrid REQUIRED COMPONENTS static)\n")
    _, err, code = run(("mv %s/lib/libmoongrid_lua.a %s/kept; cd %s && cmake -DCMAKE_PREFIX_PATH=%s .; code=$?; mv %s/kept %s/lib/libmoongrid_lua.a; exit $code")
      :format(prefix, folder, folder, prefix, folder, prefix))
    assert.truthy(code ~= 0 and err:find "without%s+libmoongrid_lua%.a", err)
    run("rm -rf " .. folder)
  end)

  it("may be moved: programs are built, and run, from there", function()
    local folder, was, moved = run "mktemp -d":gsub("\n", ""), stage .. "/was", stage .. "/moved"
    local _, err, code = run(("make -s install PREFIX=%s && mv %s %s"):format(was, was, moved))
    assert.equal(0, code, err)
    local source = assert(io.open(folder .. "/plain.c", "w"))
    source:write(program)
    source:close()
    _, err, code = run(("cc %s/plain.c -o %s/plain $(PKG_CONFIG_PATH=%s/lib/pkgconfig pkg-config --define-prefix --cflags --libs moongrid)")
      :format(folder, folder, moved))
    assert.equal(0, code, err)
    assert.equal(support.version .. " 7 families\n", (run(folder .. "/plain")))
    if select(3, run "command -v cmake") == 0 then
      local project = assert(io.open(folder .. "/CMakeLists.txt", "w"))
      project:write "cmake_minimum_required(VERSION 3.13)\nproject(trainer C)\nfind_package(moongrid REQUIRED)\n"
      project:write "add_executable(built plain.c)\ntarget_link_libraries(built moongrid::moongrid)\n"
      project:close()
      _, err, code = run(("cd %s && cmake -DCMAKE_PREFIX_PATH=%s . && make"):format(folder, moved))
      assert.equal(0, code, err)
      run(("rm -r %s/lib/cmake"):format(moved)) -- a program's run path does not go through it
      assert.equal(support.version .. " 7 families\n", (run(folder .. "/built")))
    end
    run(("rm -rf %s %s"):format(folder, moved))
  end)

  it("compiles as C++ too", function()
    local _, _, have = run "command -v c++"
    if have ~= 0 then return pending("no C++ compiler here") end
    local inits, n = {}, 0 -- every MGRID_NAME_INIT makes an mgrid_name
    for header in io.popen("ls " .. prefix .. "/include/moongrid*.h"):lines() do
      for name in io.open(header):read("a"):gmatch "#define MGRID_([%u_]+)_INIT" do
        n = n + 1
        inits[n] = ("mgrid_%s s%d = MGRID_%s_INIT; (void)s%d;"):format(name:lower(), n, name, n)
      end
    end
    assert.truthy(n > 10)
    local source = os.tmpname()
    local file = assert(io.open(source .. ".cc", "w"))
    file:write("#include <moongrid.h>\n#include <moongrid_lua.h>\n#include <moongrid_recipe.h>\nvoid inits() {\n",
      table.concat(inits, "\n"), '\nmgrid_arg a = mgrid_arg_text("a", "b"); (void)a;\n}\n')
    file:close()
    local _, err, code = run(("c++ -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I%s/include %s.cc"):format(prefix, source))
    run(("rm -f %s %s.cc"):format(source, source))
    assert.equal(0, code, err)
  end)

  it("links as C++ too, without the C++ bindings of MPI", function()
    local _, _, have = run "command -v c++ && scripts/mpi --module"
    if have ~= 0 then return pending("no C++ compiler or no MPI here") end
    local source, own = os.tmpname(), os.tmpname()
    os.remove(own)
    local out, err, code = run(("make -s install PREFIX=%s"):format(own))
    assert.equal(0, code, out .. err)
    local file = assert(io.open(source .. ".cc", "w"))
    file:write [[
      #include <moongrid_mpi.h>
      int main() {
        mgrid_error e = MGRID_ERROR_INIT;
        mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_NULL, NULL, &e);
        return b == nullptr && e.status == MGRID_USAGE && mgrid_mpi_comm(nullptr) == MPI_COMM_NULL ? 0 : 1;
      }]]
    file:close()
    _, err, code = run(("export PKG_CONFIG_PATH=%s/lib/pkgconfig; c++ %s.cc -o %s $(pkg-config --cflags --libs moongrid_mpi) "
      .. "&& %s"):format(own, source, source, source))
    run(("rm -rf %s %s %s.cc"):format(own, source, source))
    assert.equal("", err)
    assert.equal(0, code)
  end)

  it("brings the manual pages, which are the help texts and the header", function()
    local one, three = io.open(prefix .. "/share/man/man1/moongrid.1"), io.open(prefix .. "/share/man/man3/moongrid.3")
    local manual = one:read "a"
    for _, part in ipairs { "SYNOPSIS", "COMMANDS", "EXIT STATUS", "EXAMPLES" } do
      assert.truthy(manual:find("\n.SH " .. part .. "\n", 1, true), part)
    end
    for name in run("build/moongrid --help"):gmatch "\n  (%l+) " do
      assert.truthy(manual:find("\n.SS " .. name .. "\n.nf\n", 1, true), name)
    end
    for option in run("build/moongrid plan --help"):gmatch "\n  (%-%-[%l-]+)" do
      assert.truthy(manual:find("\n.B " .. option:gsub("%-", "\\-"), 1, true), option)
    end
    local text = three:read "a"
    for header in (run "ls src/moongrid*.h"):gmatch "[^\n]+" do
      for name in io.open(header):read("a"):gmatch "\nMGRID_API [^\n;]-(mgrid_[%w_]+)%(" do
        assert.truthy(text:find(name .. "(", 1, true), name)
      end
    end
    one:close()
    three:close()
  end)

  it("is accepted by LuaRocks", function()
    local _, _, have = run "command -v luarocks"
    if have ~= 0 then return pending "no luarocks here" end
    local tree = stage .. "/rocks"
    local _, err, code = run(("luarocks --lua-version=5.4 --tree %s make scripts/release/moongrid-dev-1.rockspec"):format(tree))
    assert.equal(0, code, err)
    local env = ("cd / && LUA_PATH_5_4='%s/share/lua/5.4/?.lua;;' LUA_CPATH_5_4='%s/lib/lua/5.4/?.so;;' "):format(tree, tree)
    local out
    out, err, code = run(env .. [[lua5.4 -e 'local m = require "moongrid" print(#m.load("megatron"):plan(64, { tp = 4 }))']])
    assert.equal(0, code, err)
    assert.equal("32\n", out)
    local root = io.popen("pwd"):read "l"
    out, err, code = run(env .. root .. [[/scripts/launch 2 lua5.4 -e 'local j = assert(require "moongrid".mpi())
      if j.rank == 0 then print(j.backend, j.world) end j:close()']])
    assert.equal(0, code, err)
    assert.equal("mpi\t2\n", out)
    run("rm -rf " .. tree)
  end)

  it("serves require in stock Lua, and the command finds its backend", function()
    local out = run(("LUA_CPATH_5_4='%s/lib/lua/5.4/?.so' lua5.4 -e 'print(require(\"moongrid\")._VERSION)'"):format(prefix))
    assert.equal("moongrid " .. support.version .. "\n", out)
    out = run(prefix .. "/bin/moongrid doctor")
    assert.truthy(out:find("\nmpi +yes "), out)
  end)

  it("exports moongrid's names alone, under a versioned name", function()
    local n = 0
    for path in (run("ls " .. prefix .. "/lib/*.so " .. prefix .. "/lib/lua/5.4/*.so")):gmatch "[^\n]+" do
      local allowed = path:find "/lua/5.4/" and "luaopen_moongrid"
      for name in (run("nm -D --defined-only " .. path .. " | awk '{ print $3 }'")):gmatch "[^\n]+" do
        assert.truthy(name:find "^mgrid_" or name == allowed, path .. ": " .. name)
        n = n + 1
      end
    end
    assert.truthy(n > 100)
    assert.truthy((run(("objdump -p %s/lib/libmoongrid.so"):format(prefix))):find("SONAME +libmoongrid.so." .. support.interface .. "\n"))
    assert.is_nil((run(("objdump -p %s/lib/libmoongrid.so"):format(prefix))):find("libmpi"))
  end)

  it("has no other global name in a static library, where nothing is hidden", function()
    local n = 0
    for path in (run("ls " .. prefix .. "/lib/*.a")):gmatch "[^\n]+" do
      for name in (run("nm -g --defined-only " .. path .. " | awk 'NF == 3 { print $3 }'")):gmatch "[^\n]+" do
        assert.truthy(name:find "^mgrid_", path .. ": " .. name)
        n = n + 1
      end
    end
    assert.truthy(n > 200)
  end)

  it("leaves out the archive that takes one of Lua, and says so, where there is none", function()
    local out, err, code = run("make -s LUA_ARCHIVE= install PREFIX=/usr DESTDIR=" .. stage .. "/none")
    assert.equal(0, code, err)
    assert.truthy(out:find("libmoongrid_lua.a is left out: it takes an archive of Lua 5.4, and there is none", 1, true), out)
    local files = run(("find %s/none -name '*.a' -o -name '*.pc'"):format(stage))
    assert.truthy(files:find("/libmoongrid.a", 1, true) and files:find("/moongrid_lua.pc", 1, true))
    assert.is_nil(files:find("libmoongrid_lua.a", 1, true) or files:find("moongrid_static", 1, true))
    run(("rm -r %s/none"):format(stage))
  end)

  it("is undone by uninstall", function()
    local _, err, code = run("make -s uninstall DESTDIR=" .. stage .. " PREFIX=/usr/local")
    assert.equal(0, code, err)
    assert.equal("", (run("find " .. stage .. " -type f -o -type l")))
  end)
end)

describe("make install into a prefix of one's own", function()
  local own, printed

  setup(function()
    own = run "mktemp -d":gsub("\n", "")
    local err, code
    printed, err, code = run("make -s install PREFIX=" .. own)
    assert.equal(0, code, err)
  end)

  teardown(function() run("rm -rf " .. own) end)

  -- no variable of this shell's helps
  local function bare(line) return run("env -i HOME=/ PATH=/usr/bin:/bin " .. line) end

  it("prints the lines for the shell, pkg-config and Lua, and nothing else", function()
    assert.equal((([[
moongrid VERSION is in PREFIX, and runs and links from there. For the shell, pkg-config and Lua to find it:
  export PATH=PREFIX/bin:$PATH
  export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig:$PKG_CONFIG_PATH
  export LUA_PATH_5_4='PREFIX/share/lua/5.4/?.lua;;'
  export LUA_CPATH_5_4='PREFIX/lib/lua/5.4/?.so;;'
or, where there is Lmod: module use PREFIX/share/modulefiles && module load moongrid
]]):gsub("PREFIX", own):gsub("VERSION", support.version)), printed)
  end)

  it("says nothing where all is found anyway", function()
    local out, err, code = run(([[export PATH=%s/bin:$PATH PKG_CONFIG_PATH=%s/lib/pkgconfig LUA_PATH_5_4='%s/share/lua/5.4/?.lua;;'
      LUA_CPATH_5_4='%s/lib/lua/5.4/?.so;;' scripts/make/installed 1 %s %s/lib %s/lib/lua/5.4 %s/share/lua/5.4]])
      :gsub("%%s", own))
    assert.equal("", out .. err)
    assert.equal(0, code)
  end)

  it("the command loads what lies beside it", function()
    local out = bare(own .. "/bin/moongrid doctor")
    assert.truthy(out:find "^planning +yes ", out)
    if run "ls build":find "libmoongrid_mpi" then assert.truthy(out:find "\nmpi +yes ", out) end
  end)

  it("a program linked by pkg-config knows where its libraries are; one for the system's folders need not", function()
    local source = support.file(program):gsub("%.lua$", "")
    run(("mv %s.lua %s.c; cc %s.c -o %s $(PKG_CONFIG_PATH=%s/lib/pkgconfig pkg-config --cflags --libs moongrid)")
      :format(source, source, source, source, own))
    local out, err = bare(source)
    run(("rm -f %s %s.c"):format(source, source))
    assert.equal(support.version .. " 7 families\n", out, err)
    assert.truthy(run("scripts/make/pkgconfig moongrid 1 /opt/x /opt/x/lib"):find('\nLibs: -L"${libdir}" -Wl,-rpath,"${libdir}" -lmoongrid\n', 1, true))
    assert.truthy(run("scripts/make/pkgconfig moongrid 1 /usr /usr/lib"):find('\nLibs: -L"${libdir}" -lmoongrid\n', 1, true))
  end)

  it("a program of MPI needs no file of pkg-config's that only this shell finds", function()
    local out = run [[folder=$(mktemp -d)
      printf 'Name: M\nDescription: D\nVersion: 1\nCflags: -I/its/include\nLibs: -L/its -lits\n' > $folder/moongrid-its.pc
      PKG_CONFIG_PATH=$folder scripts/make/pkgconfig moongrid_mpi 1 /usr /usr/lib moongrid-its
      scripts/make/pkgconfig moongrid_mpi 1 /usr /usr/lib lua5.4
      rm -r $folder]]
    local here = out:match "Requires: moongrid\n(.-)\nprefix=" or out
    assert.truthy(here:find('Libs: -L"${libdir}" -lmoongrid_mpi -L/its -lits', 1, true), out)
    assert.truthy(here:find('Cflags: -I"${includedir}" -I/its/include', 1, true), out)
    assert.truthy(out:find('Requires: moongrid lua5.4\nLibs: -L"${libdir}" -lmoongrid_mpi\n', 1, true), out)
  end)

  it("goes into folders with blanks in their names, and out of them; not into those of this folder", function()
    local source = support.file(program):gsub("%.lua$", "")
    local out, err, code = run(([[set -e
      lines=$(make -s install PREFIX="OWN/a b")
      make -s install DESTDIR="OWN/c d" PREFIX="/e f" > OWN/staged
      mv SOURCE.lua SOURCE.c
      (eval "$(echo "$lines" | grep '  export')"
       cd / && eval cc SOURCE.c -o SOURCE $(pkg-config --cflags --libs moongrid) && SOURCE
       moongrid --version && lua5.4 -e 'print(require "moongrid"._VERSION)')
      make -s uninstall PREFIX="OWN/a b"
      make -s uninstall DESTDIR="OWN/c d" PREFIX="/e f"
      ls OWN; cat OWN/staged; find "OWN/a b" "OWN/c d/e f" ! -type d
      rm -rf "OWN/a b" "OWN/c d" OWN/staged SOURCE SOURCE.c]]):gsub("OWN", own):gsub("SOURCE", source))
    assert.equal(("VERSION 7 families\nmoongrid VERSION\nmoongrid VERSION\na b\nbin\nc d\ninclude\nlib\nshare\nstaged\n")
      :gsub("VERSION", support.version), out)
    assert.same({ "", 0 }, { err, code })
    for variable, folder in pairs { PREFIX = "moongrid", LIBDIR = "lib64", LUA_CMOD = "" } do
      local _, said, ended = run(("make -s install %s=%s"):format(variable, folder))
      assert.truthy(said:find(("%s is a path from the root, not '%s'\n"):format(variable, folder), 1, true), said)
      assert.equal(2, ended)
    end
  end)

  it("the printed lines serve stock Lua from any folder", function()
    local lines = printed:gsub("^[^\n]*\n", ""):gsub("or, where[^\n]*\n", "")
    local out, err = run("cd / && " .. lines:gsub("^%s+", "") ..
      [[lua5.4 -e 'print(#require "moongrid".load("megatron"):plan(64, { tp = 4 }))']])
    assert.equal("32\n", out, err)
  end)

  it("is a module of Lmod, which goes as it came", function()
    local init = run("ls /usr/share/lmod/lmod/init/bash"):gsub("\n", "")
    if init == "" then return pending "no lmod here" end
    -- loaded(SET): after these settings, Lua's path before, with the module, and after it
    local function loaded(set)
      local out, err = run(([[unset LUA_PATH LUA_CPATH LUA_PATH_5_4 LUA_CPATH_5_4; . %s
        module use %s/share/modulefiles
        %s
        path() { lua5.4 -e 'print(package.path)'; }
        path; module load moongrid; path
        cd / && moongrid --version && lua5.4 -e 'print(require "moongrid"._VERSION)' && pkg-config --modversion moongrid
        echo $MOONGRID_ROOT; echo ${MANPATH%%%%:*}
        module unload moongrid; path; echo $MOONGRID_ROOT; command -v moongrid]]):format(init, own, set))
      local before, with, version, module, pc, root, man, after, rest =
        out:match "^([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$"
      assert.equal(before, after, err)
      assert.equal(own .. "/share/lua/5.4/?.lua;" .. before, with)
      assert.equal("moongrid " .. support.version, version)
      assert.equal(version, module)
      assert.equal(support.version, pc)
      assert.equal(own, root)
      assert.equal(own .. "/share/man", man)
      assert.equal("\n", rest)
      return before
    end
    assert.truthy(loaded "":find "^/usr/local/share/lua")
    assert.truthy(loaded "export LUA_PATH='/y/?.lua;;'":find "^/y/%?%.lua;/usr/local")
    assert.equal("/y/?.lua;/z/?.lua", loaded "export LUA_PATH='/y/?.lua;/z/?.lua'")
    assert.truthy(loaded "export LUA_PATH_5_4='/x/?.lua;;' LUA_PATH='/y/?.lua'":find "^/x/%?%.lua;/usr/local")
  end)
end)
