#include "optim/adam_options.h"
#include "optim/table.h"

namespace dtrain {

void add_adam(Registry<Optimizer>& table) {
  table.add<AdamWith<AdamOptions>>(
      "adam", adam_schema<AdamOptions>(
                  "Adam (Kingma and Ba 2015): a step is proportional to the running mean of the gradients, "
                  "divided by the square root of the running mean of the squared gradients.")
                  .example("{learning_rate: 0.001}"));
}

}  // namespace dtrain
