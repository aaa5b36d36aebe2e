// A Schema describes an options struct; it provides parsing, defaults, diagnostics and the JSON schema.
//
//   struct DenseOptions { int64_t units = 0; bool use_bias = true; };
//   const auto schema = Schema<DenseOptions>("A fully connected layer: activation(x W + b).")
//       .required("units", &DenseOptions::units, "size of the output", at_least<int64_t>(1))
//       .optional("use_bias", &DenseOptions::use_bias, "add a bias")
//       .example("{units: 64}");
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "config/check.h"
#include "config/codec.h"
#include "config/diagnostics.h"
#include "config/node.h"

namespace dtrain {

/// The result of reading a mapping of fields. `in_details`: all errors are in fields of Schema::details().
/// Such a field keeps its default value or, if it is a list, contains the valid items.
enum class Reading { good, in_details, wrong };

/// One field of an options struct. The struct may have any type and is passed as a void*.
class SchemaField {
 public:
  SchemaField(std::string name, std::string doc, bool required)
      : key_(ConfigNode::scalar(std::move(name))), doc_(std::move(doc)), required_(required) {}
  virtual ~SchemaField() = default;
  const std::string& name() const { return key_.text(); }
  /// Returns the name as the key of a mapping. All mappings that are written share this node, because a large
  /// model has hundreds of thousands of keys.
  const ConfigNode& key() const { return key_; }
  const std::string& doc() const { return doc_; }
  bool required() const { return required_; }
  /// Reads `node` into the field of `object`. Returns false after reporting an error.
  virtual bool parse(const ConfigNode& node, const std::string& where, void* object,
                     Diagnostics& diagnostics) const = 0;
  virtual ConfigNode write(const void* object) const = 0;
  virtual Json json_schema() const = 0;
  /// Returns true if the field was added by Schema::part().
  virtual bool is_of_part() const { return false; }

 private:
  const ConfigNode key_;
  const std::string doc_;
  const bool required_;
};

/// The part of a Schema that does not depend on the struct's type, so that it is compiled once.
class SchemaBase {
 public:
  const std::string& doc() const { return doc_; }
  const std::vector<std::string>& field_names() const { return field_names_; }
  /// Returns true if at least one field is required.
  bool has_required() const;

 protected:
  using Rule = std::function<void(const void* object, const ConfigNode& node, Diagnostics&)>;

  explicit SchemaBase(std::string doc) : doc_(std::move(doc)) {}
  SchemaBase(const SchemaBase&) = default;
  SchemaBase(SchemaBase&&) = default;
  SchemaBase& operator=(const SchemaBase&) = default;
  SchemaBase& operator=(SchemaBase&&) = default;
  ~SchemaBase() = default;

  void add_field(std::shared_ptr<const SchemaField> field);
  const std::vector<std::shared_ptr<const SchemaField>>& fields() const { return fields_; }
  void add_rule(Rule rule) { rules_.push_back(std::move(rule)); }
  void set_positional(std::string name);
  void set_details(std::vector<std::string> names);
  void set_example(std::string options) { example_ = std::move(options); }
  /// `defaults` points to a default-constructed struct. After this call, add_field() and
  /// set_omitted_default() throw std::logic_error.
  void set_short_by_default(const void* defaults);
  /// `defaults` points to a default-constructed struct.
  void set_omitted_default(const std::string& name, const void* defaults);
  Reading read_fields(const ConfigNode& node, const std::string& what, void* out,
                      Diagnostics& diagnostics) const;
  ConfigNode write_fields(const void* object) const;
  /// Returns the JSON schema. `defaults` points to a default-constructed struct.
  Json json_schema_of(const void* defaults) const;

 private:
  const SchemaField* find(std::string_view name) const;
  bool is_detail(std::string_view name) const;
  bool is_harmless(const std::string& unknown_key) const;
  std::string bare_field() const;
  ConfigNode spelled_out(const ConfigNode& node) const;

  std::string doc_;
  std::vector<std::shared_ptr<const SchemaField>> fields_;
  std::vector<std::string> field_names_;
  std::string positional_;
  std::string example_;
  std::optional<ConfigNode> defaults_;  // all default values; set by short_by_default()
  // Names and default values of the fields passed to omit_default().
  std::vector<std::pair<std::string, ConfigNode>> omitted_;
  std::optional<std::vector<std::string>> details_;
  std::vector<Rule> rules_;
};

template <class T>
class Schema : public SchemaBase {
 public:
  template <class Whole>
  friend class Schema;

