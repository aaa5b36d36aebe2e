// The tolerance of tests that measure speed.
#pragma once

namespace dtrain::test {

/// The factor by which builds with sanitizers may be slower.
#if defined(__SANITIZE_THREAD__)
inline constexpr double kSlowness = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr double kSlowness = 4;
#else
inline constexpr double kSlowness = 1;
#endif

}  // namespace dtrain::test
