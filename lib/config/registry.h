// A choice among named types with their own options: layers, optimizers, initializers, readers, strategies
// ... Written as `adam: {learning_rate: 0.001}`, or as the bare name (`adam`) for the defaults.
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
  /// {name: {all options}}, or the bare name if the type has no options; keeps the mark of the written
  /// choice.
  ConfigNode resolved;

  explicit operator bool() const { return value != nullptr; }
  const Base* operator->() const { return value.get(); }
  const Base& operator*() const { return *value; }
};

/// Configured<Base> with the type Base erased: `value` points to a `const Base`.
struct AnyConfigured {
  std::string name;
  std::shared_ptr<const void> value;
  ConfigNode resolved;
};

/// A choice as written: the name (a scalar) and the options (null if not given).
struct WrittenKind {
  ConfigNode name;
  ConfigNode options;
};

/// Splits `name` and `{name: options}` into name and options. If `number_kind` is set, also accepts a number,
/// which means the type `number_kind` with its `number_field` set to the number. Reports anything else.
std::optional<WrittenKind> take_apart(const ConfigNode& node, const std::string& noun,
                                      const std::string& number_kind, const std::string& number_field,
                                      Diagnostics& diagnostics);
/// Returns {name: options}, or the bare name if there are no options.
ConfigNode resolved_kind(const std::string& name, const Mark& mark, const ConfigNode& options);

/// One type of a registry, independent of its options' type.
class RegisteredKind {
 public:
  virtual ~RegisteredKind() = default;
  /// Reads `options` and makes the object, a `const Base`. Sets `resolved` to the full options. Returns null
  /// after reporting an error, unless all errors are in details (Schema::details).
  virtual std::shared_ptr<const void> make(const std::string& name, const ConfigNode& options,
                                           ConfigNode& resolved, Diagnostics& diagnostics) const = 0;
  virtual const SchemaBase& schema() const = 0;
  virtual Json json_schema() const = 0;
};

/// The part of a Registry that does not depend on its types, so that it is compiled once.
class RegistryBase {
 public:
  bool contains(std::string_view name) const;
  /// Returns the type called `name`, by its own or its Keras name (`Adam`, `mse`), or "" if there is none.
  std::string canonical(std::string_view name) const;
  std::vector<std::string> names() const;
  /// Returns `node` without inherited types if a type that replaces them is written next to them; for
  /// example, without an inherited `adam` next to `sgd`. `other` is another key that replaces a type.
  ConfigNode without_replaced(const ConfigNode& node, std::string_view other = "") const;
  /// Returns the option names of the type with this name; empty if unknown.
  std::vector<std::string> fields(std::string_view name) const;
  const std::string& noun() const { return noun_; }
  /// Returns a JSON schema: oneOf the types, with bare names if no field is required. If a SchemaDefinitions
  /// object exists, defines the schema under the noun and returns a reference.
  Json json_schema() const;
  /// Like json_schema(), but always returns the schema itself.
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
  std::string noun_;
  std::vector<Entry> entries_;
  std::string number_kind_, number_field_;
};

/// An explicit table of types with a common base. A function that lists every type in order builds it once.
template <class Base>
class Registry : public RegistryBase {
 public:
  /// `noun` names the base in messages: "unknown optimizer 'adm'; did you mean 'adam'?"
  explicit Registry(std::string noun) : RegistryBase(std::move(noun)) {}

  /// Adds a type whose objects are made by std::make_shared<const Impl>(options).
  template <class Impl, class Options>
  Registry& add(std::string name, Schema<Options> schema);
  /// Adds a type whose objects are made by a function: std::shared_ptr<const Base>(const Options&, const
  /// ConfigNode&).
  template <class Options, class Make>
  Registry& add_with(std::string name, Schema<Options> schema, Make make);
  /// Makes a bare number mean this type with `field` set to it: `learning_rate: 0.001` means {constant:
  /// {value: 0.001}}.
  Registry& number_as(std::string name, std::string field);

  /// Parses a choice. On an error, reports it and returns an empty choice, unless all errors are in details
  /// (Schema::details).
  Configured<Base> parse(const ConfigNode& node, Diagnostics& diagnostics) const;
  /// Like parse() above, for a name and options already split (after a layer's common keys were removed).
  Configured<Base> parse(const ConfigNode& name, const ConfigNode& options, Diagnostics& diagnostics) const;
  /// Returns a type with its default options, for defaults in option structs. Throws std::logic_error if the
  /// name is unknown.
  Configured<Base> make(const std::string& name) const;
};

/// Returns the table that Codec<Configured<Base>> uses. There is a specialization for every Base used in
/// options (template <> const Registry<Optimizer>& registry<Optimizer>();).
template <class Base>
const Registry<Base>& registry();

}  // namespace dtrain

#include "config/registry_impl.h"  // template definitions
