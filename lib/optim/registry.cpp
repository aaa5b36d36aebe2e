#include <string>

#include "optim/table.h"

namespace dtrain {

namespace {

constexpr const char* kNumberKind = "constant";
constexpr const char* kNumberField = "value";

}  // namespace

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
    table.number_as(kNumberKind, kNumberField);
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

bool Codec<Configured<Schedule>>::parse(const ConfigNode& node, const std::string& where,
                                        Configured<Schedule>& out, Diagnostics& diagnostics) {
  if (!node.is_scalar()) {
    out = registry<Schedule>().parse(node, diagnostics);
    return static_cast<bool>(out);
  }
  Diagnostics found;
  out = registry<Schedule>().parse(node, found);
  const std::string field = std::string(kNumberKind) + "'s " + kNumberField;
  for (const Diagnostics::Item& item : found.items()) {
    const bool is_of_number = item.message.starts_with(field);
    diagnostics.error(item.mark, is_of_number ? where + item.message.substr(field.size()) : item.message);
  }
  return static_cast<bool>(out);
}

}  // namespace dtrain
