/* SPDX-License-Identifier: MIT
**
** moongrid_cpp.h - functions of a C++ host that may throw. moongrid is C, so an exception must not
** leave a function that it calls: a function for recipes, a hook, a sink, a carrier.
** MGRID_CAUGHT(f) calls f and catches its exceptions:
**
**     mgrid_function rack = mgrid_function_of("rack_of", "2", MGRID_CAUGHT(rack_of), &machine);
**     mgrid_plan_print(plan, MGRID_CAUGHT(write), &file, &e);
**
** After an exception the call of moongrid fails: with the text of what() in its message if f has an
** mgrid_error argument, else with the usual error (a sink: MGRID_OUTPUT; an allocation:
** MGRID_NO_MEMORY). If `log` throws, a line is lost. Objects stay usable. f is the name of a
** function, not a lambda or a pointer. C++11 and later.
*/
#ifndef MOONGRID_CPP_H
#define MOONGRID_CPP_H

#include "moongrid.h"

#include <cstdio>
#include <exception>

/* Fill the mgrid_error among the arguments of a call with the text of the exception. Other
** arguments are ignored. */
template <typename T> inline int mgrid_caught_tell(const char *, T) { return 0; }

inline int mgrid_caught_tell(const char *what, mgrid_error *err) {
  if (!err || err->status) return 0;
  err->status = MGRID_REFUSED;
  return std::snprintf(err->message, sizeof err->message, "an exception of the host: %s", what);
}

/* What each kind of function returns when it fails. */
template <typename R> struct mgrid_caught_as {
  static R failed() { return R(); }
};
template <> inline mgrid_status mgrid_caught_as<mgrid_status>::failed() { return MGRID_REFUSED; }
template <> inline int mgrid_caught_as<int>::failed() { return 1; }
template <> inline int64_t mgrid_caught_as<int64_t>::failed() { return -1; }

template <typename F, F *f> struct mgrid_caught;
template <typename R, typename... A, R (*f)(A...)> struct mgrid_caught<R(A...), f> {
  static R fail(const char *what, A... a) {
    int told[] = { 0, mgrid_caught_tell(what, a)... };
    (void)told, (void)what;
    return mgrid_caught_as<R>::failed();
  }
  static R call(A... a) noexcept {
    try {
      return f(a...);
    } catch (const std::exception &x) {
      return fail(x.what(), a...);
    } catch (...) {
      return fail("not a std::exception", a...);
    }
  }
};
#define MGRID_CAUGHT(f) (&mgrid_caught<decltype(f), f>::call)

#endif
