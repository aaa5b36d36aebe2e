#include <algorithm>
#include <cmath>
#include <numbers>

#include "optim/step_count.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct OneCycleOptions {
  double max = 0;
  OrAuto<StepCount> steps;
  double warmup = 0.3;
  double div_factor = 25;
  double final_div_factor = 10000;
};

/// Interpolates between `from` (at done = 0) and `to` (at done = 1), along half a period of a cosine.
double cosine_between(double from, double to, double done) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

/// The schedule of torch.optim.lr_scheduler.OneCycleLR with two phases and cosine annealing. The momentum is
/// not changed.
class OneCycle : public Schedule {
 public:
  explicit OneCycle(const OneCycleOptions& options) : options_(options) {}
  double at(int64_t step, const RunLength& run, const Json&) const override {
    const auto& [max, length, warmup, div_factor, final_div_factor] = options_;
    const double steps = static_cast<double>(decay_steps(length, run));
    const double last = steps - 1, top = std::max(warmup * steps - 1, 0.0);
    const double now = std::min(static_cast<double>(position(step, run, length)), last);
    const double initial = max / div_factor;
    if (now < top) return cosine_between(initial, max, now / top);
    return cosine_between(max, initial / final_div_factor, last > top ? (now - top) / (last - top) : 1.0);
  }

 private:
  OneCycleOptions options_;
};

}  // namespace

void add_one_cycle(Registry<Schedule>& table) {
  using Options = OneCycleOptions;
  table.add<OneCycle>(
      "one_cycle",
      Schema<Options>("The 1cycle schedule (Smith and Topin 2018), as in PyTorch's OneCycleLR. The rate "
                      "increases along a cosine to max, and then decreases along a cosine to a value far "
                      "below the initial rate. The momentum remains constant.")
          .example("{max: 0.1}")
          .required("max", &Options::max, "the highest rate", at_least(0.0))
          .optional("steps", &Options::steps,
                    "Length of the whole cycle, in steps or as '30 epochs'. `auto` means until the end of "
                    "the training.",
                    or_auto(some_time()))
          .optional("warmup", &Options::warmup, "fraction of the cycle in which the rate increases",
                    between(0.0, 1.0))
          .optional("div_factor", &Options::div_factor,
                    "Divisor of the initial rate, which is max / div_factor.", at_least(1.0))
          .optional("final_div_factor", &Options::final_div_factor,
                    "Divisor of the final rate, which is the initial rate / final_div_factor.",
                    at_least(1.0)));
}

}  // namespace dtrain
