#include "optim/table.h"

namespace dtrain {

template <>
const Registry<Schedule>& registry<Schedule>() {
  static const Registry<Schedule> kTable = [] {
    Registry<Schedule> table("learning rate schedule");
    add_constant(table);
    add_piecewise_constant(table);
    add_exponential_decay(table);
    add_inverse_time_decay(table);
    add_cosine_decay(table);
    add_polynomial_decay(table);
    add_one_cycle(table);
    add_linear_warmup(table);
    add_reduce_on_plateau(table);
    table.number_as("constant", "value");
    return table;
  }();
  return kTable;
}

template <>
const Registry<Optimizer>& registry<Optimizer>() {
  static const Registry<Optimizer> kTable = [] {
    Registry<Optimizer> table("optimizer");
    add_sgd(table);
    add_rmsprop(table);
    add_adagrad(table);
    add_adam(table);
    add_adamw(table);
    add_adamax(table);
    add_nadam(table);
    add_adadelta(table);
    add_lion(table);
    add_lamb(table);
    add_adafactor(table);
    return table;
  }();
  return kTable;
}

}  // namespace dtrain
