#include <algorithm>
#include <cmath>

#include "optim/step_count.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct PolynomialDecayOptions {
  double initial = 0;
  OrAuto<StepCount> steps;
  double end = 0.0001;
  double power = 1;
  bool cycle = false;
};

class PolynomialDecay : public Schedule {
 public:
  explicit PolynomialDecay(const PolynomialDecayOptions& options) : options_(options) {}
  double at(int64_t step, const RunLength& run, const Json&) const override {
    const auto& [initial, length, end, power, cycle] = options_;
    const auto now = static_cast<double>(position(step, run, length));
    double steps = static_cast<double>(decay_steps(length, run));
    if (cycle) steps *= std::max(1.0, std::ceil(now / steps));
    return (initial - end) * std::pow(1 - std::min(now, steps) / steps, power) + end;
  }

 private:
  PolynomialDecayOptions options_;
};

}  // namespace

void add_polynomial_decay(Registry<Schedule>& table) {
  using Options = PolynomialDecayOptions;
  table.add<PolynomialDecay>(
      "polynomial_decay",
      Schema<Options>("Keras's PolynomialDecay: for `steps` steps, the rate is end + (initial - end) * (1 - "
                      "step / steps)^power. After that, it is constant.")
          .example("{initial: 0.1, end: 0.001, power: 2}")
          .required("initial", &Options::initial, "the rate at step 0", at_least(0.0))
          .optional(
              "steps", &Options::steps,
              "Length of the decay, in steps or as '5 epochs'. `auto` means until the end of the training.",
              or_auto(some_time()))
          .optional("end", &Options::end, "the final rate", at_least(0.0))
          .optional("power", &Options::power, "exponent of the decay; 1 means a linear decay", at_least(0.0))
          .optional("cycle", &Options::cycle,
                    "Whether the rate rises again after the decay. If true, each time the decay ends, its "
                    "length is extended to the next multiple of `steps`."));
}

}  // namespace dtrain
