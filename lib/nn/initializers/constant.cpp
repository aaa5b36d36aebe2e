#include <algorithm>

#include "nn/initializers/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

struct ConstantOptions {
  double value = 0;
};

class Constant : public Initializer {
 public:
  explicit Constant(const ConstantOptions& options) : value_(static_cast<float>(options.value)) {}
  void fill(float* values, const Shape& shape, const Philox&) const override {
    std::fill_n(values, shape.elements(), value_);
  }

 private:
  float value_;
};

}  // namespace

void add_constants(Registry<Initializer>& table) {
  const auto always = [](double value) {
    return [value](const NoOptions&, const ConfigNode&) -> std::shared_ptr<const Initializer> {
      return std::make_shared<const Constant>(ConstantOptions{value});
    };
  };
  table.add_with("zeros", Schema<NoOptions>("All zeros."), always(0));
  table.add_with("ones", Schema<NoOptions>("All ones."), always(1));
  table.add<Constant>("constant", Schema<ConstantOptions>("All elements have the same value.")
                                      .example("{value: 0.1}")
                                      .optional("value", &ConstantOptions::value, "the value of all elements")
                                      .positional("value"));
}

}  // namespace dtrain
