// Operators for recurrent layers. Only default activations and one direction are supported.
#include <cmath>

#include "interop/onnx/operators.h"

namespace dtrain {

namespace {

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

/// Computes the pre-activations of the gates for one sequence and one step: two matrix products and the
/// biases.
class GateSums {
 public:
  explicit GateSums(const OnnxCall& call)
      : x_(call.input(0)),
        kernel_(call.input(1)),
        recurrent_(call.input(2)),
        bias_(call.has_input(3) ? &call.input(3) : nullptr),
        columns_(static_cast<size_t>(kernel_.shape[1])),
        inputs_(static_cast<size_t>(kernel_.shape[2])),
        units_(static_cast<size_t>(recurrent_.shape[2])) {}

  size_t units() const { return units_; }
  /// Returns the product of the inputs and one column of the weights, plus the bias. `row` is the row of X
  /// for the sequence and step.
  double of_inputs(size_t row, size_t column) const {
    double sum = bias_ ? static_cast<double>(bias_->values[column]) : 0;
    for (size_t i = 0; i < inputs_; ++i)
      sum += static_cast<double>(x_.values[row * inputs_ + i]) *
             static_cast<double>(kernel_.values[column * inputs_ + i]);
    return sum;
  }
  /// Returns the product of the state and one column of the recurrent weights, plus the bias.
  double of_state(const std::vector<double>& state, size_t column) const {
    double sum = bias_ ? static_cast<double>(bias_->values[columns_ + column]) : 0;
    for (size_t i = 0; i < units_; ++i)
      sum += state[i] * static_cast<double>(recurrent_.values[column * units_ + i]);
    return sum;
  }

 private:
  const OnnxArray &x_, &kernel_, &recurrent_;
  const OnnxArray* bias_;
  size_t columns_, inputs_, units_;
};

/// Calls step(sums, row, state, cell) for every step of every sequence. `step` must update `state` and
/// `cell`. Returns the operator's output Y, [steps, 1, batch, units].
template <class Step>
OnnxArray over_steps(const OnnxCall& call, Step&& step) {
  const GateSums sums(call);
  const Shape& shape = call.input(0).shape;
  const auto steps = static_cast<size_t>(shape[0]), batch = static_cast<size_t>(shape[1]);
  const bool reverse = call.text("direction", "forward") == "reverse";
  OnnxArray result(Shape{shape[0], 1, shape[1], static_cast<int64_t>(sums.units())});
  for (size_t b = 0; b < batch; ++b) {
    std::vector<double> state(sums.units()), cell(sums.units());
    for (size_t t = 0; t < steps; ++t) {
      const size_t row = (reverse ? steps - 1 - t : t) * batch + b;
      step(sums, row, state, cell);
      for (size_t j = 0; j < state.size(); ++j)
        result.values[row * state.size() + j] = static_cast<float>(state[j]);
    }
  }
  return result;
}

using State = std::vector<double>;

OnnxArray lstm(const OnnxCall& call) {
  return over_steps(call, [](const GateSums& sums, size_t row, State& state, State& cell) {
    State next(state.size());
    for (size_t j = 0; j < next.size(); ++j) {
      const auto sum = [&](size_t gate) {
        const size_t column = gate * next.size() + j;
        return sums.of_inputs(row, column) + sums.of_state(state, column);
      };
      cell[j] = logistic(sum(2)) * cell[j] + logistic(sum(0)) * std::tanh(sum(3));
      next[j] = logistic(sum(1)) * std::tanh(cell[j]);
    }
    state = next;
  });
}

OnnxArray gru(const OnnxCall& call) {
  const bool linear_before_reset = call.integer("linear_before_reset", 0) != 0;
  return over_steps(call, [&](const GateSums& sums, size_t row, State& state, State&) {
    const size_t units = state.size();
    State update(units), reset(units), product(units);
    const auto gate = [&](size_t column) {
      return logistic(sums.of_inputs(row, column) + sums.of_state(state, column));
    };
    for (size_t j = 0; j < units; ++j) {
      update[j] = gate(j);
      reset[j] = gate(units + j);
      product[j] = reset[j] * state[j];
    }
    State next(units);
    for (size_t j = 0; j < units; ++j) {
      const size_t column = 2 * units + j;
      const double inner =
          linear_before_reset ? reset[j] * sums.of_state(state, column) : sums.of_state(product, column);
      next[j] = (1 - update[j]) * std::tanh(sums.of_inputs(row, column) + inner) + update[j] * state[j];
    }
    state = next;
  });
}

OnnxArray rnn(const OnnxCall& call) {
  return over_steps(call, [](const GateSums& sums, size_t row, State& state, State&) {
    State next(state.size());
    for (size_t j = 0; j < next.size(); ++j)
      next[j] = std::tanh(sums.of_inputs(row, j) + sums.of_state(state, j));
    state = next;
  });
}

}  // namespace

void add_onnx_recurrent(std::vector<std::pair<std::string, OnnxOperator>>& table) {
  table.emplace_back("LSTM", lstm);
  table.emplace_back("GRU", gru);
  table.emplace_back("RNN", rnn);
}

}  // namespace dtrain
