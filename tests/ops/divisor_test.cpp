#include "ops/math/divisor.h"

#include <algorithm>

#include <doctest/doctest.h>

namespace dtrain::test {

TEST_CASE("a divisor's quotients equal those of a division") {
  constexpr int64_t k31 = int64_t{1} << 31;
  for (const int64_t divisor : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{10}, int64_t{255},
                                int64_t{256}, int64_t{50176}, int64_t{641}, int64_t{6700417}, k31 / 2 - 1,
                                k31 / 2 + 1, k31 - 1, k31, k31 + 1, 3 * k31}) {
    CAPTURE(divisor);
    const math::Divisor by(divisor);
    for (const int64_t quotient : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{1000}, (k31 - 1) / divisor,
                                   k31 / divisor, 5 * k31 / divisor}) {
      for (int64_t a = std::max<int64_t>(quotient * divisor - 2, 0); a <= quotient * divisor + 2; ++a) {
        CAPTURE(a);
        CHECK(by.quotient(a) == a / divisor);
      }
    }
    int wrong = 0;
    for (int64_t a = 1; a < k31; a += 99991) wrong += by.quotient(a) == a / divisor ? 0 : 1;
    CHECK(wrong == 0);
  }
}

}  // namespace dtrain::test
