#include "nn/regularizer.h"

#include <memory>

namespace dtrain {
namespace {

struct OneFactor {
  double factor = 0.01;
};

enum class Vectors { rows, columns };

struct OrthogonalPenaltyOptions {
  double factor = 0.01;
  Vectors mode = Vectors::rows;
};

struct TwoFactors {
  double l1 = 0, l2 = 0;
};

std::shared_ptr<const Regularizer> regularizer_of(double l1, double l2) {
  return std::make_shared<const Regularizer>(
      Regularizer{{.l1 = static_cast<float>(l1), .l2 = static_cast<float>(l2)}, {}});
}

}  // namespace

std::string OrthogonalPenalty::mistake_for(const Shape& shape) const {
  if (shape.rank() != 2) return "expected a weight with two axes";
  if (shape[of_columns ? 1 : 0] < 2)
    return of_columns ? "expected at least two columns" : "expected at least two rows";
  return "";
}

OrthogonalSpec OrthogonalPenalty::spec_for(const Shape& shape) const {
  if (of_columns)
    return {.factor = factor, .vectors = shape[1], .extent = shape[0], .stride = 1, .step = shape[1]};
  return {.factor = factor, .vectors = shape[0], .extent = shape[1], .stride = shape[1], .step = 1};
}

template <>
inline const EnumNames<Vectors> names_of<Vectors> = {{Vectors::rows, "rows"}, {Vectors::columns, "columns"}};

template <>
const Registry<Regularizer>& registry<Regularizer>() {
  static const Registry<Regularizer> table = [] {
    Registry<Regularizer> t("regularizer");
    const auto one = [](const std::string& name, const std::string& doc) {
      return Schema<OneFactor>(doc)
          .example("{" + name + ": 0.001}")
          .optional(name, &OneFactor::factor, "factor by which the sum is multiplied", at_least(0.0))
          .positional(name);
    };
    t.add_with("l1", one("l1", "A penalty of l1 times the sum of the absolute values of the elements."),
               [](const OneFactor& o, const ConfigNode&) { return regularizer_of(o.factor, 0); });
    t.add_with("l2", one("l2", "A penalty of l2 times the sum of the squares of the elements."),
               [](const OneFactor& o, const ConfigNode&) { return regularizer_of(0, o.factor); });
    t.add_with("l1_l2",
               Schema<TwoFactors>("The sum of an l1 penalty and an l2 penalty.")
                   .example("{l1: 0.0001, l2: 0.001}")
                   .optional("l1", &TwoFactors::l1,
                             "factor by which the sum of the absolute values is multiplied", at_least(0.0))
                   .optional("l2", &TwoFactors::l2, "factor by which the sum of the squares is multiplied",
                             at_least(0.0)),
               [](const TwoFactors& o, const ConfigNode&) { return regularizer_of(o.l1, o.l2); });
    t.add_with("orthogonal_regularizer",
               Schema<OrthogonalPenaltyOptions>(
                   "A penalty that makes the rows (or columns) of a weight orthogonal to each other. The "
                   "weight must have two axes. The penalty is factor times the mean absolute cosine of the "
                   "angle between two rows (or columns).")
                   .example("{factor: 0.01, mode: columns}")
                   .optional("factor", &OrthogonalPenaltyOptions::factor,
                             "factor by which the mean is multiplied", at_least(0.0))
                   .optional("mode", &OrthogonalPenaltyOptions::mode,
                             "whether the rows or the columns are made orthogonal"),
               [](const OrthogonalPenaltyOptions& o, const ConfigNode&) {
                 return std::make_shared<const Regularizer>(Regularizer{
                     {}, {.factor = static_cast<float>(o.factor), .of_columns = o.mode == Vectors::columns}});
               });
    return t;
  }();
  return table;
}

}  // namespace dtrain
