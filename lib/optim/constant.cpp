#include "optim/constant.h"

#include "optim/table.h"

namespace dtrain {

namespace {

struct ConstantOptions {
  double value = 0;
};

class Constant : public Schedule {
 public:
  explicit Constant(const ConstantOptions& options) : value_(options.value) {}
  double at(int64_t, const RunLength&, const Json&) const override { return value_; }

 private:
  double value_;
};

}  // namespace

void add_constant(Registry<Schedule>& table) {
  table.add<Constant>("constant",
                      Schema<ConstantOptions>(
                          "A constant rate. A number alone, as in `learning_rate: 0.001`, means the same.")
                          .example("{value: 0.001}")
                          .required("value", &ConstantOptions::value, "the rate", at_least(0.0)));
}

Configured<Schedule> constant_rate(double value) {
  Diagnostics diagnostics;
  return registry<Schedule>().parse(Codec<double>::write(value), diagnostics);
}

}  // namespace dtrain