  explicit Schema(std::string doc) : SchemaBase(std::move(doc)) {}

  /// Adds a required field. Its value in `T{}` is not used.
  template <class V>
  Schema& required(std::string name, V T::*member, std::string doc, Check<V> check = {});
  /// Adds a field that defaults to its value in `T{}`.
  template <class V>
  Schema& optional(std::string name, V T::*member, std::string doc, Check<V> check = {});
  /// Adds the fields of the struct `member`, which `schema` describes, as fields of this schema. `prefix` is
  /// put before their names. These fields count as details(). write() omits them if they are null.
  template <class V>
  Schema& part(const std::string& prefix, V T::*member, const Schema<V>& schema);
  /// Selects the field that is set by options that are not a mapping of fields. Examples: `images: flowers`,
  /// and `activation: {leaky_relu: {negative_slope: 0.1}}`, a mapping whose only key is not a field. Without
  /// this call, a scalar or list sets the required field if there is exactly one, e.g. `dense: 2` and
  /// `rescale: 1/255`.
  Schema& positional(std::string name);
  /// Adds a check that involves several fields. It runs only if every field is valid, and reports errors at
  /// `node` itself.
  Schema& rule(std::function<void(const T&, const ConfigNode& node, Diagnostics&)> rule);
  /// Names the fields that other parts of the configuration do not depend on. For example, other layers
  /// depend on the output shape of a layer, so the fields that do not affect it are details. If only details
  /// are wrong, or some keys are unknown, the object is still created, so that the rest of the configuration
  /// can be checked. Without this call, no field is a detail.
  Schema& details(std::vector<std::string> names);
  /// Sets the example of the options in the reference, in YAML: "{units: 64, activation: relu}".
  Schema& example(std::string options);
  /// Makes write() return an empty mapping if every field has its default value. The type is then written as
  /// its name only. Call this function after optional(), required(), part() and omit_default(), which throw
  /// std::logic_error afterwards.
  Schema& short_by_default();
  /// Makes write() omit the field `name` if it has its default value. Call this function for fields that were
  /// added after the first files with these options were written, so that write() still returns the same
  /// options for older models.
  Schema& omit_default(const std::string& name);

  /// Parses `node`; null means an empty mapping. Reports all unknown keys, missing fields, wrong types and
  /// failed checks, each at its location. `what` names the type in messages ("conv2d"). Returns true if there
  /// were no errors.
  bool parse(const ConfigNode& node, const std::string& what, T& out, Diagnostics& diagnostics) const {
    return read(node, what, out, diagnostics) == Reading::good;
  }
  /// Like parse(), but the result also tells whether all errors are in details().
  Reading read(const ConfigNode& node, const std::string& what, T& out, Diagnostics& diagnostics) const {
    return read_fields(node, what, &out, diagnostics);
  }
  /// Returns a mapping of all fields, including those with default values (except after short_by_default()
  /// and omit_default()). `parse` converts the mapping back to an equal struct.
  ConfigNode write(const T& value) const { return write_fields(&value); }
  Json json_schema() const {
    const T defaults{};
    return json_schema_of(&defaults);
  }
};

/// While an object of this class exists, a JSON schema that occurs several times is written once under
/// "$defs" and referenced elsewhere. Applies to the thread that created the object.
class SchemaDefinitions {
 public:
  SchemaDefinitions();
  ~SchemaDefinitions();
  SchemaDefinitions(const SchemaDefinitions&) = delete;
  SchemaDefinitions& operator=(const SchemaDefinitions&) = delete;
  /// Calls `make`, adds the schema that it returns to the definitions, and returns a reference to the
  /// definition. The name of the definition is `name`, with '_' instead of spaces. Does not call `make` if a
  /// definition with this name exists. If no SchemaDefinitions object exists, returns the schema itself.
  static Json define(std::string name, const std::function<Json()>& make);
  Json take() { return std::move(definitions_); }

 private:
  Json definitions_ = Json::object();
};

/// Converts a value to JSON. An unquoted scalar that looks like a boolean or a number becomes a boolean or a
/// number.
Json to_json(const ConfigNode& node);

}  // namespace dtrain

#include "config/schema_impl.h"  // template definitions
