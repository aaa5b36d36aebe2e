// Optimizer rules, as in Keras. A rule holds the settings that stay the same in all steps, and declares its
// RuleTraits. begin() is called once per update and parameter group, and computes in double precision where
// the result needs it. It returns a functor that updates one weight `w` from its gradient and its slots (the
// optimizer state of the weight). The functor takes kMostSlots slots, but uses only the first
// RuleTraits::slots of them.
//
// To add a rule, define it here and add it to OptimizerRule. No other code names the rules.
#pragma once

#include <cstdint>
#include <math.h>
#include <variant>

#include "base/host_device.h"
#include "ops/specs.h"

namespace dtrain {

/// Maximum number of slots of a rule. The functors of all rules take this number of slots as arguments.
inline constexpr int kMostSlots = 3;

struct RuleTraits {
  int slots = 0;
  /// True if the second argument of the functor is a gradient. The gradient is then scaled and clipped before
  /// the functor is called, and weight decay is applied. False for rules such as moving averages.
  bool of_gradient = true;
  /// True if the update has two phases, because the length of a step depends on the norms of whole
  /// parameters. In the first phase, the functor only writes the direction of the step, to its last slot. In
  /// the second phase, Ops::apply_directions() updates the weights according to the rule's direction_rule().
  bool finds_direction = false;
  /// True if the functor is only used for parameters with fewer than two axes. For all other parameters,
  /// Ops::find_factored_direction() computes the direction.
  bool factors = false;
};

namespace math {

/// Returns the learning rate of a group in this step.
DTRAIN_HOST_DEVICE inline float rate_of(const StepState& state, const GroupRule& group) {
  return group.learning_rate_factor * static_cast<float>(state.now.learning_rate);
}

/// Returns the number of steps that have updated a group's slots, including the current step.
DTRAIN_HOST_DEVICE inline double steps_of_slots(const StepState& state, const GroupRule& group) {
  return static_cast<double>(state.now.step + 1 - group.slots_since);
}

struct Sgd {
  static constexpr RuleTraits kTraits{};
  struct Step {
    float rate;
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float&, float&, float&) const { w -= rate * g; }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    return {rate_of(state, group)};
  }
};

struct Momentum {
  float momentum;
  static constexpr RuleTraits kTraits{.slots = 1};
  struct Step {
    float rate, momentum;
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& velocity, float&, float&) const {
      velocity = momentum * velocity - rate * g;
      w += velocity;
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    return {rate_of(state, group), momentum};
  }
};

/// Y. Nesterov's momentum in the form of I. Sutskever et al., ICML 2013.
struct Nesterov {
  float momentum;
  static constexpr RuleTraits kTraits{.slots = 1};
  struct Step {
    float rate, momentum;
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& velocity, float&, float&) const {
      velocity = momentum * velocity - rate * g;
      w += momentum * velocity - rate * g;
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    return {rate_of(state, group), momentum};
  }
};

/// Slots: mean square; mean gradient if kCentered; momentum if kMomentum.
template <bool kCentered, bool kMomentum>
struct Rmsprop {
  float rho, momentum, epsilon;
  static constexpr RuleTraits kTraits{.slots = 1 + kCentered + kMomentum};
  struct Step {
    float rate, rho, momentum, epsilon;
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& square, float& second, float& third) const {
      square = rho * square + (1.0f - rho) * g * g;
      float variance = square;
      if constexpr (kCentered) {
        second = rho * second + (1.0f - rho) * g;
        variance -= second * second;
      }
      float step = rate * g / ::sqrtf(variance + epsilon);
      if constexpr (kMomentum) {
        float& last = kCentered ? third : second;
        step = last = momentum * last + step;
      }
      w -= step;
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    return {rate_of(state, group), rho, momentum, epsilon};
  }
};

/// Slots: the accumulated squared gradients.
struct Adagrad {
  float epsilon;
  static constexpr RuleTraits kTraits{.slots = 1};
  struct Step {
    float rate, epsilon;
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& accumulator, float&, float&) const {
      accumulator += g * g;
      w -= rate * g / ::sqrtf(accumulator + epsilon);
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    return {rate_of(state, group), epsilon};
  }
};

/// D. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, in the form that is
/// described just before section 2.1: epsilon is added to the square root without a bias correction ("epsilon
/// hat"). Slots: m, v.
struct Adam {
  double beta_1, beta_2;
  float epsilon;
  static constexpr RuleTraits kTraits{.slots = 2};
  struct Step {
    float rate, beta_1, beta_2, epsilon;  // the rate includes both bias corrections
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& m, float& v, float&) const {
      m += (g - m) * (1.0f - beta_1);
      v += (g * g - v) * (1.0f - beta_2);
      w -= rate * m / (::sqrtf(v) + epsilon);
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    const double steps = steps_of_slots(state, group);
    const double rate =
        state.now.learning_rate * ::sqrt(1 - ::pow(beta_2, steps)) / (1 - ::pow(beta_1, steps));
    return {group.learning_rate_factor * static_cast<float>(rate), static_cast<float>(beta_1),
            static_cast<float>(beta_2), epsilon};
  }
};

/// Adam with the infinity norm (D. Kingma and J. Ba, section 7.1). Slots: m, and the norm u.
struct Adamax {
  double beta_1;
  float beta_2, epsilon;
  static constexpr RuleTraits kTraits{.slots = 2};
  struct Step {
    float rate, beta_1, beta_2, epsilon;  // the rate includes the bias correction
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& m, float& u, float&) const {
      m += (g - m) * (1.0f - beta_1);
      const float decayed = beta_2 * u, size = ::fabsf(g);
      u = decayed > size ? decayed : size;
      w -= rate * m / (u + epsilon);
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    const double rate = state.now.learning_rate / (1 - ::pow(beta_1, steps_of_slots(state, group)));
    return {group.learning_rate_factor * static_cast<float>(rate), static_cast<float>(beta_1), beta_2,
            epsilon};
  }
};

/// T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016. The momentum of step t is
/// beta_1 * (1 - 0.96^t / 2). Slots: m, v.
struct Nadam {
  double beta_1, beta_2;
  float epsilon;
  static constexpr RuleTraits kTraits{.slots = 2};
  struct Step {
    float rate, beta_1, beta_2, epsilon;
    // Factors of m, of the gradient, and of v, including the bias corrections.
    float mean_scale, gradient_scale, square_scale;
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& m, float& v, float&) const {
      m += (g - m) * (1.0f - beta_1);
      v += (g * g - v) * (1.0f - beta_2);
      w -= rate * (mean_scale * m + gradient_scale * g) / (::sqrtf(square_scale * v) + epsilon);
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    const double steps = steps_of_slots(state, group);
    const double now = momentum(steps), next = momentum(steps + 1), product = product_of_momenta(steps);
    return {rate_of(state, group),
            static_cast<float>(beta_1),
            static_cast<float>(beta_2),
            epsilon,
            static_cast<float>(next / (1 - product * next)),
            static_cast<float>((1 - now) / (1 - product)),
            static_cast<float>(1 / (1 - ::pow(beta_2, steps)))};
  }
  /// Returns the product of the momenta of the first `steps` steps (Keras's variable _u_product). The loop
  /// ends after at most 565 iterations, because the momenta of later steps differ from beta_1 by less than
  /// 1e-10 * beta_1.
  DTRAIN_HOST_DEVICE double product_of_momenta(double steps) const {
    const double power = ::pow(beta_1, steps);
    if (power < 1e-12) return 0;  // 1 - product would be rounded to 1
    double product = power, decay = 1;
    for (double step = 0; step < steps && decay > 1e-10; ++step) {
      decay *= 0.96;
      product *= 1 - 0.5 * decay;
    }
    return product;
  }

