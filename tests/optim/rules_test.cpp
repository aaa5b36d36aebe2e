// Compares the weights after some steps of each optimizer with Keras's rules in double precision.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "optim/optimizer.h"
#include "support/devices.h"
#include "support/kinds.h"

using namespace dtrain;

namespace {

constexpr int64_t kWeights = 37;
constexpr int kSteps = 5;
constexpr double kScale = 0.5;  // gradient scale, as computed by clipping

double gradient(int64_t i, int step) {
  return std::sin(static_cast<double>(i) * 1.7 + step * 0.9) * 2;
}

/// The update of one weight; state is initially zero.
using Rule = std::function<void(double& w, double g, int t, std::map<std::string, double>& state)>;

std::vector<double> expected_weights(const Rule& rule, double initial_accumulator) {
  std::vector<double> weights;
  for (int64_t i = 0; i < kWeights; ++i) {
    double w = 1 + 0.1 * static_cast<double>(i);
    std::map<std::string, double> state{{"accumulator", initial_accumulator}};
    for (int t = 1; t <= kSteps; ++t)
      rule(w, kScale * static_cast<double>(static_cast<float>(gradient(i, t))), t, state);
    weights.push_back(w);
  }
  return weights;
}

std::vector<float> trained_weights(const std::string& yaml) {
  const auto optimizer = test::parse_kind<Optimizer>(yaml);
  const auto device = test::cpu_device();

  std::vector<float> initial;
  for (int64_t i = 0; i < kWeights; ++i) initial.push_back(1 + 0.1f * static_cast<float>(i));
  const auto weights = device->array(initial);
  std::vector<test::Array<float>> slots;
  std::vector<float*> pointers;
  for (const auto& slot : optimizer->slots()) {
    slots.push_back(device->array(std::vector<float>(static_cast<size_t>(kWeights), slot.initial)));
    pointers.push_back(slots.back().data());
  }
  for (int t = 1; t <= kSteps; ++t) {
    std::vector<float> gradients;
    for (int64_t i = 0; i < kWeights; ++i) gradients.push_back(static_cast<float>(gradient(i, t)));
    const double rate = optimizer->learning_rate().at(t - 1, RunLength{}, Json());
    const auto state = device->array(std::vector<StepState>{
        {.now = optimizer->numbers(t - 1, rate), .gradient = {.gradient_scale = kScale}}});
    const auto own_gradients = device->array(gradients);
    device->ops().update(optimizer->rule(), {.state = state.data(),
                                             .weights = weights.data(),
                                             .gradient = own_gradients.data(),
                                             .slots = pointers,
                                             .n = kWeights});
  }
  return weights.read();
}

void check(const std::string& yaml, const Rule& rule, double initial_accumulator = 0) {
  CAPTURE(yaml);
  const auto expected = expected_weights(rule, initial_accumulator);
  const auto weights = trained_weights(yaml);
  for (size_t i = 0; i < weights.size(); ++i) {
    CAPTURE(i);
    CHECK(static_cast<double>(weights[i]) == doctest::Approx(expected[i]).epsilon(2e-6));
  }
}

}  // namespace

TEST_CASE("sgd follows Keras's rule, with momentum, Nesterov momentum and weight decay") {
  check("{sgd: {learning_rate: 0.1, weight_decay: 0.2}}", [](double& w, double g, int, auto&) {
    w -= 0.1 * 0.2 * w;
    w -= 0.1 * g;
  });
  check("{sgd: {learning_rate: 0.1, momentum: 0.9}}", [](double& w, double g, int, auto& state) {
    double& m = state["m"];
    m = 0.9 * m - 0.1 * g;
    w += m;
  });
  check("{sgd: {learning_rate: 0.1, momentum: 0.9, nesterov: true}}",
        [](double& w, double g, int, auto& state) {
          double& m = state["m"];
          m = 0.9 * m - 0.1 * g;
          w += 0.9 * m - 0.1 * g;
        });
}

