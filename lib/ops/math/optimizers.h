// Optimizer rules, as in Keras. A rule updates one weight `w` from its gradient and its slots (optimizer
// state), of which it uses the first kSlots. kOfGradient: the rule's second argument is a gradient, which is
// scaled first, and weight decay applies. begin_step() prepares a rule before the first element of a step: it
// sets `rate` and calls begin(), if the rule has them.
#pragma once

#include "base/host_device.h"
#include "ops/math/functions.h"
#include "ops/specs.h"

namespace dtrain::math {

struct Sgd {
  float rate = 0;
  static constexpr int kSlots = 0;
  static constexpr bool kOfGradient = true;
  DTRAIN_HOST_DEVICE void operator()(float& w, float g, float&, float&, float&) const { w -= rate * g; }
};

struct Momentum {
  float rate = 0, momentum;
  static constexpr int kSlots = 1;
  static constexpr bool kOfGradient = true;
  DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& velocity, float&, float&) const {
    velocity = momentum * velocity - rate * g;
    w += velocity;
  }
};

/// Y. Nesterov's momentum in the form of I. Sutskever et al., ICML 2013.
struct Nesterov {
  float rate = 0, momentum;
  static constexpr int kSlots = 1;
  static constexpr bool kOfGradient = true;
  DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& velocity, float&, float&) const {
    velocity = momentum * velocity - rate * g;
    w += momentum * velocity - rate * g;
  }
};

/// Slots: mean square; mean gradient if kCentered; momentum if kMomentum.
template <bool kCentered, bool kMomentum>
struct Rmsprop {
  float rate = 0, rho, momentum, epsilon;
  static constexpr int kSlots = 1 + kCentered + kMomentum;
  static constexpr bool kOfGradient = true;
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

struct Adagrad {
  float rate = 0, epsilon;
  static constexpr int kSlots = 1;
  static constexpr bool kOfGradient = true;
  DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& accumulator, float&, float&) const {
    accumulator += g * g;
    w -= rate * g / ::sqrtf(accumulator + epsilon);
  }
};

/// Returns how many steps have updated a group's slots, including the current step.
DTRAIN_HOST_DEVICE inline double steps_of_slots(const StepState& state, const GroupRule& group) {
  return static_cast<double>(state.now.step + 1 - group.slots_since);
}

/// D. Kingma and J. Ba, "Adam", ICLR 2015, in the form before its section 2.1 ("epsilon hat").
struct Adam {
  float rate = 0, beta_1, beta_2, epsilon;
  static constexpr int kSlots = 2;
  static constexpr bool kOfGradient = true;
  /// Returns the rate with both bias corrections after `steps` steps.
  DTRAIN_HOST_DEVICE static double corrected(double rate, double beta_1, double beta_2, double steps) {
    return rate * ::sqrt(1 - ::pow(beta_2, steps)) / (1 - ::pow(beta_1, steps));
  }
  /// The step's rate includes the corrections for slots created at step 0; this adjusts it for younger slots.
  DTRAIN_HOST_DEVICE void begin(const StepState& state, const GroupRule& group) {
    if (group.slots_since == 0) return;
    rate *= static_cast<float>(corrected(1, beta_1, beta_2, steps_of_slots(state, group)) /
                               corrected(1, beta_1, beta_2, static_cast<double>(state.now.step + 1)));
  }
  DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& m, float& v, float&) const {
    m += (g - m) * (1.0f - beta_1);
    v += (g * g - v) * (1.0f - beta_2);
    w -= rate * m / (::sqrtf(v) + epsilon);
  }
};

/// X. Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023.
struct Lion {
  float rate = 0, beta_1, beta_2;
  static constexpr int kSlots = 1;
  static constexpr bool kOfGradient = true;
  DTRAIN_HOST_DEVICE void operator()(float& w, float g, float& m, float&, float&) const {
    const float direction = m * beta_1 + g * (1.0f - beta_1);
    w -= direction > 0.0f ? rate : direction < 0.0f ? -rate : rate * direction;  // keeps NaN and 0
    m = m * beta_2 + g * (1.0f - beta_2);
  }
};

/// First half of a step of LAMB (Y. You et al., "Large batch optimization for deep learning: training BERT in
/// 76 minutes", ICLR 2020): computes the direction, which is Adam's with both bias corrections.
struct LambDirection {
  float beta_1, beta_2, epsilon;
  float mean_scale = 1, square_scale = 1;
  static constexpr int kSlots = 3;
  static constexpr bool kOfGradient = true;
  /// Returns the bias correction of a running mean that started at 0, after `steps` steps.
  DTRAIN_HOST_DEVICE static float correction(float beta, double steps) {
    return static_cast<float>(1 / (1 - ::pow(static_cast<double>(beta), steps)));
  }
  /// The step's corrections hold for slots created at step 0; younger slots need their own.
  DTRAIN_HOST_DEVICE void begin(const StepState& state, const GroupRule& group) {
    mean_scale = state.now.mean_scale;
    square_scale = state.now.square_scale;
    if (group.slots_since == 0) return;
    const double steps = steps_of_slots(state, group);
    mean_scale = correction(beta_1, steps);
    square_scale = correction(beta_2, steps);
  }
  DTRAIN_HOST_DEVICE void operator()(float&, float g, float& m, float& v, float& direction) const {
    m += (g - m) * (1.0f - beta_1);
    v += (g * g - v) * (1.0f - beta_2);
    direction = mean_scale * m / (::sqrtf(square_scale * v) + epsilon);
  }
};

