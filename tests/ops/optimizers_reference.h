// Computes the expected results of one step of each optimizer, by Keras's formulas for one element, in double
// precision.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "ops/fixture.h"

namespace dtrain::test::optimizers {

/// One element's weight and slots in double precision, updated by Keras's formulas.
struct Element {
  double w;
  std::array<double, 3> s{};
};

struct Case {
  const char* name;
  OptimizerRule rule;
  float rate;
  size_t slots;
  std::function<void(Element&, double)> reference;
  uint64_t slots_since = 0;
};

// Number of steps, including the current step; state_of() uses the same number.
inline constexpr int kSteps = 8;

inline constexpr math::Adafactor kAdafactor{
    .beta_2_decay = -0.8, .epsilon_1 = 1e-30f, .epsilon_2 = 1e-3f, .clip_threshold = 0.5f};

inline void move_slots_of_adam(Element& e, double g) {
  e.s[0] = 0.9 * e.s[0] + 0.1 * g;
  e.s[1] = 0.99 * e.s[1] + 0.01 * g * g;
}

/// Returns a case of Adam whose slots were created after `slots_since` steps. The bias corrections count only
/// the steps since then.
inline Case adam(const char* name, int slots_since) {
  return {.name = name,
          .rule = math::Adam{.beta_1 = 0.9, .beta_2 = 0.99, .epsilon = 1e-4f},
          .rate = 0.01f,
          .slots = 2,
          .reference =
              [slots_since](Element& e, double g) {
                const int steps = kSteps - slots_since;
                move_slots_of_adam(e, g);
                e.w -= 0.01 * std::sqrt(1 - std::pow(0.99, steps)) / (1 - std::pow(0.9, steps)) * e.s[0] /
                       (std::sqrt(e.s[1]) + 1e-4);
              },
          .slots_since = static_cast<uint64_t>(slots_since)};
}

/// Returns a case of Nadam whose slots were created after `slots_since` steps. The momenta count only the
/// steps since then.
inline Case nadam(const char* name, int slots_since) {
  return {.name = name,
          .rule = math::Nadam{.beta_1 = 0.9, .beta_2 = 0.99, .epsilon = 1e-4f},
          .rate = 0.01f,
          .slots = 2,
          .reference =
              [slots_since](Element& e, double g) {
                const int steps = kSteps - slots_since;
                const auto momentum = [](int step) { return 0.9 * (1 - 0.5 * std::pow(0.96, step)); };
                double product = 1;
                for (int step = 1; step <= steps; ++step) product *= momentum(step);
                const double now = momentum(steps), next = momentum(steps + 1);
                move_slots_of_adam(e, g);
                const double mean = next * e.s[0] / (1 - product * next) + (1 - now) * g / (1 - product);
                e.w -= 0.01 * mean / (std::sqrt(e.s[1] / (1 - std::pow(0.99, steps))) + 1e-4);
              },
          .slots_since = static_cast<uint64_t>(slots_since)};
}

/// Returns a case of LAMB. The direction is stored in the last slot.
inline Case lamb(const char* name, int slots_since) {
  return {.name = name,
          .rule = math::Lamb{.beta_1 = 0.9f, .beta_2 = 0.99f, .epsilon = 1e-4f},
          .rate = 5,
          .slots = 3,
          .reference =
              [slots_since](Element& e, double g) {
                const int steps = kSteps - slots_since;
                move_slots_of_adam(e, g);
                e.s[2] = e.s[0] / (1 - std::pow(0.9, steps)) /
                         (std::sqrt(e.s[1] / (1 - std::pow(0.99, steps))) + 1e-4);
              },
          .slots_since = static_cast<uint64_t>(slots_since)};
}

inline const std::vector<Case> kCases = {
    {.name = "sgd",
     .rule = math::Sgd{},
     .rate = 0.1f,
     .slots = 0,
     .reference = [](Element& e, double g) { e.w -= 0.1 * g; }},
    {.name = "momentum",
     .rule = math::Momentum{.momentum = 0.9f},
     .rate = 0.1f,
     .slots = 1,
     .reference =
         [](Element& e, double g) {
           e.s[0] = 0.9 * e.s[0] - 0.1 * g;
           e.w += e.s[0];
         }},
    {.name = "nesterov",
     .rule = math::Nesterov{.momentum = 0.9f},
     .rate = 0.1f,
     .slots = 1,
     .reference =
         [](Element& e, double g) {
           e.s[0] = 0.9 * e.s[0] - 0.1 * g;
           e.w += 0.9 * e.s[0] - 0.1 * g;
         }},
    {.name = "rmsprop",
     .rule = math::Rmsprop<false, false>{.rho = 0.9f, .momentum = 0, .epsilon = 1e-4f},
     .rate = 0.01f,
     .slots = 1,
     .reference =
         [](Element& e, double g) {
           e.s[0] = 0.9 * e.s[0] + 0.1 * g * g;
           e.w -= 0.01 * g / std::sqrt(e.s[0] + 1e-4);
         }},
    {.name = "rmsprop with momentum",
     .rule = math::Rmsprop<false, true>{.rho = 0.9f, .momentum = 0.5f, .epsilon = 1e-4f},
     .rate = 0.01f,
     .slots = 2,
     .reference =
         [](Element& e, double g) {
           e.s[0] = 0.9 * e.s[0] + 0.1 * g * g;
           e.s[1] = 0.5 * e.s[1] + 0.01 * g / std::sqrt(e.s[0] + 1e-4);
           e.w -= e.s[1];
         }},
    {.name = "centered rmsprop with momentum",
     .rule = math::Rmsprop<true, true>{.rho = 0.9f, .momentum = 0.5f, .epsilon = 1e-2f},
     .rate = 0.01f,
     .slots = 3,
     .reference =
         [](Element& e, double g) {
           e.s[0] = 0.9 * e.s[0] + 0.1 * g * g;
           e.s[1] = 0.9 * e.s[1] + 0.1 * g;
           e.s[2] = 0.5 * e.s[2] + 0.01 * g / std::sqrt(e.s[0] - e.s[1] * e.s[1] + 1e-2);
           e.w -= e.s[2];
         }},
    {.name = "centered rmsprop",
     .rule = math::Rmsprop<true, false>{.rho = 0.9f, .momentum = 0, .epsilon = 1e-2f},
     .rate = 0.01f,
     .slots = 2,
     .reference =
         [](Element& e, double g) {
           e.s[0] = 0.9 * e.s[0] + 0.1 * g * g;
           e.s[1] = 0.9 * e.s[1] + 0.1 * g;
           e.w -= 0.01 * g / std::sqrt(e.s[0] - e.s[1] * e.s[1] + 1e-2);
         }},
    {.name = "adagrad",
     .rule = math::Adagrad{.epsilon = 1e-4f},
     .rate = 0.1f,
     .slots = 1,
     .reference =
         [](Element& e, double g) {
           e.s[0] += g * g;
           e.w -= 0.1 * g / std::sqrt(e.s[0] + 1e-4);
         }},
    adam("adam", 0),
    adam("adam whose slots began with step 5", 5),
    nadam("nadam", 0),
    nadam("nadam whose slots began with step 5", 5),
    {.name = "adamax",
     .rule = math::Adamax{.beta_1 = 0.9, .beta_2 = 0.5f, .epsilon = 1e-4f},
     .rate = 0.01f,
     .slots = 2,
     .reference =
         [](Element& e, double g) {
           e.s[0] = 0.9 * e.s[0] + 0.1 * g;
           e.s[1] = std::max(0.5 * e.s[1], std::abs(g));
           e.w -= 0.01 / (1 - std::pow(0.9, kSteps)) * e.s[0] / (e.s[1] + 1e-4);
         }},
    {.name = "adadelta",
     .rule = math::Adadelta{.rho = 0.9f, .epsilon = 1e-4f},
     .rate = 0.5f,
     .slots = 2,
     .reference =
         [](Element& e, double g) {
           e.s[0] = 0.9 * e.s[0] + 0.1 * g * g;
           const double step = std::sqrt(e.s[1] + 1e-4) * g / std::sqrt(e.s[0] + 1e-4);
           e.s[1] = 0.9 * e.s[1] + 0.1 * step * step;
           e.w -= 0.5 * step;
         }},
    {.name = "lion",
     .rule = math::Lion{.beta_1 = 0.9f, .beta_2 = 0.99f},
     .rate = 0.01f,
     .slots = 1,
     .reference =
         [](Element& e, double g) {
           const double direction = 0.9 * e.s[0] + 0.1 * g;
           e.w -= 0.01 * static_cast<double>((direction > 0) - (direction < 0));
           e.s[0] = 0.99 * e.s[0] + 0.01 * g;
         }},
    lamb("lamb's direction", 0),
    lamb("lamb's direction, whose slots began with step 5", 5),
    {.name = "adafactor's direction of weights with one axis",
     .rule = kAdafactor,
     .rate = 0.01f,
     .slots = 2,
     .reference =
         [](Element& e, double g) {
           const double kept = 1 - std::pow(kSteps, -0.8);
           e.s[0] = kept * e.s[0] + (1 - kept) * g * g;
           e.s[1] = g / std::sqrt(e.s[0]);
         }},
    {.name = "moving average",
     .rule = math::MovingAverage{.momentum = 0.99f},
     .rate = 5,
     .slots = 0,
     .reference = [](Element& e, double g) { e.w = 0.99 * e.w + 0.01 * g; }},
};

}  // namespace dtrain::test::optimizers
