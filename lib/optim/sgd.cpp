#include "optim/options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct SgdOptions : OptimizerOptions {
  SgdOptions() : OptimizerOptions(0.01) {}
  double momentum = 0;
  bool nesterov = false;
};

class Sgd : public OptimizerWith<SgdOptions> {
 public:
  using OptimizerWith::OptimizerWith;
  std::vector<Slot> slots() const override {
    if (options_.momentum == 0) return {};
    return {{"momentum"}};
  }
  OptimizerStep step(int64_t, double learning_rate, double gradient_scale) const override {
    const SgdStep rule{static_cast<float>(learning_rate), static_cast<float>(options_.momentum),
                       options_.nesterov};
    return step_with(rule, learning_rate, gradient_scale);
  }
};

}  // namespace

void add_sgd(KindTable<Optimizer>& table) {
  table.add<Sgd>(
      "sgd", optimizer_schema<SgdOptions>("Gradient descent, with momentum: v = momentum v - rate g; w += v.")
                 .optional("momentum", &SgdOptions::momentum, "how much of the last step is repeated",
                           between(0.0, 1.0))
                 .optional("nesterov", &SgdOptions::nesterov, "Nesterov's momentum: looks ahead along v"));
}

}  // namespace dtrain
