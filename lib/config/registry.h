// A choice among named types with their own options, such as layers, optimizers, initializers, readers or
// strategies. A choice is written as `adam: {learning_rate: 0.001}`, or as the bare name (`adam`) for the
// defaults.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"

namespace dtrain {

/// A chosen type: its name, the object made from its options, and the choice with all options written out.
template <class Base>
struct Configured {
  std::string name;
  std::shared_ptr<const Base> value;
  /// {name: {all options}}, or only the name if the type has no options. The location of this node is the
  /// place in the configuration where the type is chosen.
  ConfigNode resolved;

  explicit operator bool() const { return value != nullptr; }
  const Base* operator->() const { return value.get(); }
  const Base& operator*() const { return *value; }
};

/// A Configured<Base> without its static type: `value` points to a `const Base`.
struct AnyConfigured {
  std::string name;
  std::shared_ptr<const void> value;
  ConfigNode resolved;
};

/// A choice as written in the configuration: the name (a scalar) and the options (null if not given).
struct WrittenKind {
  ConfigNode name;
  ConfigNode options;
};

/// Splits a choice, `name` or `{name: options}`, into name and options. If `number_kind` is not empty, also
/// accepts a number, which means the type `number_kind` with the option `number_field` set to this number.
/// Reports an error for anything else.
std::optional<WrittenKind> take_apart(const ConfigNode& node, const std::string& noun,
                                      const std::string& number_kind, const std::string& number_field,
                                      Diagnostics& diagnostics);
/// Returns {name: options}, or only the name if there are no options.
ConfigNode resolved_kind(const std::string& name, const Mark& mark, const ConfigNode& options);

/// One type of a registry. This base class hides the C++ type of the options.
class RegisteredKind {
 public:
  virtual ~RegisteredKind() = default;
  /// Reads `options` and creates the object, a `const Base`. Sets `resolved` to the options including
  /// defaults. On an error, reports it and returns null. If all errors are in details (Schema::details),
  /// returns an object nevertheless.
  virtual std::shared_ptr<const void> make(const std::string& name, const ConfigNode& options,
                                           ConfigNode& resolved, Diagnostics& diagnostics) const = 0;
  virtual const SchemaBase& schema() const = 0;
  virtual Json json_schema() const = 0;
};

/// The part of a Registry that does not depend on its types, so that it is compiled once.
class RegistryBase {
 public:
  bool contains(std::string_view name) const;
  /// Returns the name of the type that is called `name` in dtrain or in Keras (`Adam`, `mse`). Returns "" if
  /// there is no such type.
  std::string canonical(std::string_view name) const;
  std::vector<std::string> names() const;
  /// Removes inherited types from `node` if the same mapping also contains a newly written type. For example,
  /// removes an inherited `adam` if `sgd` is written. `other` is an additional key that also replaces an
  /// inherited type.
  ConfigNode without_replaced(const ConfigNode& node, std::string_view other = "") const;
  /// Returns the names of the options of a type. Returns an empty list if the type is unknown.
  const std::vector<std::string>& fields(std::string_view name) const;
  const std::string& noun() const { return noun_; }
  /// Returns a JSON schema that accepts any type of the registry (oneOf). A type that requires no options may
  /// be written as its name only. If a SchemaDefinitions object exists, adds the schema to its definitions
  /// and returns a reference.
  Json json_schema() const;
  /// Like json_schema(), but never returns a reference.
  Json choices_schema() const;

 protected:
  explicit RegistryBase(std::string noun) : noun_(std::move(noun)) {}
  ~RegistryBase() = default;
  RegistryBase(const RegistryBase&) = default;
  RegistryBase(RegistryBase&&) = default;
  RegistryBase& operator=(const RegistryBase&) = default;
  RegistryBase& operator=(RegistryBase&&) = default;

  void add_kind(std::string name, std::shared_ptr<const RegisteredKind> kind);
  void set_number_kind(std::string name, std::string field);
  AnyConfigured parse_any(const ConfigNode& node, Diagnostics& diagnostics) const;
  AnyConfigured parse_any(const ConfigNode& name, const ConfigNode& options, Diagnostics& diagnostics) const;
  AnyConfigured make_any(const std::string& name) const;

 private:
  struct Entry {
    std::string name;
    std::shared_ptr<const RegisteredKind> kind;
  };
  /// Returns the type that is called `name` in dtrain or in Keras, or nullptr.
  const Entry* find(std::string_view name) const;

  std::string noun_;
  std::vector<Entry> entries_;
  std::string number_kind_, number_field_;
};

/// A table of named types with a common base class. The table is built once, by a function that adds all
/// types in order.
template <class Base>
class Registry : public RegistryBase {
 public:
  /// `noun` is the word for the types in messages, such as "optimizer" in "unknown optimizer 'adm'".
  explicit Registry(std::string noun) : RegistryBase(std::move(noun)) {}

  /// Adds a type whose objects are made by std::make_shared<const Impl>(options).
  template <class Impl, class Options>
  Registry& add(std::string name, Schema<Options> schema);
  /// Adds a type whose objects are made by a function: std::shared_ptr<const Base>(const Options&, const
  /// ConfigNode&).
  template <class Options, class Make>
  Registry& add_with(std::string name, Schema<Options> schema, Make make);
  /// Makes a number without a type name mean the type `name` with the option `field` set to the number. For
  /// example, `learning_rate: 0.001` means {constant: {value: 0.001}}.
  Registry& number_as(std::string name, std::string field);

  /// Parses a choice. On an error, reports it and returns an empty choice. If all errors are in details
  /// (Schema::details), returns the choice nevertheless.
  Configured<Base> parse(const ConfigNode& node, Diagnostics& diagnostics) const;
  /// Like parse() above, but the choice is already split into name and options. Used for layers, after the
  /// keys that all layers have in common were removed from the options.
  Configured<Base> parse(const ConfigNode& name, const ConfigNode& options, Diagnostics& diagnostics) const;
  /// Returns a type with its default options. Used for defaults in option structs. Throws std::logic_error if
  /// the name is unknown.
  Configured<Base> make(const std::string& name) const;
};

/// Returns the table that Codec<Configured<Base>> uses. There is a specialization for every Base used in
/// options (template <> const Registry<Optimizer>& registry<Optimizer>();).
template <class Base>
const Registry<Base>& registry();

}  // namespace dtrain

#include "config/registry_impl.h"  // template definitions
