// Computes the expected results of recurrent layers with a plain loop over the steps in double precision, by
// Keras's formulas. The gradients are finite differences of this loop.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ops/fixture.h"
#include "ops/recurrence.h"

namespace dtrain::test::recurrence {

inline double activated(const ActivationSpec& spec, double x) {
  switch (spec.kind) {
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::softplus:
      return std::log1p(std::exp(x));
    default:
      return x;
  }
}

/// The arrays of one call, by name. The names are those of the arguments of Recurrence.
using Arrays = std::map<std::string, Doubles>;

struct RecurrenceCase {
  std::string name;
  RecurrenceSpec spec;
  bool has_initial = false, has_factors = false;
};

/// Returns the mask of a case. There are five kinds of rows, in turn: without masked steps, with masked steps
/// at the end, at the beginning, in between, and with all steps masked.
inline std::vector<uint8_t> mask_of(const RecurrenceSpec& spec) {
  std::vector<uint8_t> mask;
  for (int64_t b = 0; b < spec.batch; ++b)
    for (int64_t t = 0; t < spec.steps; ++t) {
      const bool valid[] = {true, t<spec.steps / 2, t> 1, t % 2 == 1, false};
      mask.push_back(valid[b % 5]);
    }
  return mask;
}

/// Computes the forward call by Keras's formulas. Returns dst, last_state and last_cell.
inline Arrays expected_forward(const RecurrenceCase& c, const Arrays& in) {
  const RecurrenceSpec& s = c.spec;
  const auto units = static_cast<size_t>(s.units), inputs = static_cast<size_t>(s.inputs),
             steps = static_cast<size_t>(s.steps), columns = static_cast<size_t>(s.gates()) * units;
  const auto array = [&](const char* name) { return in.contains(name) ? in.at(name).data() : nullptr; };
  const double *const src = array("src"), *const kernel = array("kernel"), *const bias = array("bias"),
                      *const recurrent_kernel = array("recurrent_kernel"),
                      *const factors = array("input_factors"), *const initial_state = array("initial_state"),
                      *const initial_cell = array("initial_cell"),
                      *const state_factors = array("state_factors");
  const std::vector<uint8_t> mask = mask_of(s);
  Arrays out;
  const auto f = [&](double x) { return activated(s.activation, x); };
  const auto g = [&](double x) { return activated(s.recurrent_activation, x); };
  for (size_t b = 0; b < static_cast<size_t>(s.batch); ++b) {
    Doubles h(units), cell(units), output(units), all;
    for (size_t j = 0; c.has_initial && j < units; ++j) {
      h[j] = initial_state[b * units + j];
      if (s.has_cell()) cell[j] = initial_cell[b * units + j];
    }
    for (size_t t = 0; t < steps; ++t) {
      const size_t step = s.go_backwards ? steps - 1 - t : t;
      if (s.masked && !mask[b * steps + step]) {
        all.insert(all.end(), output.begin(), output.end());
        continue;
      }
      const auto input_sum = [&](size_t column) {
        double sum = bias ? bias[column] : 0;
        for (size_t i = 0; i < inputs; ++i)
          sum += src[(b * steps + step) * inputs + i] * kernel[i * columns + column] *
                 (factors ? factors[b * inputs + i] : 1);
        return sum;
      };
      const auto state_sum = [&](const Doubles& state, size_t column) {
        double sum = 0;
        for (size_t i = 0; i < units; ++i)
          sum += state[i] * recurrent_kernel[i * columns + column] *
                 (state_factors ? state_factors[b * columns + column / units * units + i] : 1);
        if (bias && s.bias_rows() == 2) sum += bias[columns + column];
        return sum;
      };
      Doubles next(units);
      if (s.kind == RecurrenceSpec::Kind::simple) {
        for (size_t j = 0; j < units; ++j) next[j] = f(input_sum(j) + state_sum(h, j));
      } else if (s.kind == RecurrenceSpec::Kind::lstm) {
        for (size_t j = 0; j < units; ++j) {
          const auto sum = [&](size_t gate) {
            return input_sum(gate * units + j) + state_sum(h, gate * units + j);
          };
          cell[j] = g(sum(1)) * cell[j] + g(sum(0)) * f(sum(2));
          next[j] = g(sum(3)) * f(cell[j]);
        }
      } else {
        Doubles z(units), r(units), reset(units);
        for (size_t j = 0; j < units; ++j) {
          z[j] = g(input_sum(j) + state_sum(h, j));
          r[j] = g(input_sum(units + j) + state_sum(h, units + j));
          reset[j] = r[j] * h[j];
        }
        for (size_t j = 0; j < units; ++j) {
          const size_t column = 2 * units + j;
          const double inner = s.reset_after ? r[j] * state_sum(h, column) : state_sum(reset, column);
          next[j] = z[j] * h[j] + (1 - z[j]) * f(input_sum(column) + inner);
        }
      }
      h = output = next;
      all.insert(all.end(), h.begin(), h.end());
    }
    Doubles& dst = out["dst"];
    if (s.return_sequences) {
      dst.insert(dst.end(), all.begin(), all.end());
    } else {
      dst.insert(dst.end(), output.begin(), output.end());
    }
    out["last_state"].insert(out["last_state"].end(), h.begin(), h.end());
    if (s.has_cell()) out["last_cell"].insert(out["last_cell"].end(), cell.begin(), cell.end());
  }
  return out;
}

/// Returns the names and sizes of the inputs of a case, in a fixed order.
inline std::vector<std::pair<std::string, int64_t>> inputs_of(const RecurrenceCase& c) {
  const RecurrenceSpec& s = c.spec;
  const int64_t columns = s.gates() * s.units;
  std::vector<std::pair<std::string, int64_t>> names = {{"src", s.batch * s.steps * s.inputs},
                                                        {"kernel", s.inputs * columns},
                                                        {"recurrent_kernel", s.units * columns}};
  if (s.bias) names.emplace_back("bias", s.bias_rows() * columns);
  if (c.has_initial) names.emplace_back("initial_state", s.batch * s.units);
  if (c.has_initial && s.has_cell()) names.emplace_back("initial_cell", s.batch * s.units);
  if (c.has_factors) names.emplace_back("input_factors", s.batch * s.inputs);
  if (s.has_state_factors) names.emplace_back("state_factors", s.batch * columns);
  return names;
}

inline std::vector<std::string> outputs_of(const RecurrenceCase& c) {
  std::vector<std::string> names = {"dst", "last_state"};
  if (c.spec.has_cell()) names.emplace_back("last_cell");
  return names;
}

/// Inputs, the outputs' gradients, and the expected results of forward and backward. At most about kChecked
/// elements of each gradient are known; the others are NaN.
struct Expected {
  std::map<std::string, Floats> in, diff_out;
  Arrays out, diff_in;
};
inline constexpr size_t kChecked = 12;

inline Expected expected_of(const RecurrenceCase& c, const Device& device) {
  Expected expected;
  Arrays in;
  uint64_t seed = 1;
  for (const auto& [name, size] : inputs_of(c)) {
    expected.in[name] = device.random(size, seed++, name == "src" || name.ends_with("factors") ? 1.0f : 0.5f);
    in[name] = doubles_of(expected.in[name]);
  }
  expected.out = expected_forward(c, in);
  for (const std::string& name : outputs_of(c))
    expected.diff_out[name] = device.random(static_cast<int64_t>(expected.out[name].size()), seed++);
  const auto loss = [&] {
    const Arrays out = expected_forward(c, in);
    double sum = 0;
    for (const std::string& name : outputs_of(c))
      for (size_t i = 0; i < out.at(name).size(); ++i)
        sum += out.at(name)[i] * static_cast<double>(expected.diff_out[name][i]);
    return sum;
  };
  for (const auto& [name, size] : inputs_of(c)) {
    if (name.ends_with("factors")) continue;
    Doubles& values = in[name];
    expected.diff_in[name].assign(values.size(), NAN);
    for (size_t i = 0; i < values.size(); i += values.size() / kChecked + 1) {
      constexpr double kStep = 1e-5;
      const double x = values[i];
      values[i] = x + kStep;
      const double above = loss();
      values[i] = x - kStep;
      expected.diff_in[name][i] = (above - loss()) / (2 * kStep);
      values[i] = x;
    }
  }
  return expected;
}

}  // namespace dtrain::test::recurrence
