#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"

namespace dtrain {

Json Json::object() {
  Json json;
  json.value_ = Object{};
  return json;
}

Json& Json::set(std::string_view key, Json value) {
  auto& entries = std::get<Object>(value_);
  for (auto& entry : entries) {
    if (entry.first != key) continue;
    entry.second = std::move(value);
    return *this;
  }
  entries.emplace_back(std::string(key), std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : entries())
    if (name == key) return &value;
  return nullptr;
}

namespace {

/// Returns the start of a value's text, long enough to recognize it.
std::string excerpt(const Json& json) {
  constexpr size_t kMost = 60;
  std::string text = json.dump();
  if (text.size() > kMost) text.replace(kMost - 3, std::string::npos, "...");
  return text;
}

}  // namespace

double Json::as_double() const {
  if (const auto* integer = std::get_if<int64_t>(&value_)) return static_cast<double>(*integer);
  if (const auto* text = std::get_if<std::string>(&value_)) {  // dump() writes non-finite numbers as strings
    if (*text == "nan") return std::nan("");
    if (*text == "inf") return HUGE_VAL;
    if (*text == "-inf") return -HUGE_VAL;
  }
  return get<double>("a number");
}

const Json& Json::at(std::string_view key) const {
  if (const Json* found = find(key)) return *found;
  throw UserError(fmt::format("expected an object with '{}', found {}", key, excerpt(*this)));
}

void Json::refuse(const char* expected) const {
  throw UserError(fmt::format("expected {}, found {}", expected, excerpt(*this)));
}

namespace {

void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (size_t at = 0, length; at < text.size(); at += length) {
    length = std::max<size_t>(utf8_length(text.substr(at, 4)), 1);
    const char c = text[at];
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else if (static_cast<unsigned char>(c) >= 0x80 && length == 1) {
          out += escaped_byte(static_cast<unsigned char>(c));
        } else {
          out += text.substr(at, length);
        }
    }
  }
  out += '"';
}

void write_double(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "\"nan\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"inf\"" : "\"-inf\"";
  } else {
    // The shortest decimal text that is parsed as the same double.
    const std::string text = fmt::format("{}", value);
    out += text;
    if (text.find_first_of(".en") == std::string::npos) out += ".0";
  }
}

/// Writes the comma, line break and indentation before an element.
void separate(std::string& out, bool first, int indent, int depth) {
  if (!first) out += indent ? "," : ", ";
  if (indent) out += '\n' + std::string(static_cast<size_t>(indent * depth), ' ');
}

void write(std::string& out, const Json& json, int indent, int depth) {
  if (json.is_object()) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : json.entries()) {
      separate(out, first, indent, depth + 1);
      first = false;
      write_string(out, key);
      out += ": ";
      write(out, value, indent, depth + 1);
    }
    if (indent && !first) out += '\n' + std::string(static_cast<size_t>(indent * depth), ' ');
    out += '}';
  } else if (json.is_array()) {
    out += '[';
    const auto is_scalar = [](const Json& value) { return !value.is_object() && !value.is_array(); };
    if (std::all_of(json.items().begin(), json.items().end(), is_scalar)) indent = 0;
    bool first = true;
    for (const Json& value : json.items()) {
      separate(out, first, indent, depth + 1);
      first = false;
      write(out, value, indent, depth + 1);
    }
    if (indent && !first) out += '\n' + std::string(static_cast<size_t>(indent * depth), ' ');
    out += ']';
  } else if (json.is_string()) {
    write_string(out, json.as_string());
  } else if (json.is_null()) {
    out += "null";
  } else if (json.is_bool()) {
    out += json.as_bool() ? "true" : "false";
  } else if (json.is_int()) {
    out += fmt::format("{}", json.as_int());
  } else {
    write_double(out, json.as_double());
  }
}

}  // namespace

std::string Json::dump(int indent) const {
  std::string out;
  write(out, *this, indent, 0);
  return out;
}

namespace {

/// A recursive-descent parser of one document. Error messages contain the offset.
class Parser {
 public:
  Parser(std::string_view text, Json::RepeatedKeys repeated) : text_(text), repeated_(repeated) {}

