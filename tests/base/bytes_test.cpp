#include "base/bytes.h"

#include <doctest/doctest.h>

using namespace dtrain;

TEST_CASE("amounts of memory are formatted and parsed with units") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(999) == "999 B");
  CHECK(format_bytes(18'300'000) == "18.3 MB");
  CHECK(parse_bytes("24GB") == 24'000'000'000u);
  CHECK(parse_bytes("1.5 GB") == 1'500'000'000u);
  CHECK(parse_bytes("512 MiB") == 512u << 20);
  CHECK(parse_bytes("16KiB") == 16u << 10);
  CHECK(parse_bytes("3 kB") == 3000u);
  CHECK(parse_bytes("1000000") == 1'000'000u);
  CHECK(parse_bytes("7B") == 7u);
  CHECK(parse_bytes("0") == 0u);
  for (const char* text : {"", "GB", "-1GB", "24G", "24 gb", "1e9", "24GBs", "24  GB", "nan", "inf",
                           "2000000PB", "1,5 GB", "0x10"}) {
    CAPTURE(text);
    CHECK(parse_bytes(text) == std::nullopt);
  }
}
