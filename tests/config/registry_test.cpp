#include "config/registry.h"

#include "config/load/merge.h"
#include "layers.h"
#include "support.h"

namespace dtrain {
using namespace test;

namespace {

const Registry<TestActivation>& table() {
  return registry<TestActivation>();
}

Configured<TestActivation> read(std::string_view text) {
  Diagnostics diagnostics;
  auto kind = table().parse(yaml(text), diagnostics);
  CHECK(messages(diagnostics) == "");
  REQUIRE(kind);
  return kind;
}

std::string errors(std::string_view text) {
  Diagnostics diagnostics;
  CHECK_FALSE(table().parse(yaml(text), diagnostics));
  return messages(diagnostics);
}

struct Nested {
  virtual ~Nested() = default;
};
struct Wrapper final : Nested {
  struct Options {
    Configured<Nested> inner;
  };
  explicit Wrapper(const Options&) {}
};

}  // namespace

template <>
const Registry<Nested>& registry<Nested>() {
  static const auto kTable = Registry<Nested>("wrapper").add<Wrapper>(
      "wrapper",
      Schema<Wrapper::Options>("again").required("inner", &Wrapper::Options::inner, "the wrapped"));
  return kTable;
}

TEST_CASE("a kind is written as a name, or as a name with options") {
  for (const char* text :
       {"leaky_relu", "{leaky_relu: }", "{leaky_relu: {}}", "{leaky_relu: {negative_slope: 0.25}}"}) {
    const auto kind = read(text);
    CHECK(kind.name == "leaky_relu");
    CHECK(kind->apply(-4) == -1.0);
    CHECK(equal(kind.resolved, yaml("{leaky_relu: {negative_slope: 0.25}}")));
  }
  const auto linear = read("linear");
  CHECK(equal(linear.resolved, yaml("linear")));
  CHECK(linear.resolved.mark().str() == "f:1:1");
  CHECK(read("{linear: {}}").resolved.is_scalar());
}

TEST_CASE("one kind may be written as a number") {
  CHECK(read("0.5")->apply(-4) == -2.0);
  CHECK(equal(read("0.5").resolved, yaml("{leaky_relu: {negative_slope: 0.5}}")));
  CHECK(read("1/4")->apply(-4) == -1.0);
  CHECK(errors("-1") ==
        "f:1:1: error: leaky_relu's negative_slope: expected a number of at least 0, found '-1'");
  CHECK(errors("'0.5'") ==
        "f:1:1: error: unknown activation '0.5'; expected a number, or one of linear, leaky_relu");
}

TEST_CASE("a kind in a configuration replaces the kind in its base") {
  const auto merged_yaml = [](std::string_view base, std::string_view over) {
    Diagnostics diagnostics;
    const auto kind = table().parse(merged(yaml(base), yaml(over)), diagnostics);
    CHECK(messages(diagnostics) == "");
    return kind.resolved.to_yaml();
  };
  CHECK(merged_yaml("{leaky_relu: {negative_slope: 0.5}}", "{linear: {}}") == "linear\n");
  CHECK(merged_yaml("{leaky_relu: {negative_slope: 0.5}}", "linear") == "linear\n");
  CHECK(merged_yaml("{leaky_relu: {negative_slope: 0.5}}", "{leaky_relu: }") ==
        "leaky_relu: {negative_slope: 0.25}\n");
  CHECK(merged_yaml("{leaky_relu: {negative_slope: 0.5}}", "{leaky_relu: {}}") ==
        "leaky_relu: {negative_slope: 0.5}\n");
  // Two types in one file are still an error, and so is an unknown type.
  Diagnostics diagnostics;
  CHECK_FALSE(table().parse(merged(yaml("{linear: {}}"), yaml("{liner: {}}")), diagnostics));
  CHECK(contains(messages(diagnostics), "f:1:2: error: activation: expected a number"));
}

TEST_CASE("any other node is an error that says what was expected") {
  CHECK(errors("{linear: {}, leaky_relu: {}}") ==
        "f:1:1: error: activation: expected a number, a name, or a mapping with one key, {name: options}; "
        "found a mapping with 2 keys");
  CHECK(contains(errors("nan"), "unknown activation 'nan'; expected a number, or one of "));
  CHECK(contains(errors("[linear]"), "; found the list [linear]"));
  CHECK(contains(errors("{}"), "; found an empty mapping"));
  CHECK(contains(errors("~"), "; found nothing"));
  CHECK(errors("laeky_relu") == "f:1:1: error: unknown activation 'laeky_relu'; did you mean 'leaky_relu'?");
  CHECK(errors("{linear: {slope: 1}}") == "f:1:11: error: unknown key 'slope' in linear; it has no options");
  CHECK(errors("{leaky_relu: 3}") == "f:1:14: error: leaky_relu: expected a mapping, found '3'");
}

TEST_CASE("a missing key is reported at the kind's name") {
  const auto layers = Registry<TestConv>("layer").add<TestConv>("conv2d", TestConv::schema());
  for (const char* text : {"a:\n  conv2d:\n    filters: 3\n", "a:\n  conv2d: {filters: 3}\n"}) {
    Diagnostics diagnostics;
    CHECK_FALSE(layers.parse(*yaml(text).find("a"), diagnostics));
    CHECK(messages(diagnostics) ==
          "f:2:3: error: missing key 'kernel_size' in conv2d (height and width of the window)");
  }
}

TEST_CASE("a registry may create objects by a function") {
  Diagnostics diagnostics;
  const auto table_of_slopes = Registry<double>("slope").add_with(
      "leaky",
      Schema<TestLeaky::Options>("").optional("negative_slope", &TestLeaky::Options::negative_slope, ""),
      [](const TestLeaky::Options& options, const ConfigNode&) {
        return std::make_shared<const double>(options.negative_slope);
      });
  CHECK(*table_of_slopes.parse(yaml("{leaky: {negative_slope: 2}}"), diagnostics) == 2.0);
  CHECK(*table_of_slopes.make("leaky") == 0.25);
}

TEST_CASE("incorrect use of a registry is a logic_error") {
  CHECK_THROWS_AS(table().make("nothing"), std::logic_error);
  CHECK_THROWS_AS(registry<Nested>().make("wrapper"), std::logic_error);  // a required field has no default
  auto twice =
      Registry<TestActivation>("activation").add<TestLinear>("linear", Schema<TestLinear::Options>(""));
  CHECK_THROWS_AS(twice.add<TestLinear>("linear", Schema<TestLinear::Options>("")), std::logic_error);
  CHECK(table().contains("linear"));
  CHECK_FALSE(table().contains("lin"));
  CHECK(table().names() == std::vector<std::string>{"linear", "leaky_relu"});
}

TEST_CASE("a registry's JSON schema lists its kinds and refers to nested ones") {
  const Json schema = table().json_schema();
  const auto& choices = schema.find("oneOf")->items();
  REQUIRE(choices.size() == 3);
  CHECK(choices[0].find("oneOf")->items()[0].find("const")->as_string() == "linear");
  CHECK(choices[2].find("type")->items()[0].as_string() == "number");
  const std::string nested = registry<Nested>().json_schema().dump();
  CHECK(contains(nested, R"("inner": {"description": "the wrapped"})"));
}

}  // namespace dtrain
