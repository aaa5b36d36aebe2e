// Compares recurrent layers with a plain loop over the steps in double precision. Their gradients are
// compared with finite differences of this loop.
#include "ops/recurrence.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "ops/fixture.h"
#include "ops/recurrence_reference.h"

namespace dtrain {
using namespace test;
using namespace test::recurrence;

namespace {

using Kind = RecurrenceSpec::Kind;

RecurrenceSpec spec_of(Kind kind, int64_t batch, int64_t steps, int64_t inputs, int64_t units) {
  return {.kind = kind, .batch = batch, .steps = steps, .inputs = inputs, .units = units};
}

std::vector<RecurrenceCase> recurrence_cases() {
  const auto changed = [](RecurrenceSpec spec, const std::function<void(RecurrenceSpec&)>& change) {
    change(spec);
    return spec;
  };
  const RecurrenceSpec lstm = spec_of(Kind::lstm, 3, 5, 3, 4), gru = spec_of(Kind::gru, 3, 5, 3, 4),
                       simple = spec_of(Kind::simple, 3, 5, 3, 4);
  std::vector<RecurrenceCase> cases = {
      {"lstm", lstm},
      {"lstm, sequences", changed(lstm, [](auto& s) { s.return_sequences = true; }), true, true},
      {"lstm, backwards, no bias", changed(lstm, [](auto& s) { s.go_backwards = true, s.bias = false; })},
      {"lstm, other activations", changed(lstm,
                                          [](auto& s) {
                                            s.activation = {.kind = Activation::silu};
                                            s.recurrent_activation = {.kind = Activation::softplus};
                                          })},
      {"lstm, one of each", spec_of(Kind::lstm, 1, 1, 1, 1), true},
      {"gru", gru},
      {"gru, sequences", changed(gru, [](auto& s) { s.return_sequences = true; }), true, true},
      {"gru, backwards, no bias", changed(gru, [](auto& s) { s.go_backwards = true, s.bias = false; })},
      {"gru, other activations", changed(gru,
                                         [](auto& s) {
                                           s.activation = {.kind = Activation::silu};
                                           s.recurrent_activation = {.kind = Activation::tanh};
                                         })},
      {"gru, reset before", changed(gru, [](auto& s) { s.reset_after = false; })},
      {"gru, reset before, sequences",
       changed(gru,
               [](auto& s) {
                 s.reset_after = false;
                 s.return_sequences = true, s.go_backwards = true;
               }),
       true, true},
      {"gru, reset before, other activations, no bias", changed(gru,
                                                                [](auto& s) {
                                                                  s.reset_after = false, s.bias = false;
                                                                  s.activation = {.kind =
                                                                                      Activation::softplus};
                                                                })},
      {"simple", simple},
      {"simple, sequences", changed(simple, [](auto& s) { s.return_sequences = true; }), true, true},
      {"simple, backwards, silu", changed(simple,
                                          [](auto& s) {
                                            s.go_backwards = true, s.bias = false;
                                            s.activation = {.kind = Activation::silu};
                                          })},
  };
  for (const Kind kind : {Kind::lstm, Kind::gru, Kind::simple})
    for (const bool sequences : {false, true})
      for (const bool backwards : {false, true}) {
        RecurrenceSpec spec = spec_of(kind, 7, 6, 3, 4);
        spec.masked = true;
        spec.return_sequences = sequences;
        spec.go_backwards = backwards;
        const std::string name = "masked " + std::to_string(static_cast<int>(kind)) +
                                 (sequences ? ", sequences" : "") + (backwards ? ", backwards" : "");
        cases.push_back({name, spec, sequences != backwards});
        spec.reset_after = false;
        if (kind == Kind::gru) cases.push_back({name + ", reset before", spec, true});
      }
  for (const Kind kind : {Kind::lstm, Kind::gru, Kind::simple})
    for (const bool masked : {false, true})
      for (const bool has_initial : {false, true}) {
        RecurrenceSpec spec = spec_of(kind, 7, 6, 3, 5);
        spec.has_state_factors = true;
        spec.masked = masked;
        spec.return_sequences = has_initial;
        const std::string name = "state factors " + std::to_string(static_cast<int>(kind)) +
                                 (masked ? ", masked" : "") + (has_initial ? ", initial" : "");
        cases.push_back({name, spec, has_initial, masked});
        spec.reset_after = false;
        if (kind == Kind::gru) cases.push_back({name + ", reset before", spec, has_initial, masked});
      }
  // The case is so large that the CPU divides the steps into several parts.
  for (const Kind kind : {Kind::lstm, Kind::gru, Kind::simple}) {
    RecurrenceSpec large = spec_of(kind, 67, 17, 9, 20);
    if (kind == Kind::simple) large.inputs = 300;
    large.return_sequences = true;
    cases.push_back({"large " + std::to_string(static_cast<int>(kind)), large, true, true});
    large.reset_after = false;
    if (kind == Kind::gru) cases.push_back({"large gru, reset before", large, true});
    large.has_state_factors = true;
    if (kind != Kind::simple)
      cases.push_back({"large, state factors " + std::to_string(static_cast<int>(kind)), large, true, true});
  }
  return cases;
}

/// Checks the elements whose expected value is known, that is, not NaN.
void check_known(const Floats& found, const Doubles& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  Floats known;
  Doubles of_known;
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK(std::isfinite(found[i]));
    if (std::isnan(expected[i])) continue;
    known.push_back(found[i]);
    of_known.push_back(expected[i]);
  }
  CHECK(!known.empty());
  check_close(known, of_known, tolerance);
}

/// A call on a device: the case's inputs, and all results by name.
class RecurrenceRun {
 public:
  RecurrenceRun(const RecurrenceCase& c, const Expected& expected, const Device& device, bool training)
      : case_(c), device_(device), expected_(expected) {
    RecurrenceSpec spec = c.spec;
    spec.training = training;
    operation_ = device.ops().recurrence(spec);
    for (const auto& [name, values] : expected.in)
      if (name == "bias") {
        bias_ = device.array(values);
      } else {
        typed_[name] = device.typed(values);
      }
    if (spec.masked) mask_ = device.array(mask_of(spec));
    scratch_ = device.memory(operation_->scratch_bytes());
    saved_ = device.memory(operation_->saved_bytes());
  }

