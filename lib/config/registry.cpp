#include "config/registry.h"

#include <algorithm>
#include <span>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/names/aliases.h"
#include "config/yaml/scalar.h"

namespace dtrain {

namespace {

/// Returns the first key of a mapping that was not inherited from a base. Returns the node itself if the node
/// is not a mapping, if no key was inherited, or if all keys were inherited.
const ConfigNode& last_written(const ConfigNode& node) {
  if (!node.is_mapping()) return node;
  const auto& all = node.entries();
  const auto is_inherited = [](const ConfigNode::Entry& entry) { return entry.first.inherited(); };
  if (std::none_of(all.begin(), all.end(), is_inherited)) return node;
  const auto own = std::find_if_not(all.begin(), all.end(), is_inherited);
  return own == all.end() ? node : own->first;
}

}  // namespace

std::optional<WrittenKind> take_apart(const ConfigNode& node, const std::string& noun,
                                      const std::string& number_kind, const std::string& number_field,
                                      Diagnostics& diagnostics) {
  if (node.is_scalar()) {
    const bool number = !number_kind.empty() && !node.quoted() && reads_as_number(node.text());
    if (!number) return WrittenKind{node, ConfigNode()};
    const ConfigNode field = ConfigNode::scalar(number_field, false, node.mark());
    return WrittenKind{ConfigNode::scalar(number_kind, false, node.mark()),
                       ConfigNode::mapping({{field, node}}, node.mark())};
  }
  if (node.is_mapping() && node.entries().size() == 1)
    return WrittenKind{node.entries().front().first, node.entries().front().second};

  const std::string found = node.is_mapping() && !node.entries().empty()
                                ? fmt::format("a mapping with {} keys", node.entries().size())
                                : node.describe();
  const std::string form = number_kind.empty() ? "" : "a number, ";
  diagnostics.error(
      last_written(node),
      fmt::format("{}: expected {}a name, or a mapping with one key, {{name: options}}; found {}", noun, form,
                  found));
  return std::nullopt;
}

ConfigNode resolved_kind(const std::string& name, const Mark& mark, const ConfigNode& options) {
  ConfigNode key = ConfigNode::scalar(name, false, mark);
  if (options.entries().empty()) return key;
  return ConfigNode::mapping({{key, options}}, mark);
}

namespace {

void report_unknown_kind(const ConfigNode& name, const std::string& noun, std::span<const std::string> names,
                         bool takes_number, Diagnostics& diagnostics) {
  std::string advice = suggestion(name.text(), names);
  if (advice.empty())
    advice =
        fmt::format("; expected {}one of {}", takes_number ? "a number, or " : "", fmt::join(names, ", "));
  diagnostics.error(name, fmt::format("unknown {} '{}'{}", noun, name.text(), advice));
}

/// Returns the schema of one type: an object whose only key is the type's name. If `bare` is true, the schema
/// also accepts the name without options.
Json kind_schema(const std::string& name, bool bare, Json options) {
  const Json* type = options.find("type");
  if (bare && type && type->is_string() && type->as_string() == "object") {
    options.set("type", Json::array().push("object").push("null"));
  } else if (bare) {
    Json or_nothing = Json::array();
    or_nothing.push(std::move(options)).push(json_type("null"));
    options = Json::object().set("anyOf", std::move(or_nothing));
  }
  Json object = json_type("object");
  object.set("properties", Json::object().set(name, std::move(options)));
  Json required = Json::array();
  object.set("required", required.push(name)).set("additionalProperties", false);
  if (!bare) return object;
  Json choices = Json::array();
  choices.push(Json::object().set("const", name)).push(std::move(object));
  return Json::object().set("oneOf", std::move(choices));
}

thread_local std::vector<const void*> open_tables;

/// Detects recursion in choices_schema(). again() is true if the schema of the same registry is already being
/// made, because the options of one of its types contain a choice from that registry.
class SchemaDescent {
 public:
  explicit SchemaDescent(const void* table)
      : again_(std::find(open_tables.begin(), open_tables.end(), table) != open_tables.end()) {
    open_tables.push_back(table);
  }
  ~SchemaDescent() { open_tables.pop_back(); }
  SchemaDescent(const SchemaDescent&) = delete;
  SchemaDescent& operator=(const SchemaDescent&) = delete;
  bool again() const { return again_; }

