// The definitions for kinds.h; include that.
#pragma once

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace dtrain {

/// How a choice was written: the name (a scalar) and the options (null where there are none).
struct WrittenKind {
  ConfigNode name;
  ConfigNode options;
};

/// Takes apart `name`, `{name: options}`, and a number where `number_kind` is set; reports anything else.
std::optional<WrittenKind> take_apart(const ConfigNode& node, const std::string& noun,
                                      const std::string& number_kind, const std::string& number_field,
                                      Diagnostics& diagnostics);
/// {name: options}, or the bare name where there are no options.
ConfigNode resolved_kind(const std::string& name, const Mark& mark, const ConfigNode& options);
void report_unknown_kind(const ConfigNode& name, const std::string& noun, std::span<const std::string> names,
                         Diagnostics& diagnostics);
/// The schema of one kind: the bare name where that will do, or an object of one key.
Json kind_schema(const std::string& name, bool bare, Json options);

/// Ends the descent where the kinds of a table have options that are of the same table again.
class SchemaDescent {
 public:
  explicit SchemaDescent(const void* table);
  ~SchemaDescent();
  SchemaDescent(const SchemaDescent&) = delete;
  SchemaDescent& operator=(const SchemaDescent&) = delete;
  bool again() const { return again_; }

 private:
  bool again_;
};

template <class Base>
template <class Impl, class Options>
Registry<Base>& Registry<Base>::add(std::string name, Schema<Options> schema) {
  return add_with(std::move(name), std::move(schema), [](const Options& options, const ConfigNode&) {
    return std::shared_ptr<const Base>(std::make_shared<const Impl>(options));
  });
}

template <class Base>
template <class Options, class Make>
Registry<Base>& Registry<Base>::add_with(std::string name, Schema<Options> schema, Make make) {
  if (contains(name)) throw std::logic_error(fmt::format("the {} '{}' is in its table twice", noun_, name));
  const auto shared = std::make_shared<const Schema<Options>>(std::move(schema));
  Entry entry;
  entry.name = name;
  entry.fields = shared->field_names();
  entry.bare = !shared->has_required();
  entry.schema = [shared] { return shared->json_schema(); };
  entry.parse = [shared, name, make](const ConfigNode& node, Diagnostics& diagnostics) {
    Options options{};
    if (shared->read(node, name, options, diagnostics) == Schema<Options>::Reading::wrong)
      return Configured<Base>{};
    return Configured<Base>{name, make(options, node),
                            resolved_kind(name, node.mark(), shared->write(options))};
  };
  entries_.push_back(std::move(entry));
  return *this;
}

template <class Base>
Registry<Base>& Registry<Base>::number_as(std::string name, std::string field) {
  number_kind_ = std::move(name);
  number_field_ = std::move(field);
  return *this;
}

template <class Base>
Configured<Base> Registry<Base>::parse(const ConfigNode& node, Diagnostics& diagnostics) const {
  const auto written = take_apart(node, noun_, number_kind_, number_field_, diagnostics);
  return written ? parse(written->name, written->options, diagnostics) : Configured<Base>{};
}

template <class Base>
Configured<Base> Registry<Base>::parse(const ConfigNode& name, const ConfigNode& options,
                                       Diagnostics& diagnostics) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.name == name.text(); });
  if (found == entries_.end()) {
    report_unknown_kind(name, noun_, names(), diagnostics);
    return {};
  }
  // What is missing is reported at the name: it stands where a person looks, whatever the options' layout.
  if (options.is_null()) return found->parse(ConfigNode::mapping({}, name.mark()), diagnostics);
  if (options.is_mapping())
    return found->parse(ConfigNode::mapping(options.entries(), name.mark()), diagnostics);
  return found->parse(options, diagnostics);
}

template <class Base>
Configured<Base> Registry<Base>::make(const std::string& name) const {
  Diagnostics diagnostics;
  Configured<Base> kind = parse(ConfigNode::scalar(name), ConfigNode(), diagnostics);
  if (diagnostics.has_errors())
    throw std::logic_error(fmt::format("no default {}: {}", noun_, diagnostics.items().front().message));
  return kind;
}

template <class Base>
bool Registry<Base>::contains(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.name == name; });
}

template <class Base>
std::vector<std::string> Registry<Base>::names() const {
  std::vector<std::string> all;
  for (const Entry& entry : entries_) all.push_back(entry.name);
  return all;
}

template <class Base>
std::vector<std::string> Registry<Base>::fields(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.name == name) return entry.fields;
  return {};
}

template <class Base>
Json Registry<Base>::json_schema() const {
  return SchemaDefinitions::define(noun_, [&] { return choices_schema(); });
}

template <class Base>
Json Registry<Base>::choices_schema() const {
  const SchemaDescent descent(this);
  if (descent.again()) return Json::object().set("description", noun_ + ", as above");
  Json choices = Json::array();
  for (const Entry& entry : entries_) choices.push(kind_schema(entry.name, entry.bare, entry.schema()));
  if (!number_kind_.empty()) choices.push(Codec<double>::schema());
  return Json::object().set("oneOf", std::move(choices));
}

template <class Base>
struct Codec<Configured<Base>> {
  static bool parse(const ConfigNode& node, const std::string&, Configured<Base>& out,
                    Diagnostics& diagnostics) {
    out = registry<Base>().parse(node, diagnostics);
    return static_cast<bool>(out);
  }
  static ConfigNode write(const Configured<Base>& value) { return value.resolved; }
  static Json schema() { return registry<Base>().json_schema(); }
};

}  // namespace dtrain
