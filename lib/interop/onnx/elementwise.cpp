// Elementwise operators. Binary operators broadcast their inputs.
#include <algorithm>
#include <cmath>

#include "interop/onnx/operators.h"

namespace dtrain {

namespace {

using Row = std::vector<std::pair<std::string, OnnxOperator>>;

/// Returns the strides for reading an array of shape `from` that is broadcast to shape `to`, one for each
/// axis of `to`. The stride is 0 for axes along which the array is repeated.
std::vector<int64_t> broadcast_steps(const Shape& from, const Shape& to) {
  std::vector<int64_t> steps(to.rank(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < from.rank(); ++i) {
    const int64_t extent = from[from.rank() - 1 - i];
    if (extent != 1) steps[to.rank() - 1 - i] = stride;
    stride *= extent;
  }
  return steps;
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape result = a.rank() >= b.rank() ? a : b;
  const Shape& other = a.rank() >= b.rank() ? b : a;
  for (size_t i = 0; i < other.rank(); ++i) {
    int64_t& extent = result[result.rank() - 1 - i];
    extent = std::max(extent, other[other.rank() - 1 - i]);
  }
  return result;
}

OnnxArray repeated(const OnnxArray& array, const Shape& to) {
  if (array.shape == to) return array;
  OnnxArray result(to);
  const std::vector<int64_t> steps = broadcast_steps(array.shape, to);
  std::vector<int64_t> at(to.rank(), 0);
  int64_t from = 0;
  for (float& value : result.values) {
    value = array.values[static_cast<size_t>(from)];
    for (size_t i = to.rank(); i-- > 0;) {
      from += steps[i];
      if (++at[i] < to[i]) break;
      from -= steps[i] * to[i];
      at[i] = 0;
    }
  }
  return result;
}

template <class Function>
OnnxOperator of_one(Function function) {
  return [function](const OnnxCall& call) {
    OnnxArray result = call.input(0);
    for (float& value : result.values) value = function(call, value);
    return result;
  };
}

template <class Function>
OnnxOperator of_two(Function function) {
  return [function](const OnnxCall& call) {
    const Shape shape = broadcast(call.input(0).shape, call.input(1).shape);
    OnnxArray result = repeated(call.input(0), shape);
    const OnnxArray other = repeated(call.input(1), shape);
    for (size_t i = 0; i < result.values.size(); ++i)
      result.values[i] = function(result.values[i], other.values[i]);
    return result;
  };
}

OnnxArray where(const OnnxCall& call) {
  const Shape shape = broadcast(call.input(0).shape, broadcast(call.input(1).shape, call.input(2).shape));
  const OnnxArray condition = repeated(call.input(0), shape), otherwise = repeated(call.input(2), shape);
  OnnxArray result = repeated(call.input(1), shape);
  for (size_t i = 0; i < result.values.size(); ++i)
    if (condition.values[i] == 0) result.values[i] = otherwise.values[i];
  return result;
}

float elu(float x, float alpha) {
  return x > 0 ? x : alpha * std::expm1(x);
}

}  // namespace

void add_onnx_elementwise(Row& table) {
  const auto plain = [&](const char* name, float (*function)(float)) {
    table.emplace_back(name, of_one([function](const OnnxCall&, float x) { return function(x); }));
  };
  plain("Relu", [](float x) { return x < 0 ? 0 : x; });
  plain("Tanh", [](float x) { return std::tanh(x); });
  plain("Sigmoid", [](float x) { return 1 / (1 + std::exp(-x)); });
  plain("Softplus", [](float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); });
  plain("Softsign", [](float x) { return x / (1 + std::abs(x)); });
  plain("Erf", [](float x) { return std::erf(x); });
  plain("Abs", [](float x) { return std::abs(x); });
  plain("Sqrt", [](float x) { return std::sqrt(x); });
  plain("Exp", [](float x) { return std::exp(x); });
  plain("Selu", [](float x) { return 1.05070102f * elu(x, 1.67326319f); });
  plain("Cast", [](float x) { return x; });
  plain("Identity", [](float x) { return x; });
  table.emplace_back("LeakyRelu", of_one([](const OnnxCall& call, float x) {
                       return x < 0 ? call.number("alpha", 0.01f) * x : x;
                     }));
  table.emplace_back("Elu",
                     of_one([](const OnnxCall& call, float x) { return elu(x, call.number("alpha", 1)); }));
  table.emplace_back("HardSigmoid", of_one([](const OnnxCall& call, float x) {
                       return std::clamp(call.number("alpha", 0.2f) * x + call.number("beta", 0.5f), 0.0f,
                                         1.0f);
                     }));
  table.emplace_back("Clip", of_one([](const OnnxCall& call, float x) {
                       if (call.has_input(1)) x = x < call.input(1).values[0] ? call.input(1).values[0] : x;
                       if (call.has_input(2)) x = x > call.input(2).values[0] ? call.input(2).values[0] : x;
                       return x;
                     }));
  table.emplace_back("Add", of_two([](float a, float b) { return a + b; }));
  table.emplace_back("Sub", of_two([](float a, float b) { return a - b; }));
  table.emplace_back("Mul", of_two([](float a, float b) { return a * b; }));
  table.emplace_back("Div", of_two([](float a, float b) { return a / b; }));
  table.emplace_back("Min", of_two([](float a, float b) { return a > b ? b : a; }));
  table.emplace_back("Max", of_two([](float a, float b) { return a < b ? b : a; }));
  table.emplace_back("PRelu", of_two([](float x, float slope) { return x < 0 ? slope * x : x; }));
  table.emplace_back("LessOrEqual", of_two([](float a, float b) { return a <= b ? 1.0f : 0.0f; }));
  table.emplace_back("Equal", of_two([](float a, float b) { return a == b ? 1.0f : 0.0f; }));
  table.emplace_back("Where", where);
}

}  // namespace dtrain
