// A choice among kinds, each with options of its own: layers, optimizers, initializers, readers, strategies
// ... `adam: {learning_rate: 0.001}`, or the bare name (`adam`) where the defaults will do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"

namespace dtrain {

/// What was chosen: its name, the object that its options made, and the choice as it would be written in
/// full.
template <class Base>
struct Configured {
  std::string name;
  std::shared_ptr<const Base> value;
  ConfigNode resolved;  // {name: {all options}}, or the bare name of a kind without any; keeps the mark of
                        // what was written

  explicit operator bool() const { return value != nullptr; }
  const Base* operator->() const { return value.get(); }
  const Base& operator*() const { return *value; }
};

/// A Configured whose object, a `const Base`, is of a type that is not known here.
struct AnyConfigured {
  std::string name;
  std::shared_ptr<const void> value;
  ConfigNode resolved;
};

/// How a choice was written: the name (a scalar) and the options (null where there are none).
struct WrittenKind {
  ConfigNode name;
  ConfigNode options;
};

/// Takes apart `name`, `{name: options}`, and a number where `number_kind` is set: it stands for the kind of
/// that name with `number_field` set to it. Reports anything else.
std::optional<WrittenKind> take_apart(const ConfigNode& node, const std::string& noun,
                                      const std::string& number_kind, const std::string& number_field,
                                      Diagnostics& diagnostics);
/// {name: options}, or the bare name where there are no options.
ConfigNode resolved_kind(const std::string& name, const Mark& mark, const ConfigNode& options);

/// One kind of a registry, whatever its options are.
class RegisteredKind {
 public:
  virtual ~RegisteredKind() = default;
  /// Reads `options` and makes the object, a `const Base`; sets `resolved` to the options in full. Null
  /// after reporting a mistake, unless the mistakes are in details (Schema::details) only.
  virtual std::shared_ptr<const void> make(const std::string& name, const ConfigNode& options,
                                           ConfigNode& resolved, Diagnostics& diagnostics) const = 0;
  virtual const SchemaBase& schema() const = 0;
  virtual Json json_schema() const = 0;
};

/// All of a Registry that does not depend on what its kinds are, so that it is compiled once.
class RegistryBase {
 public:
  bool contains(std::string_view name) const;
  /// The kind that `name` calls, by its own name or by Keras's (`Adam`, `mse`); "" where there is none.
  std::string canonical(std::string_view name) const;
  std::vector<std::string> names() const;
  /// `node` less the kinds that came from a base where another kind takes their place: `adam` beside `sgd`.
  /// `other` is a key that takes a kind's place, too.
  ConfigNode without_replaced(const ConfigNode& node, std::string_view other = "") const;
  /// The options of the kind with this name; empty where there is none.
  std::vector<std::string> fields(std::string_view name) const;
  const std::string& noun() const { return noun_; }
  /// A JSON schema: oneOf the kinds, bare names where no field is required. It stands under the noun where
  /// SchemaDefinitions live.
  Json json_schema() const;
  /// The same in place, whether SchemaDefinitions live or not.
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

/// The explicit table of the kinds of one sort. Built once by a function that names every kind in order.
template <class Base>
class Registry : public RegistryBase {
 public:
  /// `noun` is what messages call the sort: "unknown optimizer 'adm'; did you mean 'adam'?"
  explicit Registry(std::string noun) : RegistryBase(std::move(noun)) {}

  /// Impl is made from its options: std::make_shared<const Impl>(options).
  template <class Impl, class Options>
  Registry& add(std::string name, Schema<Options> schema);
  /// A kind whose object is made by a function: std::shared_ptr<const Base>(const Options&, const
  /// ConfigNode&).
  template <class Options, class Make>
  Registry& add_with(std::string name, Schema<Options> schema, Make make);
  /// A bare number stands for this kind with `field` set to it: `learning_rate: 0.001` is {constant: {value:
  /// 0.001}}.
  Registry& number_as(std::string name, std::string field);

  /// Reports and returns an empty one on a mistake, unless it is in details (Schema::details) only.
  Configured<Base> parse(const ConfigNode& node, Diagnostics& diagnostics) const;
  /// The same with name and options already apart (a layer's common keys taken off).
  Configured<Base> parse(const ConfigNode& name, const ConfigNode& options, Diagnostics& diagnostics) const;
  /// A kind with its defaults, for the defaults of options structs. Throws std::logic_error for a name that
  /// is not here.
  Configured<Base> make(const std::string& name) const;
};

/// For Codec<Configured<Base>>: every Base that options refer to has a specialisation that returns its table
/// (template <> const Registry<Optimizer>& registry<Optimizer>();).
template <class Base>
const Registry<Base>& registry();

}  // namespace dtrain

#include "config/registry_impl.h"  // the templates' definitions
