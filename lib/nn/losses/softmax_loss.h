// The base class of categorical cross-entropies. The output is the result of a softmax, or the logits before
// it.
#pragma once

#include <memory>

#include "nn/loss.h"

namespace dtrain {

/// A loss whose predictions are softmax probabilities, or the logits of a softmax. `Derived` has a
/// constructor with the arguments (spec, weight). `Spec` has a member from_logits.
template <class Derived, class Spec>
class SoftmaxLoss : public Loss {
 public:
  SoftmaxLoss(const Spec& spec, double weight) : spec_(spec), weight_(weight) {}

  Scores takes() const override { return spec_.from_logits ? Scores::softmax_logits : Scores::probabilities; }
  double weight() const override { return weight_; }
  bool tells_classes() const override { return true; }
  bool is_probability(const Layer& activation) const override { return activation.is_softmax(); }
  std::shared_ptr<const Loss> before(const Layer& activation) const override {
    if (spec_.from_logits || !is_probability(activation)) return nullptr;
    Spec spec = spec_;
    spec.from_logits = true;
    return std::make_shared<const Derived>(spec, weight_);
  }

 protected:
  const Spec& spec() const { return spec_; }

 private:
  Spec spec_;
  double weight_;
};

}  // namespace dtrain