 private:
  DTRAIN_HOST_DEVICE double momentum(double step) const { return beta_1 * (1 - 0.5 * ::pow(0.96, step)); }
};

/// M. Zeiler, "ADADELTA: an adaptive learning rate method", 2012. Slots: the running mean of the squared
/// gradients, and the running mean of the squared steps (without the learning rate).
struct Adadelta {
  float rho, epsilon;
  static constexpr RuleTraits kTraits{.slots = 2};
  struct Step {
    float rate, rho, epsilon;
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& gradients, float& steps, float&) const {
      gradients = rho * gradients + (1.0f - rho) * g * g;
      const float step = ::sqrtf(steps + epsilon) * g / ::sqrtf(gradients + epsilon);
      steps = rho * steps + (1.0f - rho) * step * step;
      w -= rate * step;
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    return {rate_of(state, group), rho, epsilon};
  }
};

/// X. Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023.
struct Lion {
  float beta_1, beta_2;
  static constexpr RuleTraits kTraits{.slots = 1};
  struct Step {
    float rate, beta_1, beta_2;
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& m, float&, float&) const {
      const float direction = m * beta_1 + g * (1.0f - beta_1);
      // If the direction is 0 or NaN, w changes by 0 or NaN.
      w -= direction > 0.0f ? rate : direction < 0.0f ? -rate : rate * direction;
      m = m * beta_2 + g * (1.0f - beta_2);
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    return {rate_of(state, group), beta_1, beta_2};
  }
};

/// The second phase of a rule whose update has two phases (RuleTraits::finds_direction). It moves a parameter
/// w along its direction d: w -= ratio() * rate() * d.
struct DirectionRule {
  enum class Kind {
    trust_ratio,  // |w| / |d|, or 1 if a norm is 0
    adafactor,    // max(epsilon, rms(w)) / max(1, rms(d) / clip_threshold), where rms is the root mean square
  };
  Kind kind = Kind::trust_ratio;
  float epsilon = 0, clip_threshold = 1;  // options of adafactor