  std::map<std::string, Floats> forward() {
    std::map<std::string, TypedArray> out;
    for (const auto& [name, values] : expected_.out) out[name] = device_.typed(values.size());
    operation_->forward({.src = get("src"),
                         .kernel = get("kernel"),
                         .recurrent_kernel = get("recurrent_kernel"),
                         .bias = case_.spec.bias ? bias_.data() : nullptr,
                         .input_factors = get("input_factors"),
                         .state_factors = get("state_factors"),
                         .mask = case_.spec.masked ? mask_.data() : nullptr,
                         .initial_state = get("initial_state"),
                         .initial_cell = get("initial_cell"),
                         .dst = out["dst"].data(),
                         .last_state = out["last_state"].data(),
                         .last_cell = case_.spec.has_cell() ? out["last_cell"].data() : nullptr,
                         .saved = saved_.data(),
                         .scratch = scratch_.data()});
    std::map<std::string, Floats> read;
    for (const std::string& name : outputs_of(case_)) read[name] = out[name].read();
    return read;
  }

  std::map<std::string, Floats> backward() {
    std::map<std::string, TypedArray> typed, diff_out;
    std::map<std::string, Array<float>> floats;
    for (const auto& [name, values] : expected_.diff_in) {
      if (name == "src" || name.starts_with("initial")) {
        typed[name] = device_.typed(values.size());
      } else {
        floats[name] = device_.floats(values.size());
      }
    }
    for (const auto& [name, values] : expected_.diff_out) diff_out[name] = device_.typed(values);
    const auto result = [&](const char* name) -> void* {
      return typed.contains(name) ? typed[name].data() : nullptr;
    };
    const auto parameter = [&](const char* name) -> float* {
      return floats.contains(name) ? floats[name].data() : nullptr;
    };
    operation_->backward({.src = get("src"),
                          .kernel = get("kernel"),
                          .recurrent_kernel = get("recurrent_kernel"),
                          .input_factors = get("input_factors"),
                          .state_factors = get("state_factors"),
                          .mask = case_.spec.masked ? mask_.data() : nullptr,
                          .diff_dst = diff_out["dst"].data(),
                          .diff_last_state = diff_out["last_state"].data(),
                          .diff_last_cell = case_.spec.has_cell() ? diff_out["last_cell"].data() : nullptr,
                          .diff_src = result("src"),
                          .diff_initial_state = result("initial_state"),
                          .diff_initial_cell = result("initial_cell"),
                          .diff_kernel = parameter("kernel"),
                          .diff_recurrent_kernel = parameter("recurrent_kernel"),
                          .diff_bias = parameter("bias"),
                          .saved = saved_.data(),
                          .scratch = scratch_.data()});
    std::map<std::string, Floats> read;
    for (const auto& [name, array] : typed) read[name] = array.read();
    for (const auto& [name, array] : floats) read[name] = array.read();
    return read;
  }

 private:
  const void* get(const std::string& name) const {
    const auto found = typed_.find(name);
    return found == typed_.end() ? nullptr : found->second.data();
  }

