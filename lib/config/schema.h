// One description of an options struct gives its parsing, its defaults, its diagnostics and its JSON schema.
//
//   struct DenseOptions { int64_t units = 0; bool use_bias = true; };
//   const auto schema = Schema<DenseOptions>("A fully connected layer: activation(x W + b).")
//       .required("units", &DenseOptions::units, "size of the output", at_least<int64_t>(1))
//       .optional("use_bias", &DenseOptions::use_bias, "add a bias");
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "config/codec.h"
#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// A restriction on one field's value beyond its type: what it says in messages, and the test.
template <class V>
struct Check {
  std::string expected;                 // "a number of at least 1"
  std::function<bool(const V&)> holds;  // empty: anything goes
  Json schema = Json::object();         // what it adds to the field's JSON schema, as {"minimum": 1}
};

template <class V>
Check<V> at_least(V low);
template <class V>
Check<V> greater_than(V low);
template <class V>
Check<V> between(V low, V high);  // both ends included
template <class V>
Check<V> between_excluding_high(V low, V high);  // low <= value < high, as dropout's rate

template <class T>
class Schema {
 public:
  explicit Schema(std::string doc) : doc_(std::move(doc)) {}

  /// A field that must be written. `T{}` need not be meaningful there.
  template <class V>
  Schema& required(std::string name, V T::*member, std::string doc, Check<V> check = {});
  /// A field whose default is what `T{}` holds.
  template <class V>
  Schema& optional(std::string name, V T::*member, std::string doc, Check<V> check = {});
  /// Options that are not written as a mapping of fields belong to this field: `reshape: [784]`, `activation:
  /// relu`, `activation: {leaky_relu: {negative_slope: 0.1}}` (a mapping of one key that is no field here).
  Schema& positional(std::string name);
  /// A check over several fields, run when each of them was well formed; it reports by itself at `node`.
  Schema& rule(std::function<void(const T&, const ConfigNode& node, Diagnostics&)> rule);
  /// Fields that do not decide what others see of the object (for a layer: its output's shape): it is of use
  /// to further checks even where these are wrong, or keys that are not known. Without this call none is.
  Schema& details(std::vector<std::string> names);

  /// Parses `node` (null stands for an empty mapping). Unknown keys, missing fields, wrong types and failed
  /// checks are all reported, each at its place; `what` names the kind in messages ("conv2d"). True if
  /// nothing was reported.
  bool parse(const ConfigNode& node, const std::string& what, T& out, Diagnostics& diagnostics) const {
    return read(node, what, out, diagnostics) == Reading::good;
  }
  /// As parse; `in_details` where all mistakes are in details(), which keep their defaults then.
  enum class Reading { good, in_details, wrong };
  Reading read(const ConfigNode& node, const std::string& what, T& out, Diagnostics& diagnostics) const;
  /// Everything, defaults included, as a mapping that `parse` reads back to an equal struct.
  ConfigNode write(const T& value) const;
  Json json_schema() const;
  const std::string& doc() const { return doc_; }
  std::vector<std::string> field_names() const;
  /// Whether some field must be written.
  bool has_required() const;

 private:
  struct Field {
    std::string name;
    std::string doc;
    bool required;
    std::function<bool(const ConfigNode&, const std::string& where, T&, Diagnostics&)> parse;
    std::function<ConfigNode(const T&)> write;
    std::function<Json()> schema;
  };
  template <class V>
  Schema& add(std::string name, V T::*member, std::string doc, Check<V> check, bool required);
  const Field* find(std::string_view name) const;
  bool is_detail(std::string_view name) const;
  bool is_harmless(const std::string& unknown_key) const;
  /// `node` as a mapping of fields, what positional() stands for written out.
  ConfigNode spelled_out(const ConfigNode& node) const;

  std::string doc_;
  std::vector<Field> fields_;
  std::string positional_;
  std::optional<std::vector<std::string>> details_;
  std::vector<std::function<void(const T&, const ConfigNode&, Diagnostics&)>> rules_;
};

/// While one lives (in its thread), JSON schemas that come again stand once, under "$defs", and are referred
/// to.
class SchemaDefinitions {
 public:
  SchemaDefinitions();
  ~SchemaDefinitions();
  SchemaDefinitions(const SchemaDefinitions&) = delete;
  SchemaDefinitions& operator=(const SchemaDefinitions&) = delete;
  /// A reference to what `make` makes, under this name (blanks become '_'); that itself where none lives.
  static Json define(std::string name, const std::function<Json()>& make);
  Json take() { return std::move(definitions_); }

 private:
  Json definitions_ = Json::object();
};

}  // namespace dtrain

#include "config/schema_impl.h"  // the templates' definitions
