#include <array>
#include <functional>

#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

/// One element's weight and slots in double precision, and the step that its gradient makes; Keras's
/// formulas.
struct Element {
  double w;
  std::array<double, 3> s{};
};

struct Case {
  const char* name;
  decltype(OptimizerStep::rule) rule;
  size_t slots;
  std::function<void(Element&, double)> reference;
};

const std::vector<Case> kCases = {
    {"sgd", SgdStep{0.1f, 0, false}, 0, [](Element& e, double g) { e.w -= 0.1 * g; }},
    {"momentum", SgdStep{0.1f, 0.9f, false}, 1,
     [](Element& e, double g) {
       e.s[0] = 0.9 * e.s[0] - 0.1 * g;
       e.w += e.s[0];
     }},
    {"nesterov", SgdStep{0.1f, 0.9f, true}, 1,
     [](Element& e, double g) {
       e.s[0] = 0.9 * e.s[0] - 0.1 * g;
       e.w += 0.9 * e.s[0] - 0.1 * g;
     }},
    {"rmsprop", RmspropStep{0.01f, 0.9f, 0, 1e-4f, false}, 1,
     [](Element& e, double g) {
       e.s[0] = 0.9 * e.s[0] + 0.1 * g * g;
       e.w -= 0.01 * g / std::sqrt(e.s[0] + 1e-4);
     }},
    {"rmsprop with momentum", RmspropStep{0.01f, 0.9f, 0.5f, 1e-4f, false}, 2,
     [](Element& e, double g) {
       e.s[0] = 0.9 * e.s[0] + 0.1 * g * g;
       e.s[1] = 0.5 * e.s[1] + 0.01 * g / std::sqrt(e.s[0] + 1e-4);
       e.w -= e.s[1];
     }},
    {"centered rmsprop with momentum", RmspropStep{0.01f, 0.9f, 0.5f, 1e-2f, true}, 3,
     [](Element& e, double g) {
       e.s[0] = 0.9 * e.s[0] + 0.1 * g * g;
       e.s[1] = 0.9 * e.s[1] + 0.1 * g;
       e.s[2] = 0.5 * e.s[2] + 0.01 * g / std::sqrt(e.s[0] - e.s[1] * e.s[1] + 1e-2);
       e.w -= e.s[2];
     }},
    {"centered rmsprop", RmspropStep{0.01f, 0.9f, 0, 1e-2f, true}, 2,
     [](Element& e, double g) {
       e.s[0] = 0.9 * e.s[0] + 0.1 * g * g;
       e.s[1] = 0.9 * e.s[1] + 0.1 * g;
       e.w -= 0.01 * g / std::sqrt(e.s[0] - e.s[1] * e.s[1] + 1e-2);
     }},
    {"adagrad", AdagradStep{0.1f, 1e-4f}, 1,
     [](Element& e, double g) {
       e.s[0] += g * g;
       e.w -= 0.1 * g / std::sqrt(e.s[0] + 1e-4);
     }},
    {"adam", AdamStep{0.01f, 0.9f, 0.99f, 1e-4f}, 2,
     [](Element& e, double g) {
       e.s[0] = 0.9 * e.s[0] + 0.1 * g;
       e.s[1] = 0.99 * e.s[1] + 0.01 * g * g;
       e.w -= 0.01 * e.s[0] / (std::sqrt(e.s[1]) + 1e-4);
     }},
    {"moving average", MovingAverageStep{0.99f}, 0,
     [](Element& e, double g) { e.w = 0.99 * e.w + 0.01 * g; }},
};

}  // namespace

TEST_CASE("optimizer steps") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const Case& optimizer : kCases) {
      CAPTURE(optimizer.name);
      const bool average = std::holds_alternative<MovingAverageStep>(optimizer.rule);
      const OptimizerStep step{optimizer.rule, average ? 1.0f : 0.5f, average ? 0.0f : 0.001f};
      for (const int64_t n : {1, 37, 20011}) {
        Floats weights = random_floats(n, 1);
        std::array<Floats, 3> slots{Floats(weights.size()), Floats(weights.size()), Floats(weights.size())};
        std::vector<float*> pointers;
        for (size_t s = 0; s < optimizer.slots; ++s) pointers.push_back(slots[s].data());
        std::vector<Element> elements(weights.size());
        for (size_t i = 0; i < weights.size(); ++i) elements[i].w = static_cast<double>(weights[i]);
        for (uint64_t t = 0; t < 3; ++t) {
          const Floats gradient = random_floats(n, 10 + t);
          ops.update(step, weights.data(), gradient.data(), pointers, n);
          for (size_t i = 0; i < elements.size(); ++i) {
            elements[i].w -= static_cast<double>(step.decay) * elements[i].w;
            optimizer.reference(elements[i],
                                static_cast<double>(step.gradient_scale) * static_cast<double>(gradient[i]));
          }
        }
        Doubles expected(weights.size());
        for (size_t i = 0; i < elements.size(); ++i) expected[i] = elements[i].w;
        check_close(weights, expected, 2e-6);
        for (size_t s = 0; s < optimizer.slots; ++s) {
          for (size_t i = 0; i < elements.size(); ++i) expected[i] = elements[i].s[s];
          check_close(slots[s], expected, 2e-6);
        }
      }
    }
  });
}

TEST_CASE("sums of squares are the same bits each time") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const int64_t n : {0, 1, 1000, 100003}) {
      const Floats values = random_floats(n, 1);
      double expected = 0;
      for (const float value : values) expected += static_cast<double>(value) * static_cast<double>(value);
      const double found = ops.sum_of_squares(values.data(), n);
      CHECK(found == doctest::Approx(expected).epsilon(1e-12));
      for (int i = 0; i < 5; ++i) CHECK(ops.sum_of_squares(values.data(), n) == found);
    }
  });
}

}  // namespace dtrain::test
