// Definitions for schema.h; include schema.h instead.
#pragma once

namespace dtrain {

/// A field of type V, independent of the struct that contains it.
template <class V>
class FieldOf : public SchemaField {
 public:
  FieldOf(std::string name, std::string doc, bool required, Check<V> check)
      : SchemaField(std::move(name), std::move(doc), required), check_(std::move(check)) {}

  bool parse(const ConfigNode& node, const std::string& where, void* object,
             Diagnostics& diagnostics) const override {
    V& field = in(object);
    V value = field;
    const bool well_formed = Codec<V>::parse(node, where, value, diagnostics);
    // A value that fails its check is not stored: other code relies on the check.
    if (well_formed && check_.holds && !check_.holds(value))
      return report_unexpected(node, where, check_.expected, diagnostics);
    field = std::move(value);  // a list with invalid items keeps its valid items
    return well_formed;
  }
  ConfigNode write(const void* object) const override {
    // The const_cast is safe because write() only reads the object.
    return Codec<V>::write(in(const_cast<void*>(object)));
  }
  Json json_schema() const override {
    Json json = Codec<V>::schema();
    for (const auto& [key, value] : check_.schema.entries()) json.set(key, value);
    return json;
  }

 private:
  virtual V& in(void* object) const = 0;

  Check<V> check_;
};

template <class T, class V>
class MemberField final : public FieldOf<V> {
 public:
  MemberField(std::string name, std::string doc, bool required, Check<V> check, V T::*member)
      : FieldOf<V>(std::move(name), std::move(doc), required, std::move(check)), member_(member) {}

 private:
  V& in(void* object) const override { return static_cast<T*>(object)->*member_; }

  V T::*member_;
};

/// A field of the struct `member` of T, added by Schema::part().
template <class T, class V>
class PartField final : public SchemaField {
 public:
  PartField(const std::string& prefix, V T::*member, std::shared_ptr<const SchemaField> field)
      : SchemaField(prefix + field->name(), field->doc(), field->required()),
        member_(member),
        field_(std::move(field)) {}

  bool parse(const ConfigNode& node, const std::string& where, void* object,
             Diagnostics& diagnostics) const override {
    return field_->parse(node, where, &(static_cast<T*>(object)->*member_), diagnostics);
  }
  ConfigNode write(const void* object) const override {
    return field_->write(&(static_cast<const T*>(object)->*member_));
  }
  Json json_schema() const override { return field_->json_schema(); }
  bool is_of_part() const override { return true; }

 private:
  V T::*member_;
  std::shared_ptr<const SchemaField> field_;
};

// Fields of the most common types are instantiated once, in schema.cpp.
extern template class FieldOf<bool>;
extern template class FieldOf<int64_t>;
extern template class FieldOf<double>;
extern template class FieldOf<std::string>;
extern template class FieldOf<Size2>;
extern template class FieldOf<ConfigNode>;

template <class T>
template <class V>
Schema<T>& Schema<T>::required(std::string name, V T::*member, std::string doc, Check<V> check) {
  add_field(std::shared_ptr<const SchemaField>(
      new MemberField<T, V>(std::move(name), std::move(doc), true, std::move(check), member)));
  return *this;
}

template <class T>
template <class V>
Schema<T>& Schema<T>::optional(std::string name, V T::*member, std::string doc, Check<V> check) {
  add_field(std::shared_ptr<const SchemaField>(
      new MemberField<T, V>(std::move(name), std::move(doc), false, std::move(check), member)));
  return *this;
}

template <class T>
template <class V>
Schema<T>& Schema<T>::part(const std::string& prefix, V T::*member, const Schema<V>& schema) {
  for (const auto& field : schema.fields())
    add_field(std::shared_ptr<const SchemaField>(new PartField<T, V>(prefix, member, field)));
  return *this;
}

template <class T>
Schema<T>& Schema<T>::positional(std::string name) {
  set_positional(std::move(name));
  return *this;
}

template <class T>
Schema<T>& Schema<T>::rule(std::function<void(const T&, const ConfigNode&, Diagnostics&)> rule) {
  add_rule([rule = std::move(rule)](const void* object, const ConfigNode& node, Diagnostics& diagnostics) {
    rule(*static_cast<const T*>(object), node, diagnostics);
  });
  return *this;
}

template <class T>
Schema<T>& Schema<T>::details(std::vector<std::string> names) {
  set_details(std::move(names));
  return *this;
}

template <class T>
Schema<T>& Schema<T>::example(std::string options) {
  set_example(std::move(options));
  return *this;
}

template <class T>
Schema<T>& Schema<T>::short_by_default() {
  const T defaults{};
  set_short_by_default(&defaults);
  return *this;
}

template <class T>
Schema<T>& Schema<T>::omit_default(const std::string& name) {
  const T defaults{};
  set_omitted_default(name, &defaults);
  return *this;
}

/// A nested struct. It is read and written by its own schema.
template <class T>
requires requires {
  { T::schema() } -> std::same_as<const Schema<T>&>;
}
struct Codec<T> {
  static bool parse(const ConfigNode& node, const std::string& where, T& out, Diagnostics& diagnostics) {
    return T::schema().parse(node, where, out, diagnostics);
  }
  static ConfigNode write(const T& value) { return T::schema().write(value); }
  static Json schema() { return T::schema().json_schema(); }
};

}  // namespace dtrain
