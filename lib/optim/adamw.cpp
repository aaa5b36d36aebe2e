#include "optim/adam_options.h"
#include "optim/table.h"

namespace dtrain {

namespace {

struct AdamwOptions : AdamOptions {
  AdamwOptions() { weight_decay = 0.004; }
};

}  // namespace

void add_adamw(Registry<Optimizer>& table) {
  table.add<AdamWith<AdamwOptions>>(
      "adamw",
      adam_schema<AdamwOptions>("AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019).")
          .example("{learning_rate: 0.001, weight_decay: 0.01}"));
}

}  // namespace dtrain