  /// Returns the ratio for this kind of rule. `w_squares` and `d_squares` are the sums of the squares of the
  /// whole parameter w and of its direction d, which have `elements` elements each.
  DTRAIN_HOST_DEVICE double ratio(double w_squares, double d_squares, int64_t elements) const {
    if (kind == Kind::trust_ratio)
      return w_squares > 0 && d_squares > 0 ? ::sqrt(w_squares) / ::sqrt(d_squares) : 1.0;
    const auto n = static_cast<double>(elements), least = static_cast<double>(epsilon);
    const double size = ::sqrt(w_squares / n),
                 excess = ::sqrt(d_squares / n) / static_cast<double>(clip_threshold);
    return (size > least ? size : least) / (excess > 1 ? excess : 1.0);
  }
  /// Returns the learning rate. For Adafactor, it is limited to 1 / sqrt(t), where t is the number of the
  /// step, counted from 1.
  DTRAIN_HOST_DEVICE double rate(const StepNumbers& now) const {
    const double most = 1 / ::sqrt(static_cast<double>(now.step + 1));
    return kind == Kind::adafactor && now.learning_rate > most ? most : now.learning_rate;
  }
};

/// The first phase of LAMB (Y. You et al., "Large batch optimization for deep learning: training BERT in 76
/// minutes", ICLR 2020). The direction is the update of Adam with both bias corrections. Weight decay is
/// applied to the weights before the functor is called. Slots: m, v, and the direction. The direction may be
/// stored in the memory of the gradient.
struct Lamb {
  float beta_1, beta_2, epsilon;
  static constexpr RuleTraits kTraits{.slots = 3, .finds_direction = true};
  struct Step {
    float beta_1, beta_2, epsilon, mean_scale, square_scale;
    DTRAIN_HOST_DEVICE void operator()(float&, float g, float& m, float& v, float& direction) const {
      m += (g - m) * (1.0f - beta_1);
      v += (g * g - v) * (1.0f - beta_2);
      direction = mean_scale * m / (::sqrtf(square_scale * v) + epsilon);
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    const double steps = steps_of_slots(state, group);
    return {beta_1, beta_2, epsilon, correction(beta_1, steps), correction(beta_2, steps)};
  }
  DirectionRule direction_rule() const { return {}; }

