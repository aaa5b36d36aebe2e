// Fields of protocol buffers, compared with the examples in the specification.
#include "base/formats/protobuf.h"

#include <doctest/doctest.h>

using namespace dtrain;
using namespace std::string_literals;

TEST_CASE("protobuf fields have the bytes of the specification") {
  CHECK(proto_varint(1, 150) == "\x08\x96\x01"s);
  CHECK(proto_bytes(2, "testing") == "\x12\x07testing"s);
  CHECK(proto_varint(1, -1) == "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
  CHECK(proto_float(3, 1) == "\x1d\x00\x00\x80\x3f"s);
  CHECK(proto_float(3, 1e300) == "\x1d\x00\x00\x80\x7f"s);
  CHECK(proto_double(1, 1) == "\x09\x00\x00\x00\x00\x00\x00\xf0\x3f"s);
  CHECK(proto_varint(16, 1) == "\x80\x01\x01"s);
  CHECK(proto_bytes_head(2, 300) == "\x12\xac\x02"s);
}

TEST_CASE("a truncated varint is not read") {
  uint64_t value = 0;
  std::string_view bytes = "\x96\x01!";
  CHECK(take_varint(bytes, value));
  CHECK(value == 150);
  CHECK(bytes == "!");
  bytes = "\x96";
  CHECK(!take_varint(bytes, value));
}
