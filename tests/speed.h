// What tests of speed allow.
#pragma once

namespace dtrain::test {

/// How many times as long as any other an instrumented build may take.
#if defined(__SANITIZE_THREAD__)
inline constexpr double kSlowness = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr double kSlowness = 4;
#else
inline constexpr double kSlowness = 1;
#endif

}  // namespace dtrain::test