  Json document() {
    Json json = value(0);
    skip_space();
    if (at_ != text_.size()) fail("the end of the document");
    return json;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    throw UserError(fmt::format("expected {} at offset {} of the JSON text", expected, at_));
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}'", c));
  }

  Json value(int depth) {
    if (depth > 100) fail("at most 100 levels of nesting");
    skip_space();
    if (accept('{')) return object(depth);
    if (accept('[')) return array(depth);
    if (accept('"')) return string();
    for (const auto& [word, json] :
         {std::pair<std::string_view, Json>{"null", Json()}, {"true", true}, {"false", false}}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return json;
    }
    return number();
  }

  Json object(int depth) {
    Json::Object entries;
    std::unordered_map<std::string, size_t>
        places;  // index of each key; the last value of a repeated key wins
    if (accept('}')) return Json(std::move(entries));
    do {
      expect('"');
      std::string key = string();
      expect(':');
      const auto [place, is_new] = places.emplace(key, entries.size());
      if (!is_new && repeated_ == Json::RepeatedKeys::error)
        fail(fmt::format("unique keys in the object, but found the key '{}' again", place->first));
      if (is_new)
        entries.emplace_back(std::move(key), value(depth + 1));
      else
        entries[place->second].second = value(depth + 1);
    } while (accept(','));
    expect('}');
    return Json(std::move(entries));
  }

  Json array(int depth) {
    Json json = Json::array();
    if (accept(']')) return json;
    do json.push(value(depth + 1));
    while (accept(','));
    expect(']');
    return json;
  }

  std::string string() {
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20)
        fail("no control character in a string (write an escape such as \\u000a)");
      const char c = text_[at_++];
      if (c == '\\')
        escape(out);
      else
        out += c;
    }
    if (at_ >= text_.size()) fail("'\"'");
    ++at_;
    return out;
  }

  void escape(std::string& out) {
    static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) fail("an escape");
    const char c = text_[at_++];
    if (const size_t found = kFrom.find(c); found != std::string_view::npos) {
      out += kTo[found];
      return;
    }
    if (c != 'u') fail("an escape");
    const uint32_t code = hexadecimal();
    if (const auto byte = byte_of_escape(code)) {
      out += *byte;
    } else if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const uint32_t low = hexadecimal();
      if (low < 0xDC00 || low > 0xDFFF) fail("the second half of a surrogate pair");
      append_utf8(out, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
    } else {
      append_utf8(out, code);
    }
  }

  uint32_t hexadecimal() {
    uint32_t code = 0;
    const char* first = text_.data() + at_;
    if (at_ + 4 > text_.size()) fail("four hexadecimal digits");
    const auto [end, error] = std::from_chars(first, first + 4, code, 16);
    if (error != std::errc() || end != first + 4) fail("four hexadecimal digits");
    at_ += 4;
    return code;
  }

  void skip_digits() {
    const size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == first) fail("a digit");
  }

  bool skip_one_of(std::string_view characters) {
    if (at_ >= text_.size() || characters.find(text_[at_]) == std::string_view::npos) return false;
    ++at_;
    return true;
  }

  /// Parses a number by RFC 8259: no plus sign, no leading zeros, digits on both sides of a point.
  Json number() {
    const size_t first = at_;
    const bool is_negative = skip_one_of("-");
    if (at_ >= text_.size() || text_[at_] < '0' || text_[at_] > '9')
      fail(is_negative ? "a digit" : "a value");
    if (!skip_one_of("0")) skip_digits();
    bool is_integer = true;
    if (skip_one_of(".")) {
      skip_digits();
      is_integer = false;
    }
    if (skip_one_of("eE")) {
      skip_one_of("+-");
      skip_digits();
      is_integer = false;
    }
    const char *begin = text_.data() + first, *end = text_.data() + at_;
    int64_t integer = 0;
    if (is_integer && std::from_chars(begin, end, integer).ec == std::errc()) return Json(integer);
    double real = 0;
    if (std::from_chars(begin, end, real).ec != std::errc()) {
      at_ = first;
      fail("a number in the range of float64");
    }
    return Json(real);
  }

  std::string_view text_;
  Json::RepeatedKeys repeated_;
  size_t at_ = 0;
};

}  // namespace

Json Json::parse(std::string_view text, RepeatedKeys repeated) {
  return Parser(text, repeated).document();
}

}  // namespace dtrain
