// A JSON value to build and write: --json output, metrics.jsonl, the JSON schema, Keras's model_config.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dtrain {

/// Strings are bytes: those that are no UTF-8 are written as escapes (base/utf8.h), and read back.
/// Objects keep the order in which keys were set. Numbers are written so that reading them gives the same
/// double (NaN and infinities, which JSON lacks, as the strings "nan", "inf", "-inf").
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

  /// Sets (or replaces) a key of an object; returns this, so that calls chain.
  Json& set(std::string_view key, Json value);
  Json& push(Json value);
  /// Null (the pointer) where this is no object or has no such key.
  const Json* find(std::string_view key) const;

  /// What becomes of a key that an object has several times: the last value counts, or parse() throws.
  enum class RepeatedKeys { last, error };
  /// Parses a whole document by the grammar of RFC 8259, with nesting to 100 levels. Throws UserError with
  /// the offset of the mistake; also for a number that float64 cannot hold.
  static Json parse(std::string_view text, RepeatedKeys repeated = RepeatedKeys::last);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
  // These throw UserError where the value is another: what is read may have been written by anybody.
  bool as_bool() const { return get<bool>("true or false"); }
  int64_t as_int() const { return get<int64_t>("an integer"); }
  double as_double() const;
  const std::string& as_string() const { return get<std::string>("a string"); }
  const Array& items() const { return get<Array>("an array"); }
  const Object& entries() const { return get<Object>("an object"); }
  const Json& at(std::string_view key) const;

  /// One line when `indent` is 0; else a line for each element, but for lists of scalars.
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