/// Second half of a step of LAMB: w -= rate * |w| / |d| * d for direction d, with the norms of the whole
/// parameter.
struct TrustRatio {
  const double* squares;
  float step = 0;
  static constexpr int kSlots = 0;
  static constexpr bool kOfGradient = false;
  DTRAIN_HOST_DEVICE void begin(const StepState& state, const GroupRule& group) {
    const bool known = squares[0] > 0 && squares[1] > 0;
    const double ratio = known ? ::sqrt(squares[0]) / ::sqrt(squares[1]) : 1.0;
    step = static_cast<float>(ratio) * group.learning_rate_factor * state.now.rate;
  }
  DTRAIN_HOST_DEVICE void operator()(float& w, float direction, float&, float&, float&) const {
    w -= step * direction;
  }
};

struct MovingAverage {
  float momentum;
  static constexpr int kSlots = 0;
  static constexpr bool kOfGradient = false;
  DTRAIN_HOST_DEVICE void operator()(float& w, float g, float&, float&, float&) const {
    w = momentum * w + (1.0f - momentum) * g;
  }
};

/// Returns a step's scalars for a group of parameters. Rules without kOfGradient get defaults: no scaling, no
/// weight decay.
template <class Rule>
DTRAIN_HOST_DEVICE inline UpdateNumbers update_numbers(const StepState& state, const GroupRule& group) {
  if (!Rule::kOfGradient) return {};
  const float decay = group.own_weight_decay ? state.now.learning_rate * group.weight_decay : state.now.decay;
  return {group.learning_rate_factor * state.now.rate, group.learning_rate_factor * decay,
          state.gradient.gradient_scale, group.clip_value};
}

/// Returns the gradient scaled and, if kClips, clipped to [-clip_value, clip_value]. NaN stays NaN.
template <bool kClips>
DTRAIN_HOST_DEVICE inline float scaled(float gradient, const UpdateNumbers& numbers) {
  const float g = numbers.gradient_scale * gradient, most = numbers.clip_value;
  if constexpr (kClips) return g > most ? most : g < -most ? -most : g;
  return g;
}

/// Prepares `rule` for a step, before its first element.
template <class Rule>
DTRAIN_HOST_DEVICE inline void begin_step(Rule& rule, const UpdateNumbers& numbers, const StepState& state,
                                          const GroupRule& group) {
  if constexpr (requires { rule.rate; }) rule.rate = numbers.rate;
  if constexpr (requires { rule.begin(state, group); }) rule.begin(state, group);
}

/// Calls use(rule) with the rule that `options` selects; begin_step() has not been called on it.
template <class Use>
inline void with_rule(const OptimizerRule& options, Use&& use) {
  if (const auto* sgd = std::get_if<SgdRule>(&options)) {
    if (sgd->momentum == 0.0f) return use(Sgd{});
    if (sgd->nesterov) return use(Nesterov{.momentum = sgd->momentum});
    return use(Momentum{.momentum = sgd->momentum});
  }
  if (const auto* rms = std::get_if<RmspropRule>(&options)) {
    const auto with = [&]<bool kCentered, bool kMomentum>() {
      use(Rmsprop<kCentered, kMomentum>{.rho = rms->rho, .momentum = rms->momentum, .epsilon = rms->epsilon});
    };
    if (rms->centered) {
      return rms->momentum != 0.0f ? with.template operator()<true, true>()
                                   : with.template operator()<true, false>();
    }
    return rms->momentum != 0.0f ? with.template operator()<false, true>()
                                 : with.template operator()<false, false>();
  }
  if (const auto* adagrad = std::get_if<AdagradRule>(&options))
    return use(Adagrad{.epsilon = adagrad->epsilon});
  if (const auto* adam = std::get_if<AdamRule>(&options))
    return use(Adam{.beta_1 = adam->beta_1, .beta_2 = adam->beta_2, .epsilon = adam->epsilon});
  if (const auto* lion = std::get_if<LionRule>(&options))
    return use(Lion{.beta_1 = lion->beta_1, .beta_2 = lion->beta_2});
  if (const auto* lamb = std::get_if<LambRule>(&options))
    return use(LambDirection{lamb->beta_1, lamb->beta_2, lamb->epsilon});
  // For the first part; a caller with several parts creates a TrustRatio for each.
  if (const auto* trust = std::get_if<TrustRatioRule>(&options)) return use(TrustRatio{trust->squares});
  if (const auto* average = std::get_if<MovingAverageRule>(&options))
    return use(MovingAverage{average->momentum});
}

}  // namespace dtrain::math
