#include "config/codec.h"

#include <limits>

#include "config/schema.h"
#include "support.h"

namespace dtrain {
using namespace test;

namespace {

enum class Padding { valid, same };

struct Inner {
  int64_t size = 3;
  static const Schema<Inner>& schema() {
    static const auto kSchema = Schema<Inner>("inner").optional("size", &Inner::size, "a size");
    return kSchema;
  }
};

/// Returns the codec's error for this text; "" if the codec accepts the text.
template <class V>
std::string errors(const std::string& text, V* out = nullptr) {
  Diagnostics diagnostics;
  V value{};
  const bool good = Codec<V>::parse(yaml(text), "x", value, diagnostics);
  CHECK(good == !diagnostics.has_errors());
  if (out) *out = value;
  const std::string all = messages(diagnostics);
  const std::string place = "f:1:1: error: ";
  return all.starts_with(place) ? all.substr(place.size()) : all;
}

template <class V>
V read(const std::string& text) {
  V value{};
  CHECK(errors<V>(text, &value) == "");
  return value;
}

/// Checks that writing a value and reading it back returns the same value.
template <class V>
void check_same(const V& value) {
  CHECK(read<V>(Codec<V>::write(value).to_yaml()) == value);
}

}  // namespace

template <>
inline const EnumNames<Padding> names_of<Padding> = {{Padding::valid, "valid"}, {Padding::same, "same"}};

TEST_CASE("integers must be whole numbers within their range") {
  CHECK(read<int>("-7") == -7);
  CHECK(read<int>("+7") == 7);
  CHECK(read<int64_t>("9223372036854775807") == std::numeric_limits<int64_t>::max());
  CHECK(read<uint64_t>("18446744073709551615") == std::numeric_limits<uint64_t>::max());
  for (const char* text : {"1.5", "1e3", "0x10", "1_000", "true", "abc", "1 ", "- 1", "+-1", "--1", "1a"}) {
    CAPTURE(text);
    if (std::string(text) != "1 " && std::string(text) != "- 1")
      CHECK(errors<int>(text) == "x: expected an integer, found '" + std::string(text) + "'");
  }
  CHECK(errors<int>("'5'") == "x: expected an integer, found the string '5'");
  CHECK(errors<int>("null") == "x: expected an integer, found nothing");
  CHECK(errors<int>("[1]") == "x: expected an integer, found the list [1]");
  CHECK(errors<int>("[]") == "x: expected an integer, found an empty list");
  CHECK(errors<int>("2147483648") ==
        "x: expected an integer from -2147483648 to 2147483647, found '2147483648'");
  CHECK(
      errors<int64_t>("9223372036854775808") ==
      "x: expected an integer from -9223372036854775808 to 9223372036854775807, found '9223372036854775808'");
  CHECK(errors<uint64_t>("-1") == "x: expected an integer from 0 to 18446744073709551615, found '-1'");
  CHECK(errors<int>("99999999999999999999999999").starts_with("x: expected an integer from"));
}

TEST_CASE("numbers must be finite") {
  CHECK(read<double>("1e-3") == 0.001);
  CHECK(read<double>("5") == 5.0);
  CHECK(read<double>("+.5") == 0.5);
  CHECK(read<float>("0.1") == 0.1f);
  for (const char* text :
       {"inf", ".inf", "nan", ".nan", "1e999", "-1e999", "abc", "true", "1.5x", "1,5", "0x1p3"})
    CHECK(errors<double>(text) == "x: expected a finite number, found '" + std::string(text) + "'");
  CHECK(errors<float>("1e39") == "x: expected a finite number, found '1e39'");
  CHECK(errors<double>("\"1\"") == "x: expected a finite number, found the string '1'");
  for (const double value : {0.1, 1.0 / 3, 1e30, 1.5e-30, -0.0, 12345678.9, 1e22}) check_same(value);
  for (const float value : {0.1f, 1.0f / 3, 3.4e38f, 1.2e-38f}) check_same(value);
}

TEST_CASE("numbers must be within the range of float32") {
  for (const char* text : {"1e39", "-1e300", "1e-39", "5e-324"})
    CHECK(errors<double>(text) ==
          "x: expected 0, or a number whose absolute value is between 1.2e-38 and 3.4e+38 (the range of "
          "float32), found '" +
              std::string(text) + "'");
  CHECK(read<double>("0") == 0.0);
  CHECK(read<double>("-3.4e38") == -3.4e38);
}

TEST_CASE("a number may be a quotient") {
  CHECK(read<double>("1/255") == 1.0 / 255);
  CHECK(read<double>("-1 / 2.5e1") == -1 / 2.5e1);
  CHECK(Codec<double>::write(read<double>("1/255")).text() == "0.00392156862745098");
  for (const char* text : {"1/0", "0/0", "1/", "/2", "1/2/3", "a/2", "1//2", "1/-", "1e300/1e-300"})
    CHECK(errors<double>(text) == "x: expected a finite number, found '" + std::string(text) + "'");
  CHECK(errors<double>("'1/2'") == "x: expected a finite number, found the string '1/2'");
  CHECK(errors<int>("4/2") == "x: expected an integer, found '4/2'");
}

TEST_CASE("numbers are written so that YAML 1.1 reads them as numbers") {
  CHECK(Codec<double>::write(1e-7).text() == "1.0e-07");
  CHECK(Codec<double>::write(1.5e-7).text() == "1.5e-07");
  CHECK(Codec<double>::write(-1e22).text() == "-1.0e+22");
  CHECK(Codec<double>::write(0.001).text() == "0.001");
}

TEST_CASE("booleans are true and false") {
  for (const char* text : {"true", "True", "TRUE"}) CHECK(read<bool>(text));
  for (const char* text : {"false", "False", "FALSE"}) CHECK_FALSE(read<bool>(text));
  for (const char* text : {"tRUE", "yes", "on", "1"})
    CHECK(errors<bool>(text) == "x: expected true or false, found '" + std::string(text) + "'");
  CHECK(errors<bool>("'true'") == "x: expected true or false, found the string 'true'");
}

TEST_CASE("strings, lists and optional values are read") {
  CHECK(read<std::string>("5") == "5");
  CHECK(read<std::string>("'a b'") == "a b");
  CHECK(errors<std::string>("[a]") == "x: expected a string, found the list [a]");
  CHECK(errors<std::string>("~") == "x: expected a string, found nothing");
  CHECK(read<std::vector<int>>("[1, 2]") == std::vector<int>{1, 2});
  CHECK(errors<std::vector<int>>("3") == "x: expected a list, found '3'");
  CHECK(errors<std::vector<int>>("[a, 1, b]") ==
        "f:1:2: error: x: expected an integer, found 'a'\nf:1:8: error: x: expected an integer, found 'b'");
  CHECK(read<std::optional<int>>("null") == std::nullopt);
  CHECK(read<std::optional<int>>("3") == 3);
  CHECK(errors<std::optional<int>>("x") == "x: expected an integer, found 'x'");
  check_same(std::vector<std::string>{"", "a", "true", "1", "null"});
  check_same(std::optional<double>());
}

TEST_CASE("shapes are lists of positive integers") {
  CHECK(read<Shape>("[28, 28, 1]") == Shape{28, 28, 1});
  CHECK(read<Shape>("[]") == Shape{});
  check_same(Shape{3, 4});
  CHECK(errors<Shape>("784") == "x: expected a list of positive integers, found '784'");
  CHECK(errors<Shape>("[3, 0, -1]") ==
        "f:1:5: error: x: expected an integer of at least 1, found '0'\n"
        "f:1:8: error: x: expected an integer of at least 1, found '-1'");
  CHECK(errors<Shape>("[65536, 32768]") == "x: the shape 65536x32768 has more than 2147483647 elements");
  CHECK(errors<Shape>("[2147483647, 2147483647, 2147483647, 4]")
            .starts_with("x: the shape 2147483647x2147483647x2147483647x4 has more than 2147483647 elem"));
  CHECK(
      errors<Shape>("[4294967297]").starts_with("f:1:2: error: x: expected an integer from 1 to 2147483647"));
  CHECK(errors<Shape>("[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]") ==
        "x: expected at most 16 axes, found 17");
}

TEST_CASE("sizes are one integer or a list of extents") {
  CHECK(read<Size2>("3") == Size2{3, 3});
  CHECK(read<Size2>("[3, 5]") == Size2{3, 5});
  check_same(Size2{3, 5});
  check_same(Size2{2, 2});
  CHECK(errors<Size2>("[3]") == "x: expected [height, width], found a list of length 1");
  CHECK(errors<Size2>("4294967297") == "x: expected an integer from 1 to 2147483647, found '4294967297'");
  CHECK(errors<Size2>("[1, 2147483648]")
            .starts_with("f:1:5: error: x: expected an integer from 1 to 2147483647"));
  CHECK(errors<Size2>("0") == "x: expected an integer of at least 1, found '0'");
  CHECK(read<Size3>("3") == Size3{3, 3, 3});
  CHECK(read<Size3>("[3, 5, 7]") == Size3{3, 5, 7});
  check_same(Size3{3, 5, 7});
  check_same(Size3{2, 2, 2});
  CHECK(errors<Size3>("[3, 5]") == "x: expected [depth, height, width], found a list of length 2");
  CHECK(errors<Size3>("{}") == "x: expected an integer or [depth, height, width], found an empty mapping");
  CHECK(errors<Size2>("{}") == "x: expected an integer or [height, width], found an empty mapping");
}

TEST_CASE("enums and dtypes are read by name") {
  CHECK(read<DType>("uint8") == DType::uint8);
  CHECK(errors<DType>("float23") == "x: unknown value 'float23'; did you mean 'float32'?");
  CHECK(errors<DType>("bfloat16") == "x: unknown value 'bfloat16'; expected one of float32, int32, uint8");
  CHECK(errors<DType>("double") == "x: unknown value 'double'; expected one of float32, int32, uint8");
  CHECK(read<Padding>("same") == Padding::same);
  check_same(Padding::valid);
  CHECK(errors<Padding>("smae") == "x: unknown value 'smae'; did you mean 'same'?");
  CHECK(errors<Padding>("[same]") == "x: expected one of valid, same, found the list [same]");
  CHECK(Codec<Padding>::schema().dump() == R"({"enum": ["valid", "same"]})");
}

TEST_CASE("a field may be a struct or any YAML value") {
  CHECK(read<Inner>("{size: 5}").size == 5);
  CHECK(errors<Inner>("{siez: 5}") == "f:1:2: error: unknown key 'siez' in x; did you mean 'size'?");
  CHECK(equal(read<ConfigNode>("{a: [1]}"), yaml("{a: [1]}")));
}

}  // namespace dtrain