 private:
  /// Returns the bias correction of a running mean that started at 0, after `steps` steps.
  DTRAIN_HOST_DEVICE static float correction(float beta, double steps) {
    return static_cast<float>(1 / (1 - ::pow(static_cast<double>(beta), steps)));
  }
};

/// N. Shazeer and M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost", ICML 2018, as in
/// Keras 3: in step t, the learning rate is at most 1 / sqrt(t), and the decay rate of the means is 1 -
/// t^beta_2_decay. Slots: the running mean of the squared gradients, and the direction. The direction may be
/// stored in the memory of the gradient.
struct Adafactor {
  double beta_2_decay;
  float epsilon_1, epsilon_2, clip_threshold;
  static constexpr RuleTraits kTraits{.slots = 2, .finds_direction = true, .factors = true};
  struct Step {
    float beta_2, epsilon_1;
    DTRAIN_HOST_DEVICE void operator()(float&, float g, float& velocity, float& direction, float&) const {
      velocity = next_mean(velocity, g * g + epsilon_1);
      direction = g / ::sqrtf(velocity);
    }
    /// Returns the new value of a running mean. `before` is its old value, and `now` is the mean of this
    /// step.
    DTRAIN_HOST_DEVICE float next_mean(float before, float now) const {
      return beta_2 * before + (1.0f - beta_2) * now;
    }
    /// Returns the number that gradient g contributes to the means of its row and its column.
    DTRAIN_HOST_DEVICE double square(float g) const {
      return static_cast<double>(g) * static_cast<double>(g) + static_cast<double>(epsilon_1);
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    return {static_cast<float>(1 - ::pow(steps_of_slots(state, group), beta_2_decay)), epsilon_1};
  }
  DirectionRule direction_rule() const { return {DirectionRule::Kind::adafactor, epsilon_2, clip_threshold}; }
};

/// The second phase of a rule with two phases, for one parameter w with direction d: w -= length * d.
struct DirectionStep {
  DirectionRule rule;
  const double* squares;  // device memory: the sums of the squares of the whole w and of the whole d
  int64_t elements;       // number of elements of the whole w
  static constexpr RuleTraits kTraits{.of_gradient = false};
  struct Step {
    float length;
    DTRAIN_HOST_DEVICE void operator()(float& w, float direction, float&, float&, float&) const {
      w -= length * direction;
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState& state, const GroupRule& group) const {
    const double ratio = rule.ratio(squares[0], squares[1], elements);
    return {static_cast<float>(ratio) * group.learning_rate_factor *
            static_cast<float>(rule.rate(state.now))};
  }
};

/// w = momentum * w + (1 - momentum) * gradient, for the moving statistics of batch normalization and the
/// moving average of the weights.
struct MovingAverage {
  float momentum;
  static constexpr RuleTraits kTraits{.of_gradient = false};
  struct Step {
    float momentum;
    DTRAIN_HOST_DEVICE void operator()(float& w, float g, float&, float&, float&) const {
      w = momentum * w + (1.0f - momentum) * g;
    }
  };
  DTRAIN_HOST_DEVICE Step begin(const StepState&, const GroupRule&) const { return {momentum}; }
};

/// Returns the scalars of a step for a parameter group. If the rule's argument is not a gradient
/// (RuleTraits), returns the defaults, which neither scale nor clip nor decay.
template <class Rule>
DTRAIN_HOST_DEVICE inline UpdateNumbers update_numbers(const StepState& state, const GroupRule& group) {
  if (!Rule::kTraits.of_gradient) return {};
  const float decay = group.own_weight_decay
                          ? static_cast<float>(state.now.learning_rate) * group.weight_decay
                          : state.now.decay;
  return {group.learning_rate_factor * decay, state.gradient.gradient_scale, group.clip_value};
}

/// Returns the scaled gradient. If kClips is true, clips it to [-clip_value, clip_value]. NaN stays NaN.
template <bool kClips>
DTRAIN_HOST_DEVICE inline float scaled(float gradient, const UpdateNumbers& numbers) {
  const float g = numbers.gradient_scale * gradient, most = numbers.clip_value;
  if constexpr (kClips) return g > most ? most : g < -most ? -most : g;
  return g;
}

/// Calls use(rule) with the rule that the variant holds. std::visit() cannot be used, because it creates
/// functions that are not inlined, and kernels that are compiled for several instruction sets must not share
/// such functions.
template <class Use, class... Rules>
inline void with_rule(const std::variant<Rules...>& rule, Use&& use) {
  static_assert(((Rules::kTraits.slots <= kMostSlots) && ...));
  const auto use_if_set = [&](const auto* set) {
    if (set) use(*set);
  };
  (use_if_set(std::get_if<Rules>(&rule)), ...);
}

}  // namespace math

using OptimizerRule =
    std::variant<math::Sgd, math::Momentum, math::Nesterov, math::Rmsprop<false, false>,
                 math::Rmsprop<false, true>, math::Rmsprop<true, false>, math::Rmsprop<true, true>,
                 math::Adagrad, math::Adam, math::Adamax, math::Nadam, math::Adadelta, math::Lion, math::Lamb,
                 math::Adafactor, math::DirectionStep, math::MovingAverage>;

inline RuleTraits traits_of(const OptimizerRule& rule) {
  RuleTraits traits;
  math::with_rule(rule, [&](const auto& set) { traits = set.kTraits; });
  return traits;
}

/// Returns the direction_rule() of a rule with RuleTraits::finds_direction. For other rules, returns a
/// default DirectionRule.
inline math::DirectionRule direction_rule_of(const OptimizerRule& rule) {
  math::DirectionRule found;
  math::with_rule(rule, [&](const auto& set) {
    if constexpr (requires { set.direction_rule(); }) found = set.direction_rule();
  });
  return found;
}

}  // namespace dtrain
