/*
 * counted.hpp - the compiler includes this file before all others (-include). The code here counts how often usher.hpp
 * successfully calls each C function; calls by the test itself do not count. When the program ends, it prints a claim
 * for every function: usher.hpp called it. Tests/cpp/run writes counted_on.h and counted_off.h from the headers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <atomic>
#include <cstdio>
#include <type_traits>
#include <usher/usher.h>

template <auto Function>
struct counted;
template <class Result, class... Arguments, Result (*Function)(Arguments...)>
struct counted<Function> {
  static inline std::atomic<int> good{0};
  static Result call(Arguments... arguments) {
    Result result = Function(arguments...);
    if constexpr (std::is_same_v<Result, int32_t>) good += result == USHER_OK;
    else good += result != nullptr;
    return result;
  }
};

#include "counted_on.h" // #define usher_version ::counted<::usher_version>::call ...
#include <usher/usher.hpp>
#include "counted_off.h"

inline struct counted_report {
  ~counted_report() {
#define FUNCTION(name, ...) \
  std::printf("%sok - usher.hpp calls " #name "(), and it succeeds: %d times\n", counted<name>::good ? "" : "not ", \
      counted<name>::good.load());
#include "functions.h"
#undef FUNCTION
    std::fflush(stdout);
  }
} counted_report_at_the_end;
