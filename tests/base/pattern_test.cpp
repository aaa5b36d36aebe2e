#include "base/pattern.h"

#include <doctest/doctest.h>

using namespace dtrain;

TEST_CASE("a star matches any characters, also slashes") {
  struct Case {
    const char* pattern;
    const char* name;
    bool fits;
  };
  for (const Case& one :
       {Case{.pattern = "dense/kernel", .name = "dense/kernel", .fits = true},
        Case{.pattern = "dense/kernel", .name = "dense/kernels", .fits = false},
        Case{.pattern = "dense", .name = "dense/kernel", .fits = false},
        Case{.pattern = "*", .name = "", .fits = true}, Case{.pattern = "*", .name = "a/b", .fits = true},
        Case{.pattern = "*/bias", .name = "block_1/dense/bias", .fits = true},
        Case{.pattern = "*/bias", .name = "bias", .fits = false},
        Case{.pattern = "block_*", .name = "block_", .fits = true},
        Case{.pattern = "a*b*c", .name = "aXbXbXc", .fits = true},
        Case{.pattern = "a*b*c", .name = "aXcXb", .fits = false},
        Case{.pattern = "*ab", .name = "aab", .fits = true},
        Case{.pattern = "a**", .name = "a", .fits = true}, Case{.pattern = "", .name = "a", .fits = false}}) {
    CAPTURE(one.pattern);
    CAPTURE(one.name);
    CHECK(matches(one.pattern, one.name) == one.fits);
  }
}

TEST_CASE("matched_by_star() returns the characters that the star of a pattern matches") {
  CHECK(matched_by_star("base/*", "base/conv/kernel") == "conv/kernel");
  CHECK(matched_by_star("*/kernel", "a/b/kernel") == "a/b");
  CHECK(matched_by_star("a*b", "ab") == "");
}
