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
  OptimizerRule rule() const override {
    if (options_.momentum == 0) return math::Sgd{};
    const auto momentum = static_cast<float>(options_.momentum);
    if (options_.nesterov) return math::Nesterov{momentum};
    return math::Momentum{momentum};
  }
};

}  // namespace

void add_sgd(Registry<Optimizer>& table) {
  table.add<Sgd>(
      "sgd",
      optimizer_schema<SgdOptions>("Stochastic gradient descent with momentum: v = momentum * v - "
                                   "learning_rate * g and w = w + v, for a weight w with the gradient g.")
          .example("{learning_rate: 0.1, momentum: 0.9, nesterov: true}")
          .optional("momentum", &SgdOptions::momentum,
                    "momentum: the fraction of the previous step that is added to each step",
                    between(0.0, 1.0))
          .optional("nesterov", &SgdOptions::nesterov, "whether to use Nesterov momentum"));
}

}  // namespace dtrain
