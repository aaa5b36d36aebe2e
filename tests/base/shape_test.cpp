#include "base/shape.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace dtrain {

TEST_CASE("a shape counts its elements, and overflow is an error") {
  CHECK(Shape{}.elements() == 1);
  CHECK(Shape{2, 3, 4}.elements() == 24);
  CHECK(Shape{INT64_MAX, 1}.elements() == INT64_MAX);
  CHECK_THROWS_AS((Shape{int64_t{1} << 32, int64_t{1} << 32}.elements()), Error);
}

TEST_CASE("Shape::exceeds() works for any extents without overflow") {
  CHECK_FALSE(Shape{2, 3}.exceeds(6));
  CHECK(Shape{2, 3}.exceeds(5));
  CHECK_FALSE(Shape{}.exceeds(1));
  CHECK(Shape{INT64_MAX, INT64_MAX, INT64_MAX, 2}.exceeds(INT64_MAX - 1));
  CHECK_FALSE(Shape{INT64_MAX, INT64_MAX, 0}.exceeds(1));
  CHECK(Shape{65536, 65536, 65536, 65536, 1}.exceeds(kMostArrayElements));  // 2^64 wraps to 0
}

TEST_CASE("prepended() adds a batch axis at the front of a sample's shape") {
  const Shape sample{28, 28, 1};
  CHECK(sample.prepended(32) == Shape{32, 28, 28, 1});
  CHECK(Shape{}.prepended(32) == Shape{32});
  CHECK(sample == Shape{28, 28, 1});
}

TEST_CASE("shapes are formatted for messages") {
  CHECK(Shape{28, 28, 1}.str() == "28x28x1");
  CHECK(Shape{10}.str() == "10");
  CHECK(Shape{}.str() == "scalar");
}

}  // namespace dtrain
