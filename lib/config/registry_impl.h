// Definitions for registry.h; include registry.h instead.
#pragma once

namespace dtrain {

template <class Base, class Options, class Make>
class KindOf final : public RegisteredKind {
 public:
  KindOf(Schema<Options> schema, Make make) : schema_(std::move(schema)), make_(std::move(make)) {}

  std::shared_ptr<const void> make(const std::string& name, const ConfigNode& options, ConfigNode& resolved,
                                   Diagnostics& diagnostics) const override {
    Options read{};
    if (schema_.read(options, name, read, diagnostics) == Reading::wrong) return nullptr;
    resolved = schema_.write(read);
    // The caller casts the void pointer to a pointer to Base, so it must be created from a pointer to Base.
    return std::shared_ptr<const Base>(make_(read, options));
  }
  const SchemaBase& schema() const override { return schema_; }
  Json json_schema() const override { return schema_.json_schema(); }

 private:
  const Schema<Options> schema_;
  const Make make_;
};

template <class Base>
Configured<Base> with_type(AnyConfigured any) {
  return {std::move(any.name), std::static_pointer_cast<const Base>(std::move(any.value)),
          std::move(any.resolved)};
}

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
  add_kind(std::move(name), std::shared_ptr<const RegisteredKind>(
                                new KindOf<Base, Options, Make>(std::move(schema), std::move(make))));
  return *this;
}

template <class Base>
Registry<Base>& Registry<Base>::number_as(std::string name, std::string field) {
  set_number_kind(std::move(name), std::move(field));
  return *this;
}

template <class Base>
Configured<Base> Registry<Base>::parse(const ConfigNode& node, Diagnostics& diagnostics) const {
  return with_type<Base>(parse_any(node, diagnostics));
}

template <class Base>
Configured<Base> Registry<Base>::parse(const ConfigNode& name, const ConfigNode& options,
                                       Diagnostics& diagnostics) const {
  return with_type<Base>(parse_any(name, options, diagnostics));
}

template <class Base>
Configured<Base> Registry<Base>::make(const std::string& name) const {
  return with_type<Base>(make_any(name));
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