TEST_CASE("rmsprop follows Keras's rule, centered and with momentum") {
  const auto rule = [](bool centered, double momentum) {
    return [=](double& w, double g, int, std::map<std::string, double>& state) {
      double &v = state["v"], &mean = state["mean"], &m = state["m"];
      v = 0.8 * v + 0.2 * g * g;
      mean = 0.8 * mean + 0.2 * g;
      m = momentum * m + 0.01 * g / std::sqrt(v - (centered ? mean * mean : 0) + 1e-3);
      w -= m;
    };
  };
  const std::string options = "learning_rate: 0.01, rho: 0.8, epsilon: 1e-3";
  check("{rmsprop: {" + options + "}}", rule(false, 0));
  check("{rmsprop: {" + options + ", centered: true}}", rule(true, 0));
  check("{rmsprop: {" + options + ", momentum: 0.9}}", rule(false, 0.9));
  check("{rmsprop: {" + options + ", centered: true, momentum: 0.9}}", rule(true, 0.9));
}

TEST_CASE("adagrad's accumulator begins at initial_accumulator_value") {
  check(
      "{adagrad: {learning_rate: 0.1, initial_accumulator_value: 0.3}}",
      [](double& w, double g, int, auto& state) {
        double& sum = state["accumulator"];
        sum += g * g;
        w -= 0.1 * g / std::sqrt(sum + 1e-7);
      },
      0.3);
}

TEST_CASE("adam and adamw follow Keras's rules with a schedule") {
  const auto rule = [](double decay) {
    return [=](double& w, double g, int t, std::map<std::string, double>& state) {
      const double rate = t <= 3 ? 0.1 : 0.01;
      double &m = state["m"], &v = state["v"];
      m += (g - m) * (1 - 0.9);
      v += (g * g - v) * (1 - 0.999);
      w -= rate * decay * w;
      w -= rate * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m / (std::sqrt(v) + 1e-7);
    };
  };
  const std::string options = "learning_rate: {piecewise_constant: {boundaries: [2], values: [0.1, 0.01]}}";
  check("{adam: {" + options + "}}", rule(0));
  check("{adamw: {" + options + "}}", rule(0.004));
}

TEST_CASE("adamax, nadam and adadelta follow Keras's rules") {
  check("{adamax: {learning_rate: 0.1, beta_2: 0.6, weight_decay: 0.2}}",
        [](double& w, double g, int t, auto& state) {
          double &m = state["m"], &u = state["u"];
          m += (g - m) * (1 - 0.9);
          u = std::max(0.6 * u, std::abs(g));
          w -= 0.1 * 0.2 * w;
          w -= 0.1 * m / ((1 - std::pow(0.9, t)) * (u + 1e-7));
        });
  check("{nadam: {learning_rate: 0.1}}", [](double& w, double g, int t, auto& state) {
    const auto momentum = [](int step) { return 0.9 * (1 - 0.5 * std::pow(0.96, step)); };
    double &m = state["m"], &v = state["v"];
    const double product = (t == 1 ? 1.0 : state["product"]) * momentum(t);
    state["product"] = product;
    m += (g - m) * (1 - 0.9);
    v += (g * g - v) * (1 - 0.999);
    const double mean =
        momentum(t + 1) * m / (1 - product * momentum(t + 1)) + (1 - momentum(t)) * g / (1 - product);
    w -= 0.1 * mean / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-7);
  });
  check("{adadelta: {learning_rate: 1, rho: 0.9, epsilon: 1e-3}}", [](double& w, double g, int, auto& state) {
    double &gradients = state["gradients"], &steps = state["steps"];
    gradients = 0.9 * gradients + 0.1 * g * g;
    const double step = std::sqrt(steps + 1e-3) / std::sqrt(gradients + 1e-3) * g;
    steps = 0.9 * steps + 0.1 * step * step;
    w -= step;
  });
}

