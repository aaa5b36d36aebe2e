#include "config/schema.h"

#include "layers.h"
#include "support.h"

namespace dtrain::test {

namespace {

/// Returns the messages of parsing the text as T's options.
template <class T>
std::string errors(std::string_view text, const std::string& what) {
  Diagnostics diagnostics;
  T out;
  const bool good = T::schema().parse(yaml(text), what, out, diagnostics);
  CHECK(good == !diagnostics.has_errors());
  return messages(diagnostics);
}

template <class T>
T read(std::string_view text) {
  Diagnostics diagnostics;
  T out;
  T::schema().parse(yaml(text), "x", out, diagnostics);
  CHECK(messages(diagnostics) == "");
  return out;
}

}  // namespace

TEST_CASE("given options are read, and other options keep their defaults") {
  const auto conv =
      read<TestConv>("filters: 8\nkernel_size: [3, 5]\nactivation: {leaky_relu: {negative_slope: 0.5}}\n");
  CHECK(conv.filters == 8);
  CHECK(conv.kernel_size == Size2{3, 5});
  CHECK(conv.strides == Size2{1, 1});
  CHECK(conv.activation->apply(-2) == -1.0);
  CHECK_FALSE(conv.clip.has_value());
}

TEST_CASE("every error is reported at its location") {
  CHECK(errors<TestConv>("kernal_size: 3\n"
                         "strides: 0\n"
                         "padding: smae\n"
                         "activation:\n"
                         "  laeky_relu: {}\n"
                         "rate: 1.0\n"
                         "zzz: 1\n",
                         "conv2d") ==
        "f:1:1: error: unknown key 'kernal_size' in conv2d; did you mean 'kernel_size'?\n"
        "f:1:1: error: missing key 'filters' in conv2d (number of output channels)\n"
        "f:1:1: error: missing key 'kernel_size' in conv2d (height and width of the window)\n"
        "f:2:10: error: conv2d's strides: expected an integer of at least 1, found '0'\n"
        "f:3:10: error: conv2d's padding: unknown value 'smae'; did you mean 'same'?\n"
        "f:5:3: error: unknown activation 'laeky_relu'; did you mean 'leaky_relu'?\n"
        "f:6:7: error: conv2d's rate: expected a number of at least 0 and less than 1, found '1.0'\n"
        "f:7:1: error: unknown key 'zzz' in conv2d; expected one of filters, kernel_size, strides, padding, "
        "activation, rate, clip");
}

TEST_CASE("values outside a check's range are errors") {
  CHECK(errors<TestConv>("{filters: 0, kernel_size: 1}", "conv2d") ==
        "f:1:11: error: conv2d's filters: expected a number of at least 1, found '0'");
  CHECK(errors<TestConv>("{filters: 1, kernel_size: 1, clip: 0}", "conv2d") ==
        "f:1:36: error: conv2d's clip: expected a number greater than 0, found '0'");
  CHECK(errors<TestConv>("{filters: 1, kernel_size: 1, clip: null, rate: 0}", "conv2d") == "");
  const Check<int> range = between(2, 4);
  CHECK(range.expected == "a number from 2 to 4");
  CHECK_FALSE(range.holds(1));
  CHECK(range.holds(2));
  CHECK(range.holds(4));
  CHECK_FALSE(range.holds(5));
}

TEST_CASE("a value that fails a check is not assigned") {
  Diagnostics diagnostics;
  TestConv out;
  CHECK_FALSE(TestConv::schema().parse(yaml("{filters: 3, kernel_size: 1, rate: 7}"), "x", out, diagnostics));
  CHECK(out.rate == 0);
  CHECK(out.filters == 3);
}

TEST_CASE("errors in details do not prevent the use of an object") {
  const auto schema = Schema<TestConv>(TestConv::schema()).details({"activation", "rate"});
  const auto reading = [&](std::string_view text) {
    Diagnostics diagnostics;
    TestConv out;
    return schema.read(yaml(text), "conv2d", out, diagnostics);
  };
  CHECK(reading("{filters: 1, kernel_size: 1}") == Reading::good);
  CHECK(reading("{filters: 1, kernel_size: 1, rate: 2}") == Reading::in_details);
  CHECK(reading("{filters: 1, kernel_size: 1, activation: laeky}") == Reading::in_details);
  CHECK(reading("{filters: 1, kernel_size: 1, rat: 2, zzz: 1}") == Reading::in_details);
  CHECK(reading("{filters: 1, kernel_size: 1, stride: 2}") == Reading::wrong);  // suggests strides
  CHECK(reading("{filters: 1, kernel_size: 1, padding: sane}") == Reading::wrong);
  CHECK(reading("{filters: 1}") == Reading::wrong);
  CHECK(reading("{filters: 1, kernel_size: 1, strides: 2}") == Reading::wrong);  // violates a rule
  CHECK(reading("[1]") == Reading::wrong);
  Diagnostics diagnostics;
  TestConv out;
  CHECK(TestConv::schema().read(yaml("{filters: 1, kernel_size: 1, zzz: 2}"), "conv2d", out, diagnostics) ==
        Reading::wrong);
  CHECK_THROWS_AS(Schema<TestConv>("").details({"nothing"}), std::logic_error);
}

TEST_CASE("the fields of a part have a prefix and are details, and null fields are not written") {
  struct Part {
    int64_t size = 1;
    std::optional<double> limit;
  };
  struct Whole {
    int64_t units = 0;
    Part kernel;
  };
  const auto schema = Schema<Whole>("a test")
                          .required("units", &Whole::units, "units")
                          .part("kernel_", &Whole::kernel,
                                Schema<Part>("a part")
                                    .optional("size", &Part::size, "size", at_least<int64_t>(1))
                                    .optional("limit", &Part::limit, "limit"))
                          .details({});
  const auto reading = [&](std::string_view text, Whole& out) {
    Diagnostics diagnostics;
    return schema.read(yaml(text), "whole", out, diagnostics);
  };
  Whole out;
  CHECK(reading("{units: 3, kernel_size: 2, kernel_limit: 0.5}", out) == Reading::good);
  CHECK(out.kernel.size == 2);
  CHECK(out.kernel.limit == 0.5);
  CHECK(schema.write(out).to_yaml() == "units: 3\nkernel_size: 2\nkernel_limit: 0.5\n");
  CHECK(schema.write(Whole{}).to_yaml() == "units: 0\nkernel_size: 1\n");
  CHECK(reading("{units: 3, kernel_size: 0}", out) == Reading::in_details);
  CHECK(reading("{units: x}", out) == Reading::wrong);
}

TEST_CASE("fields of omit_default() are written only if they have another value") {
  struct Options {
    int64_t units = 2, groups = 1;
  };
  const auto schema = Schema<Options>("a test")
                          .optional("units", &Options::units, "units")
                          .optional("groups", &Options::groups, "groups")
                          .omit_default("groups");
  CHECK(schema.write(Options{}).to_yaml() == "units: 2\n");
  CHECK(schema.write(Options{2, 3}).to_yaml() == "units: 2\ngroups: 3\n");
  CHECK(schema.json_schema().at("properties").at("groups").at("default").as_int() == 1);
  CHECK_THROWS_AS(Schema<Options>("").omit_default("nothing"), std::logic_error);
}

TEST_CASE("short_by_default() writes no options if all fields have their default values") {
  struct Options {
    double slope = 0.1;
    std::vector<int64_t> sizes = {1, 2};
    std::optional<std::string> name = std::nullopt;
  };
  auto schema = Schema<Options>("a test")
                    .optional("slope", &Options::slope, "slope")
                    .optional("sizes", &Options::sizes, "sizes")
                    .optional("name", &Options::name, "name")
                    .short_by_default();
  const auto is_empty = [&](const Options& options) { return schema.write(options).entries().empty(); };
  CHECK(is_empty({}));
  CHECK(is_empty({.sizes = {1, 2}}));
  CHECK_FALSE(is_empty({.slope = 0.2}));
  CHECK_FALSE(is_empty({.sizes = {1}}));
  CHECK_FALSE(is_empty({.sizes = {1, 3}}));
  CHECK_FALSE(is_empty({.name = "null"}));
  CHECK(schema.write({.slope = 0.2}).find("sizes"));  // one different field: all fields are written
  CHECK_THROWS_AS(schema.optional("more", &Options::slope, "more"), std::logic_error);
  CHECK_THROWS_AS(schema.omit_default("slope"), std::logic_error);
}

TEST_CASE("rules run only if all fields are valid") {
  CHECK(errors<TestConv>("{filters: 1, kernel_size: 2, strides: 3}", "conv2d") ==
        "f:1:1: error: conv2d: strides are larger than kernel_size");
  CHECK_FALSE(contains(errors<TestConv>("{filters: x, kernel_size: 2, strides: 3}", "conv2d"), "larger"));
}

TEST_CASE("a schema expects a mapping") {
  CHECK(errors<TestConv>("[1]", "conv2d") == "f:1:1: error: conv2d: expected a mapping, found the list [1]");
  CHECK(errors<TestConv>("null", "conv2d") ==
        "f:1:1: error: missing key 'filters' in conv2d (number of output channels)\n"
        "f:1:1: error: missing key 'kernel_size' in conv2d (height and width of the window)");
}

TEST_CASE("a positional option may be given without its key") {
  CHECK(read<TestReshape>("[784]").target_shape == Shape{784});
  CHECK(read<TestReshape>("{target_shape: [7, 2]}").target_shape == Shape{7, 2});
  CHECK(read<TestActivate>("leaky_relu").function.name == "leaky_relu");
  CHECK(read<TestActivate>("{leaky_relu: {negative_slope: 0.5}}").function->apply(-4) == -2.0);
  CHECK(read<TestActivate>("{function: linear}").function.name == "linear");
  CHECK(errors<TestReshape>("7", "reshape") ==
        "f:1:1: error: reshape's target_shape: expected a list of positive integers, found '7'");
  CHECK(contains(errors<TestReshape>("{targte_shape: [1]}", "reshape"),
                 "f:1:2: error: unknown key 'targte_shape' in reshape; did you mean 'target_shape'?"));
  CHECK(errors<TestActivate>("{relu: {}}", "activation") ==
        "f:1:2: error: unknown activation 'relu'; expected a number, or one of linear, leaky_relu");
}

TEST_CASE("every option is written, and the result is read back unchanged") {
  const auto conv =
      read<TestConv>("{filters: 8, kernel_size: 3, padding: same, activation: leaky_relu, rate: 0.1}");
  const ConfigNode written = TestConv::schema().write(conv);
  CHECK(written.to_yaml() ==
        "filters: 8\nkernel_size: 3\nstrides: 1\npadding: same\nactivation: {leaky_relu: {negative_slope: "
        "0.25}}\n"
        "rate: 0.1\nclip: null\n");
  const auto again = read<TestConv>(written.to_yaml());
  CHECK(equal(TestConv::schema().write(again), written));
}

TEST_CASE("a schema's JSON schema describes its options") {
  const Json schema = TestConv::schema().json_schema();
  CHECK(schema.find("type")->as_string() == "object");
  CHECK(schema.find("description")->as_string() == "A convolution.");
  CHECK_FALSE(schema.find("additionalProperties")->as_bool());
  CHECK(schema.find("required")->dump() == R"(["filters", "kernel_size"])");
  const Json& properties = *schema.find("properties");
  CHECK(properties.find("filters")->dump() ==
        R"({"type": "integer", "minimum": 1, "description": "number of output channels"})");
  CHECK(properties.find("rate")->dump() ==
        R"({"type": ["number", "string"], "pattern": "^[-+.0-9eE]+ */ *[-+.0-9eE]+$", "minimum": 0.0, )"
        R"("exclusiveMaximum": 1.0, "description": "dropout", "default": 0})");
  CHECK(properties.find("padding")->find("default")->as_string() == "valid");
  CHECK(properties.find("activation")->find("default")->as_string() == "linear");
  CHECK(properties.find("clip")->find("default")->is_null());
  CHECK(Json::parse(schema.dump(2)).dump() == schema.dump());

  const Json reshape = TestReshape::schema().json_schema();
  REQUIRE(reshape.find("anyOf")->items().size() == 2);
  CHECK(reshape.find("anyOf")->items()[1].find("type")->as_string() == "array");
  CHECK(reshape.find("anyOf")->items()[1].find("description")->as_string() ==
        "short for {target_shape: ...}");
}

TEST_CASE("a schema's example is in its JSON schema") {
  const Schema<TestReshape> plain = TestReshape::schema();
  CHECK(plain.json_schema().find("anyOf")->items()[0].find("examples") == nullptr);
  const Json schema = Schema<TestReshape>(plain).example("{target_shape: [2, 3]}").json_schema();
  CHECK(schema.find("anyOf")->items()[0].find("examples")->dump() == R"([{"target_shape": [2, 3]}])");
  CHECK_THROWS_AS(Schema<TestReshape>(plain).example("{target_shape: [2, 3").json_schema(), UserError);
}

TEST_CASE("repeated parts of a JSON schema are defined once") {
  const auto make = [] { return Json::object().set("made", true); };
  CHECK(SchemaDefinitions::define("a thing", make).dump() == R"({"made": true})");
  SchemaDefinitions definitions;
  CHECK(SchemaDefinitions::define("a thing", make).dump() == R"({"$ref": "#/$defs/a_thing"})");
  CHECK(SchemaDefinitions::define("a thing", [] { return Json(); }).dump() ==
        R"({"$ref": "#/$defs/a_thing"})");
  CHECK(registry<TestActivation>().json_schema().dump() == R"({"$ref": "#/$defs/activation"})");
  const Json all = definitions.take();
  REQUIRE(all.entries().size() == 2);
  CHECK(all.find("a_thing")->dump() == R"({"made": true})");
  CHECK(all.find("activation")->find("oneOf")->items().size() == 3);
}

TEST_CASE("a schema lists its fields") {
  CHECK(TestReshape::schema().field_names() == std::vector<std::string>{"target_shape"});
  CHECK(TestReshape::schema().has_required());
  CHECK_FALSE(Schema<TestLeaky::Options>("").has_required());
  CHECK_THROWS_AS(Schema<TestReshape>("").positional("nothing"), std::logic_error);
}

}  // namespace dtrain::test