 private:
  bool again_;
};

}  // namespace

void RegistryBase::add_kind(std::string name, std::shared_ptr<const RegisteredKind> kind) {
  if (contains(name)) throw std::logic_error(fmt::format("the {} '{}' is registered twice", noun_, name));
  entries_.push_back({std::move(name), std::move(kind)});
}

void RegistryBase::set_number_kind(std::string name, std::string field) {
  number_kind_ = std::move(name);
  number_field_ = std::move(field);
}

AnyConfigured RegistryBase::parse_any(const ConfigNode& node, Diagnostics& diagnostics) const {
  const auto written = take_apart(without_replaced(node), noun_, number_kind_, number_field_, diagnostics);
  return written ? parse_any(written->name, written->options, diagnostics) : AnyConfigured{};
}

AnyConfigured RegistryBase::parse_any(const ConfigNode& name, const ConfigNode& options,
                                      Diagnostics& diagnostics) const {
  const Entry* const found = find(name.text());
  if (!found) {
    report_unknown_kind(name, noun_, names(), !number_kind_.empty(), diagnostics);
    return {};
  }
  // Missing keys are reported at the type's name, because users look there first.
  ConfigNode node = options;
  if (options.is_null()) node = ConfigNode::mapping({}, name.mark());
  if (options.is_mapping()) node = ConfigNode::mapping(options.entries(), name.mark());
  ConfigNode resolved;
  std::shared_ptr<const void> made = found->kind->make(found->name, node, resolved, diagnostics);
  if (!made) return {};
  return {found->name, std::move(made), resolved_kind(found->name, node.mark(), resolved)};
}

AnyConfigured RegistryBase::make_any(const std::string& name) const {
  Diagnostics diagnostics;
  AnyConfigured made = parse_any(ConfigNode::scalar(name), ConfigNode(), diagnostics);
  if (diagnostics.has_errors())
    throw std::logic_error(
        fmt::format("could not create the default {}: {}", noun_, diagnostics.items().front().message));
  return made;
}

bool RegistryBase::contains(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.name == name; });
}

const RegistryBase::Entry* RegistryBase::find(std::string_view name) const {
  const auto named = [&](std::string_view wanted) {
    return std::ranges::find(entries_, wanted, &Entry::name);
  };
  auto found = named(name);
  if (found == entries_.end()) found = named(find_keras_name(name, names()));
  return found == entries_.end() ? nullptr : &*found;
}

std::string RegistryBase::canonical(std::string_view name) const {
  const Entry* const found = find(name);
  return found ? found->name : "";
}

ConfigNode RegistryBase::without_replaced(const ConfigNode& node, std::string_view other) const {
  if (!node.is_mapping() || node.entries().size() < 2) return node;
  const auto is_kind = [&](const ConfigNode& key) {
    return !canonical(key.text()).empty() || (!other.empty() && key.text() == other);
  };
  std::vector<ConfigNode::Entry> kept;
  bool replaced = false;
  for (const ConfigNode::Entry& entry : node.entries()) {
    if (!is_kind(entry.first) || !entry.first.inherited()) kept.push_back(entry);
    replaced = replaced || (is_kind(entry.first) && !entry.first.inherited());
  }
  return replaced ? ConfigNode::mapping(std::move(kept), node.mark()) : node;
}

std::vector<std::string> RegistryBase::names() const {
  std::vector<std::string> all;
  for (const Entry& entry : entries_) all.push_back(entry.name);
  return all;
}

const std::vector<std::string>& RegistryBase::fields(std::string_view name) const {
  static const std::vector<std::string> kNone;
  const Entry* const found = find(name);
  return found ? found->kind->schema().field_names() : kNone;
}

Json RegistryBase::json_schema() const {
  return SchemaDefinitions::define(noun_, [&] { return choices_schema(); });
}

Json RegistryBase::choices_schema() const {
  const SchemaDescent descent(this);
  if (descent.again()) return Json::object().set("description", noun_ + ", as above");
  Json choices = Json::array();
  for (const Entry& entry : entries_)
    choices.push(kind_schema(entry.name, !entry.kind->schema().has_required(), entry.kind->json_schema()));
  if (!number_kind_.empty()) choices.push(Codec<double>::schema());
  return Json::object().set("oneOf", std::move(choices));
}

}  // namespace dtrain
