// A JSON value, with a parser and a writer, for --json output, metrics.jsonl, the JSON schema and Keras's
// model_config.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dtrain {

/// A JSON value. Strings may contain any bytes: dump() writes bytes that are not valid UTF-8 as escapes
/// (base/utf8.h), and parse() converts the escapes back. Objects keep insertion order. A number is written
/// such that it is parsed as the same double. JSON has no NaN and no infinities, so they are written as the
/// strings "nan", "inf" and "-inf".
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(int value) : value_(int64_t{value}) {}
  Json(int64_t value) : value_(value) {}
  Json(size_t value) : value_(static_cast<int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  explicit Json(Object value) : value_(std::move(value)) {}
  static Json array() { return Json(Array{}); }
  static Json object();

  /// Sets or replaces a key of an object. Returns *this for chaining.
  Json& set(std::string_view key, Json value);
  Json& push(Json value);
  /// Returns nullptr if this is not an object or lacks the key.
  const Json* find(std::string_view key) const;

  /// Treatment of a key that occurs several times in an object: parse() keeps the last value, or throws
  /// UserError.
  enum class RepeatedKeys { last, error };
  /// Parses a whole JSON document (RFC 8259) with at most 100 levels of nesting. Throws UserError with the
  /// offset of the mistake if the text is not valid JSON or a number is too large for float64.
  static Json parse(std::string_view text, RepeatedKeys repeated = RepeatedKeys::last);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
  // These functions throw UserError if the value has a different type, because the document may come from an
  // untrusted source.
  bool as_bool() const { return get<bool>("true or false"); }
  int64_t as_int() const { return get<int64_t>("an integer"); }
  double as_double() const;
  const std::string& as_string() const { return get<std::string>("a string"); }
  const Array& items() const { return get<Array>("an array"); }
  const Object& entries() const { return get<Object>("an object"); }
  const Json& at(std::string_view key) const;

  /// Returns the value as JSON text. If `indent` is 0, the text is a single line. Otherwise each element is
  /// on a separate line, but an array that contains only scalars stays on one line.
  std::string dump(int indent = 0) const;

 private:
  template <class T>
  const T& get(const char* expected) const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    refuse(expected);
  }
  [[noreturn]] void refuse(const char* expected) const;

  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace dtrain