TEST_CASE("adafactor's steps are those of Keras 3.15") {
  const auto optimizer = test::parse_kind<Optimizer>("{adafactor: {learning_rate: 0.5, weight_decay: 0.1}}");
  const auto rule = std::get<math::Adafactor>(optimizer->rule());
  const auto device = test::cpu_device();
  Ops& ops = device->ops();
  struct Weight {
    int64_t matrices, rows, columns;  // `matrices` is 0 if the weight has one axis
    std::vector<float> initial;
    std::function<float(int64_t i, int step)> gradient;
    std::vector<double> expected;  // expected weights after three steps
  };
  const float kernel[] = {0.1f, -0.2f, 0.4f, 0.3f, 0.05f, -0.6f}, signs[] = {1, -1, 0.5f};
  const float bias[] = {0.2f, 0, -0.4f};
  std::vector<float> even;
  for (int i = 0; i < 12; ++i) even.push_back(static_cast<float>(-1 + i * (2 / 11.0)));
  const std::vector<Weight> weights{
      {1,
       2,
       3,
       {0.5f, -1.0f, 0.25f, 2.0f, 0.125f, -0.75f},
       [&](int64_t i, int step) { return kernel[i] * static_cast<float>(step + 1) * signs[i % 3]; },
       {-0.2756096124649048, -3.018059730529785, -1.0210751295089722, 0.23097848892211914, 0.4865054190158844,
        0.6583223342895508}},
      {0,
       1,
       3,
       {0.5f, -2.0f, 1.5f},
       [&](int64_t i, int step) { return bias[i] * static_cast<float>(step + 1); },
       {-2.3354713916778564, -1.7147499322891235, 4.0502214431762695}},
      {2,
       3,
       2,
       even,
       [](int64_t i, int step) { return static_cast<float>(std::sin(static_cast<double>(i + step))); },
       {-1.7818365097045898, -1.5513654947280884, -0.5516287088394165, 0.5816939473152161, 0.6092085838317871,
        -0.10463652014732361, -0.6743709444999695, -0.8114103078842163, 0.1380826085805893,
        1.3381459712982178, 1.6596448421478271, 1.1260851621627808}},
  };
  for (const Weight& weight : weights) {
    const auto n = static_cast<int64_t>(weight.initial.size());
    const auto values = device->array(weight.initial);
    const auto rows = device->array(std::vector<float>(static_cast<size_t>(n))),
               columns = device->array(std::vector<float>(static_cast<size_t>(n)));
    for (int t = 0; t < 3; ++t) {
      std::vector<float> gradients;
      for (int64_t i = 0; i < n; ++i) gradients.push_back(weight.gradient(i, t));
      const auto gradient = device->array(gradients);
      const auto state =
          device->array(std::vector<StepState>{{.now = optimizer->numbers(t, 0.5), .gradient = {}}});
      if (weight.matrices == 0) {
        const std::array<float*, 2> slots{rows.data(), gradient.data()};
        ops.update(rule, {.state = state.data(),
                          .weights = values.data(),
                          .gradient = gradient.data(),
                          .slots = slots,
                          .n = n});
      } else {
        ops.find_factored_direction(rule, {.state = state.data(),
                                           .weights = values.data(),
                                           .gradient = gradient.data(),
                                           .row_means = rows.data(),
                                           .column_means = columns.data(),
                                           .matrices = weight.matrices,
                                           .rows = weight.rows,
                                           .columns = weight.columns});
      }
      const auto squares = device->array(std::vector<double>(2));
      ops.sum_of_squares(values.data(), squares.data(), n);
      ops.sum_of_squares(gradient.data(), squares.data() + 1, n);
      const ParameterPart part{.n = n, .elements = n, .learning_rate_factor = 1};
      ops.apply_directions(rule.direction_rule(), {&part, 1}, squares.data(),
                           {.state = state.data(),
                            .weights = values.data(),
                            .gradient = gradient.data(),
                            .slots = {},
                            .n = n});
    }
    const std::vector<float> found = values.read();
    for (size_t i = 0; i < found.size(); ++i) {
      CAPTURE(i);
      CHECK(static_cast<double>(found[i]) == doctest::Approx(weight.expected[i]).epsilon(1e-5));
    }
  }
}
