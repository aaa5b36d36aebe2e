// Defines ConfigNode::to_yaml().
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/utf8.h"
#include "config/node.h"
#include "config/yaml/scalar.h"

namespace dtrain {

namespace {

constexpr size_t kLineWidth = 100;
constexpr int kFlowLevels = 3;  // maximum nesting of collections on one line

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0, length; at < text.size(); at += length) {
    length = std::max<size_t>(utf8_length(text.substr(at, 4)), 1);
    const char c = text[at];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else if (static_cast<unsigned char>(c) >= 0x80 && length == 1) {
      out += escaped_byte(static_cast<unsigned char>(c));
    } else {
      out += text.substr(at, length);
    }
  }
  return out + '"';
}

std::string scalar_text(const ConfigNode& node) {
  return node.quoted() || !plain_is_safe(node.text()) || !is_utf8(node.text()) ? in_quotes(node.text())
                                                                               : node.text();
}

/// Returns the text of a key. The key is quoted if YAML would not parse it as a string.
std::string key_text(const ConfigNode& key) {
  return reads_as_other_than_string(key.text()) ? in_quotes(key.text()) : scalar_text(key);
}

bool is_leaf(const ConfigNode& node) {
  return node.is_null() || node.is_scalar() || (node.is_sequence() && node.items().empty()) ||
         (node.is_mapping() && node.entries().empty());
}

std::string leaf_text(const ConfigNode& node) {
  if (node.is_null()) return "null";
  if (node.is_scalar()) return scalar_text(node);
  return node.is_sequence() ? "[]" : "{}";
}

/// Appends the node in flow style. Returns false, with partial output in `out`, if it is longer than `width`
/// or nested deeper than `levels`.
bool write_flow(std::string& out, const ConfigNode& node, size_t width, int levels) {
  if (is_leaf(node)) {
    out += leaf_text(node);
    return out.size() <= width;
  }
  if (levels == 0) return false;
  const bool list = node.is_sequence();
  const char* comma = "";
  out += list ? '[' : '{';
  if (list) {
    for (const ConfigNode& item : node.items()) {
      out += std::exchange(comma, ", ");
      if (!write_flow(out, item, width, levels - 1)) return false;
    }
  } else {
    for (const auto& [key, value] : node.entries()) {
      out += std::exchange(comma, ", ") + key_text(key) + ": ";
      if (!write_flow(out, value, width, levels - 1)) return false;
    }
  }
  out += list ? ']' : '}';
  return out.size() <= width;
}

/// Returns the node on one line, or nullopt if it does not fit in the rest of the line.
std::optional<std::string> one_line(const ConfigNode& node, size_t column) {
  if (is_leaf(node)) return leaf_text(node);
  std::string out;
  const size_t width = kLineWidth - std::min(column, kLineWidth / 2);
  if (!write_flow(out, node, width, kFlowLevels)) return std::nullopt;
  return out;
}

/// Writes a collection in block style. The first entry is written at the end of `out`, which is at column
/// `indent` of a new line or follows the "- " of a list. The following entries are indented by `indent`
/// columns.
void write_block(std::string& out, const ConfigNode& node, size_t indent) {
  const char* margin = "";  // the first line needs no margin, because `out` is already at its column
  const std::string spaces(indent, ' ');
  const auto start_line = [&] { out += std::exchange(margin, spaces.c_str()); };
  if (node.is_sequence()) {
    for (const ConfigNode& item : node.items()) {
      start_line();
      out += "- ";
      const bool is_choice = item.is_mapping() &&
                             // A choice is written as `- dense: {...}`, with braces only around the options.
                             item.entries().size() == 1;
      if (const auto line = one_line(item, indent + 2); line && !is_choice) {
        out += *line + '\n';
      } else {
        write_block(out, item, indent + 2);
      }
    }
    return;
  }
  for (const auto& [key, value] : node.entries()) {
    start_line();
    const std::string name = key_text(key) + ':';
    out += name;
    if (const auto line = one_line(value, indent + name.size() + 1)) {
      out += ' ' + *line + '\n';
    } else {
      out += '\n' + std::string(indent + 2, ' ');
      write_block(out, value, indent + 2);
    }
  }
}

}  // namespace

std::string ConfigNode::to_yaml() const {
  if (is_leaf(*this)) return leaf_text(*this) + '\n';
  std::string out;
  write_block(out, *this, 0);
  return out;
}

}  // namespace dtrain
