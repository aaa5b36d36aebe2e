// Tests TensorBoard files byte by byte. tests/app/test_tensorboard.py reads such files with other programs.
#include "report/event_file.h"

#include <array>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

using namespace dtrain;

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

std::string scalar(int64_t step, double value = 0.5) {
  const std::array<std::pair<std::string, double>, 1> values{{{"loss", value}}};
  return scalars_event(1.0, step, values);
}

}  // namespace

TEST_CASE("CRC-32C has the values of RFC 3720's examples") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(crc32c("123456789") == 0xe3069283);
}

TEST_CASE("events have the encoding of protocol buffers") {
  // The event has the fields wall_time (number 1, fixed64) with the value 1.0 and file_version (3, bytes).
  CHECK(version_event(1.0) == bytes({0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x1a, 13}) + "brain.Event:2");
  // The event also has step (2, varint) 300 and session_log (7) { status (1) START }.
  CHECK(session_start_event(1.0, 300) ==
        bytes({0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 0xac, 0x02, 0x3a, 2, 0x08, 1}));
  // The event also has summary (5) { value (1) { tag (1) "loss", simple_value (2, fixed32) 0.5 } }.
  CHECK(scalar(1) == bytes({0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 1, 0x2a, 13, 0x0a, 11, 0x0a, 4}) +
                         "loss" + bytes({0x15, 0, 0, 0, 0x3f}));
  // These values are outside the range of float32.
  CHECK(scalar(1, 1e300).ends_with(bytes({0x15, 0, 0, 0x80, 0x7f})));
  CHECK(scalar(1, -1e300).ends_with(bytes({0x15, 0, 0, 0x80, 0xff})));
}

TEST_CASE("an event file is truncated before the steps that are repeated") {
  const std::string head = tf_record(version_event(1.0)), one = tf_record(scalar(1)),
                    two = tf_record(scalar(2)), three = tf_record(scalar(3));
  const std::string file = head + one + two + three;
  CHECK(records_up_to(file, 3) == file.size());
  CHECK(records_up_to(file, 2) == file.size() - three.size());
  CHECK(records_up_to(file, 0) == head.size());
  CHECK(records_up_to("", 5) == 0);
  SUBCASE("an event file truncated at any byte loses only the incomplete record") {
    const size_t whole = head.size() + one.size();
    for (size_t size = whole; size < whole + two.size(); ++size) {
      CAPTURE(size);
      CHECK(records_up_to(file.substr(0, size), 9) == whole);
    }
  }
  SUBCASE("an event file is truncated at the first damaged record") {
    std::string damaged = file;
    damaged[head.size() + one.size() + 20] ^= 1;
    CHECK(records_up_to(damaged, 9) == head.size() + one.size());
    damaged = file;
    damaged[head.size() + 5] = '\x7f';  // a length that exceeds the memory of any machine
    CHECK(records_up_to(damaged, 9) == head.size());
  }
}

TEST_CASE("a histogram counts every finite value once") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::array<float, 6> values{-1.0F, 0.0F, 0.5F, 2.0F, nan, HUGE_VALF};
  const Histogram histogram = histogram_of(values);
  CHECK(histogram.count == 4);
  CHECK(histogram.min == -1.0);
  CHECK(histogram.max == 2.0);
  CHECK(histogram.sum == doctest::Approx(1.5));
  CHECK(histogram.sum_squares == doctest::Approx(5.25));
  REQUIRE(histogram.limits.size() == histogram.counts.size());
  CHECK(histogram.limits.back() == 2.0);
  double counted = 0;
  for (const double count : histogram.counts) counted += count;
  CHECK(counted == 4);
  CHECK(histogram.counts.front() == 1);
  CHECK(histogram.counts.back() == 1);
  const std::array<float, 3> same{0.25F, 0.25F, 0.25F};
  CHECK(histogram_of(same).counts == std::vector<double>{3.0});
  CHECK(histogram_of({}).count == 0);
}
