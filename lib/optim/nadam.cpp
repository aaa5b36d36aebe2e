#include "optim/adam_options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

class Nadam : public AdamWith<AdamOptions> {
 public:
  using AdamWith::AdamWith;
  OptimizerRule rule() const override {
    return math::Nadam{options_.beta_1, options_.beta_2, static_cast<float>(options_.epsilon)};
  }
};

}  // namespace

void add_nadam(Registry<Optimizer>& table) {
  table.add<Nadam>(
      "nadam", adam_schema<AdamOptions>("Nadam (Dozat 2016): Adam with Nesterov momentum. The momentum grows "
                                        "from about half of beta_1 to beta_1 over the first hundred steps.")
                   .example("{learning_rate: 0.001}"));
}

}  // namespace dtrain