  const RecurrenceCase& case_;
  const Device& device_;
  const Expected& expected_;
  std::unique_ptr<Recurrence> operation_;
  std::map<std::string, TypedArray> typed_;
  Array<float> bias_, scratch_, saved_;
  Array<uint8_t> mask_;
};

void check_recurrence(const RecurrenceCase& c, const Device& device) {
  CAPTURE(c.name);
  // The expected results are computed from inputs that are rounded to the precision of the device. They are
  // computed once for each precision.
  static std::map<std::string, Expected> known;
  const std::string key =
      c.name + std::to_string(static_cast<int>(device.math.type)) + (device.math.tf32 ? " tf32" : "");
  if (!known.contains(key)) known[key] = expected_of(c, device);
  const Expected& expected = known[key];
  // The device rounds the state in each step, which the tolerance allows for.
  const double tolerance = device.math.tf32 ? 1e-2 : device.tolerance(1e-5, 8);
  for (const bool training : {true, false}) {
    CAPTURE(training);
    RecurrenceRun run(c, expected, device, training);
    const auto out = run.forward();
    for (const auto& [name, values] : expected.out) {
      CAPTURE(name);
      check_close(out.at(name), values, tolerance);
    }
    CHECK(run.forward() == out);
    if (!training) continue;
    const auto diffs = run.backward();
    // The gradient of a parameter is a sum of rounded terms, one for each row and step. The rounding errors
    // add up like the steps of a random walk.
    const auto terms = static_cast<double>(c.spec.batch * c.spec.steps);
    const int of_sums = std::max(32, static_cast<int>(2 * std::sqrt(terms)));
    for (const auto& [name, values] : expected.diff_in) {
      CAPTURE(name);
      const bool is_parameter = name.ends_with("kernel") || name == "bias";
      check_known(diffs.at(name), values,
                  device.math.tf32 ? 2e-2 : device.tolerance(5e-5, is_parameter ? of_sums : 32));
    }
    if (!device.is_gpu()) CHECK(run.backward() == diffs);
  }
}

}  // namespace

DEVICE_TEST_CASE("recurrent layers and their gradients match the reference") {
  for (const RecurrenceCase& c : recurrence_cases()) check_recurrence(c, device);
}

DEVICE_TEST_CASE("a recurrent layer skips gradients that are not needed") {
  const RecurrenceCase c{"frozen", spec_of(Kind::lstm, 2, 3, 2, 3)};
  RecurrenceSpec spec = c.spec;
  const int64_t columns = spec.gates() * spec.units;
  const TypedArray src = device.typed(device.random(spec.batch * spec.steps * spec.inputs, 1)),
                   kernel = device.typed(device.random(spec.inputs * columns, 2)),
                   recurrent = device.typed(device.random(spec.units * columns, 3)),
                   diff = device.typed(device.random(spec.batch * spec.units, 4)),
                   dst = device.typed(static_cast<size_t>(spec.batch * spec.units)),
                   diff_src = device.typed(static_cast<size_t>(spec.batch * spec.steps * spec.inputs));
  const Array<float> bias = device.array(device.random(columns, 5));
  const auto operation = device.ops().recurrence(spec);
  const Array<float> scratch = device.memory(operation->scratch_bytes()),
                     saved = device.memory(operation->saved_bytes());
  operation->forward({.src = src.data(),
                      .kernel = kernel.data(),
                      .recurrent_kernel = recurrent.data(),
                      .bias = bias.data(),
                      .dst = dst.data(),
                      .saved = saved.data(),
                      .scratch = scratch.data()});
  Recurrence::BackwardArguments args{.src = src.data(),
                                     .kernel = kernel.data(),
                                     .recurrent_kernel = recurrent.data(),
                                     .diff_dst = diff.data(),
                                     .diff_src = diff_src.data(),
                                     .saved = saved.data(),
                                     .scratch = scratch.data()};
  const Array<float> of_kernel = device.floats(static_cast<size_t>(spec.inputs * columns)),
                     of_recurrent = device.floats(static_cast<size_t>(spec.units * columns)),
                     of_bias = device.floats(static_cast<size_t>(columns));
  args.diff_kernel = of_kernel.data(), args.diff_recurrent_kernel = of_recurrent.data();
  args.diff_bias = of_bias.data();
  operation->backward(args);
  const Floats with_weights = diff_src.read(), of_weights = of_kernel.read();
  CHECK(std::isfinite(with_weights[0]));
  args.diff_kernel = args.diff_recurrent_kernel = args.diff_bias = nullptr;
  operation->backward(args);
  CHECK(diff_src.read() == with_weights);
  args.diff_kernel = of_kernel.data(), args.diff_recurrent_kernel = of_recurrent.data();
  args.diff_bias = of_bias.data(), args.diff_src = nullptr;
  operation->backward(args);
  CHECK(of_kernel.read() == of_weights);
}

}  // namespace dtrain
