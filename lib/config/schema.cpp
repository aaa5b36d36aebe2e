#include "config/schema.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "config/yaml/scalar.h"
#include "config/yaml/text.h"
#include "config/yaml/yaml.h"

namespace dtrain {

template class FieldOf<bool>;
template class FieldOf<int64_t>;
template class FieldOf<double>;
template class FieldOf<std::string>;
template class FieldOf<Size2>;
template class FieldOf<ConfigNode>;

Json to_json(const ConfigNode& node) {
  if (node.is_null()) return {};
  if (node.is_sequence()) {
    Json array = Json::array();
    for (const ConfigNode& item : node.items()) array.push(to_json(item));
    return array;
  }
  if (node.is_mapping()) {
    Json object = Json::object();
    for (const auto& [key, value] : node.entries()) object.set(key.text(), to_json(value));
    return object;
  }
  const std::string& text = node.text();
  if (node.quoted()) return text;
  if (const auto boolean = parse_bool(text)) return *boolean;
  int64_t integer = 0;
  if (parse_number(text, integer) == std::errc()) return integer;
  double number = 0;
  if (parse_number(text, number) == std::errc()) return number;
  return text;
}

namespace {

/// Returns the name of a field for messages. Examples: "conv2d's filters", "windows' length", and "input 'x':
/// shape" if `what` ends in a quotation mark.
std::string field_of(const std::string& what, const std::string& field) {
  const char* const joint = what.ends_with('\'') ? ":" : what.ends_with('s') ? "'" : "'s";
  return fmt::format("{}{} {}", what, joint, field);
}

/// Reports every key of `node` (a mapping) that is not in `known`.
void report_unknown_keys(const ConfigNode& node, const std::string& what, std::span<const std::string> known,
                         Diagnostics& diagnostics) {
  for (const auto& [key, value] : node.entries()) {
    if (std::find(known.begin(), known.end(), key.text()) != known.end()) continue;
    const std::string hint = known.empty() ? "; it has no options" : suggestion_or_list(key.text(), known);
    diagnostics.error(key, fmt::format("unknown key '{}' in {}{}", key.text(), what, hint));
  }
}

/// Returns true if the node is a positional value (see Schema::positional). Returns false if it is a mapping
/// of fields.
bool is_positional(const ConfigNode& node, std::span<const std::string> fields) {
  if (!node.is_mapping()) return !node.is_null();
  if (node.entries().size() != 1) return false;
  const std::string& key = node.entries().front().first.text();
  // A key that resembles a field name is treated as a misspelt field, because this gives a better message.
  return std::find(fields.begin(), fields.end(), key) == fields.end() && !is_near(key, fields);
}

/// Returns true if both nodes have the same structure and texts. SchemaField::write returns equal nodes for
/// equal values.
bool are_equal(const ConfigNode& a, const ConfigNode& b) {
  if (a.type() != b.type()) return false;
  const auto equal_entries = [](const auto& x, const auto& y) {
    return are_equal(x.first, y.first) && are_equal(x.second, y.second);
  };
  switch (a.type()) {
    case ConfigNode::Type::null:
      return true;
    case ConfigNode::Type::scalar:
      return a.quoted() == b.quoted() && a.text() == b.text();
    case ConfigNode::Type::sequence:
      return std::ranges::equal(a.items(), b.items(), are_equal);
    case ConfigNode::Type::mapping:
      return std::ranges::equal(a.entries(), b.entries(), equal_entries);
  }
  return false;
}

/// Returns the text passed to Schema::example as JSON.
Json example_json(const std::string& options) {
  Diagnostics diagnostics;
  const ConfigNode node = parse_yaml(options, "an example", diagnostics);
  diagnostics.throw_if_errors();
  return to_json(node);
}

}  // namespace

void SchemaBase::set_positional(std::string name) {
  if (!find(name))
    throw std::logic_error("Schema::positional() was called with an unknown field '" + name + "'");
  positional_ = std::move(name);
}

void SchemaBase::set_details(std::vector<std::string> names) {
  for (const std::string& name : names)
    if (!find(name))
      throw std::logic_error("Schema::details() was called with an unknown field '" + name + "'");
  details_ = std::move(names);
}

void SchemaBase::set_omitted_default(const std::string& name, const void* defaults) {
  const SchemaField* const field = find(name);
  if (!field)
    throw std::logic_error("Schema::omit_default() was called with an unknown field '" + name + "'");
  if (defaults_) throw std::logic_error("Schema::omit_default() was called after short_by_default()");
  omitted_.emplace_back(name, field->write(defaults));
}

void SchemaBase::add_field(std::shared_ptr<const SchemaField> field) {
  if (defaults_) throw std::logic_error("Schema::short_by_default() was called before all fields were added");
  field_names_.push_back(field->name());
  fields_.push_back(std::move(field));
}

void SchemaBase::set_short_by_default(const void* defaults) {
  defaults_ = write_fields(defaults);
}

bool SchemaBase::has_required() const {
  return std::any_of(fields_.begin(), fields_.end(), [](const auto& field) { return field->required(); });
}

bool SchemaBase::is_detail(std::string_view name) const {
  if (!details_) return false;
  const SchemaField* const field = find(name);
  return (field && field->is_of_part()) ||
         std::find(details_->begin(), details_->end(), name) != details_->end();
}

/// Returns false if the unknown key looks like a misspelling of a field that is not in details(). Otherwise
/// returns true: the unknown key is then treated like an error in details().
bool SchemaBase::is_harmless(const std::string& unknown_key) const {
  const std::string meant = suggestion(unknown_key, field_names());
  return std::none_of(fields_.begin(), fields_.end(), [&](const auto& field) {
    return !is_detail(field->name()) && meant.find("'" + field->name() + "'") != std::string::npos;
  });
}

const SchemaField* SchemaBase::find(std::string_view name) const {
  const auto found =
      std::find_if(fields_.begin(), fields_.end(), [&](const auto& field) { return field->name() == name; });
  return found == fields_.end() ? nullptr : found->get();
}

/// Returns the field that is set by a value that is not a mapping of fields. This is the positional field, or
/// else the required field if there is exactly one. Returns "" if there is no such field.
std::string SchemaBase::bare_field() const {
  if (!positional_.empty()) return positional_;
  const auto is_required = [](const auto& field) { return field->required(); };
  if (std::count_if(fields_.begin(), fields_.end(), is_required) != 1) return "";
  return (*std::find_if(fields_.begin(), fields_.end(), is_required))->name();
}

/// Returns `node` as a mapping of fields. A value that is not a mapping of fields becomes the mapping {field:
/// value}.
ConfigNode SchemaBase::spelled_out(const ConfigNode& node) const {
  if (node.is_null()) return ConfigNode::mapping({}, node.mark());
  const std::string field = bare_field();
  const bool is_bare = positional_.empty() ? !node.is_mapping() : is_positional(node, field_names());
  if (field.empty() || !is_bare) return node;
  return ConfigNode::mapping({{ConfigNode::scalar(field, false, node.mark()), node}}, node.mark());
}

Reading SchemaBase::read_fields(const ConfigNode& node, const std::string& what, void* out,
                                Diagnostics& diagnostics) const {
  const ConfigNode fields = spelled_out(node);
  if (!fields.is_mapping()) {
    diagnostics.error(node, fmt::format("{}: expected a mapping, found {}{}", what, node.describe(),
                                        advice_for_colon(node)));
    return Reading::wrong;
  }
  const size_t before = diagnostics.count();
  bool counts = !details_;  // true if any error is not in details
  report_unknown_keys(fields, what, field_names(), diagnostics);
  if (diagnostics.count() != before && !counts)
    for (const auto& [key, value] : fields.entries())
      if (!find(key.text()) && !is_harmless(key.text())) counts = true;
  for (const auto& field : fields_) {
    if (const ConfigNode* value = fields.find(field->name())) {
      if (!field->parse(*value, field_of(what, field->name()), out, diagnostics))
        counts = counts || !is_detail(field->name());
    } else if (field->required()) {
      diagnostics.error(fields,
                        fmt::format("missing key '{}' in {} ({})", field->name(), what, field->doc()));
      counts = counts || !is_detail(field->name());
    }
  }
  if (diagnostics.count() == before) {
    for (const auto& rule : rules_) rule(out, fields, diagnostics);
    counts = true;
  }
  if (diagnostics.count() == before) return Reading::good;
  return counts ? Reading::wrong : Reading::in_details;
}

ConfigNode SchemaBase::write_fields(const void* object) const {
  std::vector<ConfigNode::Entry> entries;
  entries.reserve(fields_.size());
  for (const auto& field : fields_) {
    ConfigNode value = field->write(object);
    if (value.is_null() && field->is_of_part()) continue;
    const auto is_omitted = [&](const auto& one) {
      return one.first == field->name() && are_equal(one.second, value);
    };
    if (std::any_of(omitted_.begin(), omitted_.end(), is_omitted)) continue;
    entries.emplace_back(field->key(), std::move(value));
  }
  ConfigNode written = ConfigNode::mapping(std::move(entries));
  return defaults_ && are_equal(written, *defaults_) ? ConfigNode::mapping({}) : written;
}

Json SchemaBase::json_schema_of(const void* defaults) const {
  Json properties = Json::object(), required = Json::array();
  for (const auto& field : fields_) {
    Json property = field->json_schema();
    property.set("description", field->doc());
    if (field->required())
      required.push(field->name());
    else
      property.set("default", to_json(field->write(defaults)));
    properties.set(field->name(), std::move(property));
  }
  Json object = json_type("object");
  object.set("description", doc_).set("properties", std::move(properties));
  if (!required.items().empty()) object.set("required", std::move(required));
  object.set("additionalProperties", false);
  if (!example_.empty()) object.set("examples", Json::array().push(example_json(example_)));
  const std::string field = bare_field();
  if (field.empty()) return object;
  Json choices = Json::array();
  Json alone = find(field)->json_schema();
  alone.set("description", fmt::format("short for {{{}: ...}}", field));
  choices.push(std::move(object)).push(std::move(alone));
  return Json::object().set("anyOf", std::move(choices));
}

namespace {
thread_local SchemaDefinitions* living = nullptr;
}

SchemaDefinitions::SchemaDefinitions() {
  if (living) throw std::logic_error("a SchemaDefinitions object already exists");
  living = this;
}

SchemaDefinitions::~SchemaDefinitions() {
  living = nullptr;
}

Json SchemaDefinitions::define(std::string name, const std::function<Json()>& make) {
  if (!living) return make();
  std::replace(name.begin(), name.end(), ' ', '_');
  if (!living->definitions_.find(name)) {
    // The name is added before the schema is complete, because the schema may contain itself.
    living->definitions_.set(name, Json());
    Json made = make();
    living->definitions_.set(name, std::move(made));
  }
  return Json::object().set("$ref", "#/$defs/" + name);
}

}  // namespace dtrain
