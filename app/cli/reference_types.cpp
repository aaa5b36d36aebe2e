#include "cli/reference_types.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/node.h"
#include "config/schema.h"
#include "config/yaml/scalar.h"

namespace dtrain {

namespace {

/// Returns true if the string can be written in YAML without quotes.
bool is_plain(const std::string& text) {
  return plain_is_safe(text) && !reads_as_null(text) && to_json(ConfigNode::scalar(text)).is_string();
}

/// Formats a limit without a trailing ".0".
std::string number_text(const Json& limit) {
  return fmt::format("{}", limit.as_double());
}

/// Returns " from 0 to 1", " > 0", " ≥ 0 and < 1", or "" without a limit.
std::string range_text(const Json& schema) {
  const Json *least = schema.find("minimum"), *most = schema.find("maximum");
  if (least && most) return fmt::format(" from {} to {}", number_text(*least), number_text(*most));
  std::vector<std::string> limits;
  for (const auto& [keyword, sign] :
       {std::pair{"minimum", "≥"}, {"exclusiveMinimum", ">"}, {"maximum", "≤"}, {"exclusiveMaximum", "<"}})
    if (const Json* limit = schema.find(keyword))
      limits.push_back(fmt::format("{} {}", sign, number_text(*limit)));
  return limits.empty() ? "" : fmt::format(" {}", fmt::join(limits, " and "));
}

std::string reference_text(const std::string& target) {
  std::string noun = target.substr(target.rfind('/') + 1);
  for (const auto& [name, text] : {std::pair{"activation", "[activation](#activations)"},
                                   {"initializer", "[initializer](#initializers)"},
                                   {"regularizer", "[regularizer](#regularizers)"},
                                   {"constraint", "[constraint](#constraints)"},
                                   {"learning_rate_schedule", "number or [schedule](#learning-rates)"},
                                   {"optimizer", "[optimizer](#optimizers)"},
                                   {"metric", "[metric](#metrics)"},
                                   {"callback", "[callback](#callbacks)"},
                                   {"loss", "[loss](#losses)"},
                                   {"layer", "[layer](#layers)"},
                                   {"strategy", "[strategy](#strategies)"},
                                   {"split", "[reader](#readers)"},
                                   {"input_target", "`{input: NAME}`"},
                                   {"transform", "[transform](#transforms)"},
                                   {"augmentation", "[augmentation](#augmentations)"},
                                   {"cache", "[cache](#caches)"}})
    if (noun == name) return text;
  return noun;
}

/// Describes the alternatives; `range` applies to the alternatives that are numbers. Omits null, which means
/// that the key is absent.
std::string choices_text(const Json& choices, const std::string& range) {
  std::vector<std::string> texts;
  const auto text_of = [&](const Json& choice) {
    const std::string text = value_type(choice);
    return text == "integer" || text == "number" ? text + range : text;
  };
  for (const Json& choice : choices.items())
    if (std::string text = text_of(choice);
        text != "null" && std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
  return fmt::format("{}", fmt::join(texts, " or "));
}

/// Returns "list of integers ≥ 1", "list of 2 numbers" or "list of (integer or string)".
std::string list_text(const Json& schema) {
  const Json* items = schema.find("items");
  if (!items || items->entries().empty()) return "list";
  std::string item = value_type(*items);
  for (const std::string noun : {"integer", "number", "string", "device"})
    if (item.starts_with(noun)) item.insert(noun.size(), "s");
  if (item.find(" or ") != std::string::npos) item = "(" + value_type(*items) + ")";
  const Json *least = schema.find("minItems"), *most = schema.find("maxItems");
  const bool fixed = least && most && least->as_int() == most->as_int();
  return fixed ? fmt::format("list of {} {}", least->as_int(), item) : "list of " + item;
}

/// Returns "mapping", "mapping of names to string" or "mapping of names to (integer or string)".
std::string mapping_text(const Json& schema) {
  const Json* values = schema.find("additionalProperties");
  if (!values || !values->is_object()) return "mapping";
  const std::string value = value_type(*values);
  return "mapping of names to " + (value.find(" or ") == std::string::npos ? value : "(" + value + ")");
}

/// Describes a value by the keyword "type" of its schema: one name, or a list of names of which the first
/// describes the value. A number, for example, may also be written as a quotient, which is a string.
std::string named_type(const Json& schema, const Json& type) {
  const std::string name = type.is_array() ? type.items().front().as_string() : type.as_string();
  if (name == "boolean") return "`true` or `false`";
  if (name == "array") return list_text(schema);
  return name == "object" ? mapping_text(schema) : name;
}

}  // namespace

std::string yaml_text(const Json& value) {
  if (value.is_string()) return is_plain(value.as_string()) ? value.as_string() : value.dump();
  std::vector<std::string> parts;
  if (value.is_array()) {
    for (const Json& item : value.items()) parts.push_back(yaml_text(item));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (value.is_object()) {
    for (const auto& [key, item] : value.entries()) parts.push_back(key + ": " + yaml_text(item));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  return value.dump();
}

std::string value_type(const Json& schema) {
  std::string text = "any value";
  if (const Json* title = schema.find("title")) {
    text = title->as_string();
  } else if (const Json* reference = schema.find("$ref")) {
    text = reference_text(reference->as_string());
  } else if (const Json* values = schema.find("enum")) {
    std::vector<std::string> names;
    for (const Json& value : values->items()) names.push_back("`" + yaml_text(value) + "`");
    text = fmt::format("{}", fmt::join(names, ", "));
  } else if (const Json* constant = schema.find("const")) {
    text = "`" + yaml_text(*constant) + "`";
  } else if (const Json* any = schema.find("anyOf")) {
    return choices_text(*any, range_text(schema));
  } else if (const Json* one = schema.find("oneOf")) {
    return choices_text(*one, range_text(schema));
  } else if (const Json* type = schema.find("type")) {
    text = named_type(schema, *type);
  } else if (schema.find("additionalProperties")) {
    text = mapping_text(schema);
  }
  return text + range_text(schema);
}

std::string in_table(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
  return out;
}

std::string in_code(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '{') out += '`';
    out += c;
    if (c == '}') out += '`';
  }
  return out;
}

}  // namespace dtrain
