// One description of an options struct gives its parsing, its defaults, its diagnostics and its JSON schema.
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

/// What reading a mapping of fields came to; in_details: all mistakes are in Schema::details, which keep
/// their defaults then.
enum class Reading { good, in_details, wrong };

/// One field of an options struct of whatever type: the struct is handed over as a void*.
class SchemaField {
 public:
  SchemaField(std::string name, std::string doc, bool required)
      : name_(std::move(name)), doc_(std::move(doc)), required_(required) {}
  virtual ~SchemaField() = default;
  const std::string& name() const { return name_; }
  const std::string& doc() const { return doc_; }
  bool required() const { return required_; }
  /// Reads `node` into the field of `object`; returns false after reporting a mistake.
  virtual bool parse(const ConfigNode& node, const std::string& where, void* object,
                     Diagnostics& diagnostics) const = 0;
  virtual ConfigNode write(const void* object) const = 0;
  virtual Json json_schema() const = 0;

 private:
  const std::string name_;
  const std::string doc_;
  const bool required_;
};

/// All of a Schema that does not depend on the struct's type, so that it is compiled once.
class SchemaBase {
 public:
  const std::string& doc() const { return doc_; }
  std::vector<std::string> field_names() const;
  /// Whether some field must be written.
  bool has_required() const;

 protected:
  using Rule = std::function<void(const void* object, const ConfigNode& node, Diagnostics&)>;

  explicit SchemaBase(std::string doc) : doc_(std::move(doc)) {}
  SchemaBase(const SchemaBase&) = default;
  SchemaBase(SchemaBase&&) = default;
  SchemaBase& operator=(const SchemaBase&) = default;
  SchemaBase& operator=(SchemaBase&&) = default;
  ~SchemaBase() = default;

  void add_field(std::shared_ptr<const SchemaField> field) { fields_.push_back(std::move(field)); }
  void add_rule(Rule rule) { rules_.push_back(std::move(rule)); }
  void set_positional(std::string name);
  void set_details(std::vector<std::string> names);
  void set_example(std::string options) { example_ = std::move(options); }
  void set_short_by_default() { short_by_default_ = true; }
  Reading read_fields(const ConfigNode& node, const std::string& what, void* out,
                      Diagnostics& diagnostics) const;
  ConfigNode write_fields(const void* object) const;
  bool is_short_by_default() const { return short_by_default_; }
  static bool are_equal(const ConfigNode& a, const ConfigNode& b);
  /// `defaults` points to a struct as its type's constructor leaves it.
  Json json_schema_of(const void* defaults) const;

 private:
  const SchemaField* find(std::string_view name) const;
  bool is_detail(std::string_view name) const;
  bool is_harmless(const std::string& unknown_key) const;
  std::string bare_field() const;
  ConfigNode spelled_out(const ConfigNode& node) const;

  std::string doc_;
  std::vector<std::shared_ptr<const SchemaField>> fields_;
  std::string positional_;
  std::string example_;
  bool short_by_default_ = false;
  std::optional<std::vector<std::string>> details_;
  std::vector<Rule> rules_;
};

template <class T>
class Schema : public SchemaBase {
 public:
  explicit Schema(std::string doc) : SchemaBase(std::move(doc)) {}

  /// A field that must be written. `T{}` need not be meaningful there.
  template <class V>
  Schema& required(std::string name, V T::*member, std::string doc, Check<V> check = {});
  /// A field whose default is what `T{}` holds.
  template <class V>
  Schema& optional(std::string name, V T::*member, std::string doc, Check<V> check = {});
  /// Options that are not written as a mapping of fields belong to this field: `images: flowers`,
  /// `activation: {leaky_relu: {negative_slope: 0.1}}` (a mapping of one key that is no field here). Without
  /// this call a scalar or a list belongs to the required field, where there is one only: `dense: 2`,
  /// `rescale: 1/255`.
  Schema& positional(std::string name);
  /// A check over several fields, run when each of them was well formed; it reports by itself at `node`.
  Schema& rule(std::function<void(const T&, const ConfigNode& node, Diagnostics&)> rule);
  /// Names the fields that do not decide what others see of the object (for a layer: its output's shape). The
  /// object is of use to further checks even where these fields are wrong, or keys are not known. A schema
  /// without this call has no such fields.
  Schema& details(std::vector<std::string> names);
  /// Options as a user might write them, in YAML, for the reference: "{units: 64, activation: relu}".
  Schema& example(std::string options);
  /// Makes write() return an empty mapping if every field has its default, so that the kind is written as its
  /// bare name.
  Schema& short_by_default();

  /// Parses `node` (null stands for an empty mapping). Unknown keys, missing fields, wrong types and failed
  /// checks are all reported, each at its place; `what` names the kind in messages ("conv2d"). True if
  /// nothing was reported.
  bool parse(const ConfigNode& node, const std::string& what, T& out, Diagnostics& diagnostics) const {
    return read(node, what, out, diagnostics) == Reading::good;
  }
  /// Parses as parse() does, and tells mistakes in details() from others.
  Reading read(const ConfigNode& node, const std::string& what, T& out, Diagnostics& diagnostics) const {
    return read_fields(node, what, &out, diagnostics);
  }
  /// Returns all fields, defaults included (see short_by_default), as a mapping that `parse` reads back to an
  /// equal struct.
  ConfigNode write(const T& value) const {
    ConfigNode written = write_fields(&value);
    if (!is_short_by_default()) return written;
    const T defaults{};
    return are_equal(written, write_fields(&defaults)) ? ConfigNode::mapping({}) : written;
  }
  Json json_schema() const {
    const T defaults{};
    return json_schema_of(&defaults);
  }
};

/// While one lives (in its thread), a JSON schema that comes again stands once, under "$defs", and is
/// referred to from elsewhere.
class SchemaDefinitions {
 public:
  SchemaDefinitions();
  ~SchemaDefinitions();
  SchemaDefinitions(const SchemaDefinitions&) = delete;
  SchemaDefinitions& operator=(const SchemaDefinitions&) = delete;
  /// A reference to what `make` makes, under this name (blanks become '_'); the schema itself where no
  /// SchemaDefinitions live.
  static Json define(std::string name, const std::function<Json()>& make);
  Json take() { return std::move(definitions_); }

 private:
  Json definitions_ = Json::object();
};

/// The value as JSON: plain scalars by what they read as.
Json to_json(const ConfigNode& node);

}  // namespace dtrain

#include "config/schema_impl.h"  // the templates' definitions
