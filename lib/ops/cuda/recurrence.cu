// Recurrent layers on GPUs. Arrays of all steps are time-major: [steps, batch, ...]. One matrix product
// multiplies the inputs of all steps by the kernel. Each step then runs a matrix product of the state and the
// recurrent kernel, and a CUDA kernel that computes the gates. (A GRU whose reset gate comes before the
// product runs two matrix products and two CUDA kernels per step.) Matrix products need aligned matrices, so
// the state of the current step is also copied to a separate array.
#include <optional>

#include "device/cuda/current.h"
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/gate_products.h"
#include "ops/cuda/recurrence_steps.h"
#include "ops/recurrence.h"

namespace dtrain::cuda {
namespace {

using RecurrenceKind = RecurrenceSpec::Kind;

template <class T>
class CudaRecurrence final : public Recurrence {
 public:
  CudaRecurrence(CudaOps& ops, const RecurrenceSpec& spec)
      : ops_(ops),
        spec_(spec),
        rows_(spec.batch * spec.steps),
        n_(spec.batch * spec.units),
        columns_(spec.gates() * spec.units),
        state_columns_(resets_before() ? 2 * spec.units : columns_) {
    const int64_t units = spec.units, inputs = spec.inputs;
    saved_.gates = kept_.add(rows_ * columns_, sizeof(T));
    saved_.states = kept_.add((spec.steps + 1) * n_, sizeof(T));
    if (is_gru()) saved_.inner = kept_.add(spec.steps * n_, sizeof(T));
    if (spec.has_cell()) saved_.cells = kept_.add((spec.steps + 1) * n_, sizeof(float));

    work_.inputs = scratch_.add(rows_ * inputs, sizeof(T));
    work_.current = scratch_.add(spec.batch * columns_, sizeof(T));
    work_.current_inner = scratch_.add(n_, sizeof(T));
    work_.sums = scratch_.add(spec.batch * columns_, sizeof(float));
    work_.candidate_sums = scratch_.add(n_, sizeof(float));
    if (spec.masked) work_.first_valid = scratch_.add(spec.batch, sizeof(int64_t));
    if (resets_before()) {
      work_.state_kernel = scratch_.add(units * 2 * units, sizeof(T));
      work_.candidate_kernel = scratch_.add(units * units, sizeof(T));
    }
    by_inputs_ = ops.matmul({.m = rows_, .n = columns_, .k = inputs, .activation = {}});
    if (spec.has_state_factors) {
      by_gates_.emplace(ops, spec, state_columns_ / units, scratch_);
    } else {
      by_state_ = ops.matmul(
          {.m = spec.batch, .n = state_columns_, .k = units, .float32_result = true, .activation = {}});
    }
    if (resets_before())
      by_inner_ =
          ops.matmul({.m = spec.batch, .n = units, .k = units, .float32_result = true, .activation = {}});
    if (spec.training) prepare_backward();
  }

  size_t scratch_bytes() const override { return scratch_.bytes() + (spec_.training ? 0 : kept_.bytes()); }
  size_t saved_bytes() const override { return spec_.training ? kept_.bytes() : 0; }

  void forward(const ForwardArguments& args) override {
    auto* const scratch = static_cast<std::byte*>(args.scratch);
    auto* const kept = spec_.training ? static_cast<std::byte*>(args.saved) : scratch + scratch_.bytes();
    T *const inputs = at<T>(scratch, work_.inputs), *const gates = at<T>(kept, saved_.gates),
             *const states = at<T>(kept, saved_.states);
    float* const cells = spec_.has_cell() ? at<float>(kept, saved_.cells) : nullptr;
    transpose(args.src, args.input_factors, inputs, true);
    by_inputs_->run(inputs, args.kernel, nullptr, gates, nullptr);
    split_kernel(args.recurrent_kernel, scratch);
    find_first_valid(args.mask, scratch);
    each(n_,
         SetInitial<T>{static_cast<const T*>(args.initial_state), static_cast<const T*>(args.initial_cell),
                       states, at<T>(scratch, work_.current), cells});
    for (int64_t t = 0; t < spec_.steps; ++t) forward_step(args, kept, t);
    if (args.last_state) ops_.copy(args.last_state, states + spec_.steps * n_, n_);
    if (args.last_cell && cells)
      ops_.cast(args.last_cell, ops_.compute_type(), cells + spec_.steps * n_, DType::float32, n_);
  }

  void backward(const BackwardArguments& args) override {
    auto* const scratch = static_cast<std::byte*>(args.scratch);
    split_kernel(args.recurrent_kernel, scratch);
    find_first_valid(args.mask, scratch);
    if (spec_.has_cell()) {
      auto* const diff_cell = at<float>(scratch, work_.diff_cell);
      if (args.diff_last_cell) {
        ops_.cast(diff_cell, DType::float32, args.diff_last_cell, ops_.compute_type(), n_);
      } else {
        ops_.fill(diff_cell, 0, n_);
      }
    }
    for (int64_t t = spec_.steps; t-- > 0;) backward_step(args, t);
    if (args.diff_initial_state)
      each(n_, InitialGradient<T>{next_gradient(scratch), static_cast<T*>(args.diff_initial_state)});
    if (args.diff_initial_cell)
      ops_.cast(args.diff_initial_cell, ops_.compute_type(), at<float>(scratch, work_.diff_cell),
                DType::float32, n_);
    if (args.diff_recurrent_kernel) weight_gradients(args);
    if (!args.diff_src) return;
    T* const diff_inputs = at<T>(scratch, work_.inputs);
    by_kernel_->run(at<T>(scratch, work_.diff_gates), args.kernel, nullptr, diff_inputs, nullptr);
    transpose(diff_inputs, args.input_factors, args.diff_src, false);
  }

 private:
  bool is_gru() const { return spec_.kind == RecurrenceKind::gru; }
  /// Returns whether a part of the gradient of the state passes directly to the gradient of the previous
  /// state, that is, without a matrix product.
  bool has_direct() const { return is_gru() || spec_.masked; }
  bool resets_before() const { return is_gru() && !spec_.reset_after; }

  template <class Body>
  void each(int64_t n, const Body& body) {
    for_each<1>(ops_.context(), n, false, body);
  }

  void prepare_backward() {
    const int64_t units = spec_.units, inputs = spec_.inputs, batch = spec_.batch;
    work_.diff_gates = scratch_.add(rows_ * columns_, sizeof(T));
    if (is_gru()) work_.diff_state_gates = scratch_.add(rows_ * state_columns_, sizeof(T));
    if (has_direct()) work_.direct = scratch_.add(n_, sizeof(float));
    work_.product = scratch_.add(n_, sizeof(float));
    if (spec_.has_cell()) work_.diff_cell = scratch_.add(n_, sizeof(float));
    if (resets_before()) {
      work_.diff_candidate = scratch_.add(rows_ * units, sizeof(T));
      work_.diff_state_kernel = scratch_.add(units * 2 * units, sizeof(float));
      work_.diff_candidate_kernel = scratch_.add(units * units, sizeof(float));
    }
    const auto gradient = [&](int64_t m, int64_t n, int64_t k) {
      return ops_.matmul(
          {.m = m, .n = n, .k = k, .transpose_a = true, .float32_result = true, .activation = {}});
    };
    const auto back = [&](int64_t n, int64_t k) {
      return ops_.matmul(
          {.m = batch, .n = n, .k = k, .transpose_b = true, .float32_result = true, .activation = {}});
    };
    by_kernel_ = ops_.matmul({.m = rows_, .n = inputs, .k = columns_, .transpose_b = true, .activation = {}});
    of_kernel_ = gradient(inputs, columns_, rows_);
    if (!spec_.has_state_factors) {
      of_state_kernel_ = gradient(units, state_columns_, rows_);
      by_state_kernel_ = back(units, state_columns_);
    }
    if (!resets_before()) return;
    of_candidate_kernel_ = gradient(units, units, rows_);
    by_candidate_kernel_ = back(units, units);
  }

  void transpose(const void* src, const void* factors, void* dst, bool to_steps) {
    each(rows_ * spec_.inputs,
         TransposeSteps<T>{static_cast<const T*>(src), static_cast<const T*>(factors), static_cast<T*>(dst),
                           spec_.batch, spec_.steps, spec_.inputs, spec_.go_backwards, to_steps});
  }

  /// If the reset gate of a GRU comes before the matrix product, copies two parts of the recurrent kernel to
  /// separate matrices: the part of the update and reset gates, and the part of the candidate. Each step
  /// multiplies these parts in two separate matrix products. If the state has factors, also splits the kernel
  /// by gates.
  void split_kernel(const void* kernel, std::byte* scratch) {
    if (by_gates_) by_gates_->split_kernel(kernel, scratch);
    if (!resets_before()) return;
    const auto* const src = static_cast<const T*>(kernel);
    const int64_t units = spec_.units;
    each(units * 2 * units,
         CopyColumns<T>{src, at<T>(scratch, work_.state_kernel), 2 * units, columns_, 2 * units});
    each(units * units,
         CopyColumns<T>{src + 2 * units, at<T>(scratch, work_.candidate_kernel), units, columns_, units});
  }
  const void* state_kernel(const void* kernel, const std::byte* scratch) const {
    return resets_before() ? at<T>(scratch, work_.state_kernel) : kernel;
  }

  /// Prepares the calls of mask_of(). `mask` is null if no step is masked.
  void find_first_valid(const uint8_t* mask, std::byte* scratch) {
    if (!mask) return;
    each(spec_.batch,
         FindFirstValid{{mask, spec_.steps, 0, spec_.go_backwards}, at<int64_t>(scratch, work_.first_valid)});
  }
  PreparedStepMask mask_of(const uint8_t* mask, const void* scratch, int64_t step) const {
    if (!mask) return {};
    return {{mask, spec_.steps, step, spec_.go_backwards},
            at<int64_t>(static_cast<const std::byte*>(scratch), work_.first_valid)};
  }

  StateOutputs<T> outputs_of(const ForwardArguments& args, std::byte* kept, int64_t step) const {
    auto* const scratch = static_cast<std::byte*>(args.scratch);
    T* const states = at<T>(kept, saved_.states) + (step + 1) * n_;
    StateOutputs<T> out{states - n_, states,      at<T>(scratch, work_.current),
                        nullptr,     spec_.units, mask_of(args.mask, args.scratch, step)};
    if (spec_.return_sequences) {
      out.dst = static_cast<T*>(args.dst) + step * spec_.units;
      out.dst_stride = spec_.steps * spec_.units;
    } else if (step + 1 == spec_.steps) {
      out.dst = static_cast<T*>(args.dst);
    }
    return out;
  }

  void forward_step(const ForwardArguments& args, std::byte* kept, int64_t step) {
    auto* const scratch = static_cast<std::byte*>(args.scratch);
    float* const sums = at<float>(scratch, work_.sums);
    if (by_gates_) {
      by_gates_->forward(at<T>(kept, saved_.states) + step * n_, args.state_factors, sums, scratch);
    } else {
      by_state_->run(at<T>(scratch, work_.current), state_kernel(args.recurrent_kernel, scratch), nullptr,
                     sums, nullptr);
    }
    T* const gates = at<T>(kept, saved_.gates) + step * spec_.batch * columns_;
    const StateOutputs<T> out = outputs_of(args, kept, step);
    math::with_gate_activations(spec_.activation, spec_.recurrent_activation, [&](auto function, auto gate) {
      using F = decltype(function);
      using G = decltype(gate);
      if (spec_.kind == RecurrenceKind::lstm) {
        float* const cells = at<float>(kept, saved_.cells) + step * n_;
        each(n_, LstmForward<T, F, G>{function, gate, spec_.units, gates, sums, args.bias, cells, cells + n_,
                                      out});
      } else if (spec_.kind == RecurrenceKind::simple) {
        each(n_, SimpleForward<T, F>{function, spec_.units, gates, sums, args.bias, out});
      } else {
        float* const candidate_sums = at<float>(scratch, work_.candidate_sums);
        T* const current_inner = at<T>(scratch, work_.current_inner);
        GruForward<T, F, G> body{function,
                                 gate,
                                 spec_.units,
                                 spec_.reset_after,
                                 false,
                                 gates,
                                 at<T>(kept, saved_.inner) + step * n_,
                                 current_inner,
                                 sums,
                                 candidate_sums,
                                 args.bias,
                                 static_cast<const T*>(args.state_factors),
                                 out};
        each(n_, body);
        if (spec_.reset_after) return;
        by_inner_->run(current_inner, at<T>(scratch, work_.candidate_kernel), nullptr, candidate_sums,
                       nullptr);
        body.second = true;
        each(n_, body);
      }
    });
  }

  /// Returns the parts of the state's gradient that come from the next step.
  StateGradient<T> next_gradient(std::byte* scratch) const {
    return {at<float>(scratch, work_.product),
            has_direct() ? at<float>(scratch, work_.direct) : nullptr,
            nullptr,
            nullptr,
            spec_.units,
            {}};
  }

  StateGradient<T> gradient_of(const BackwardArguments& args, int64_t step) const {
    const bool is_last = step + 1 == spec_.steps;
    StateGradient<T> diff{nullptr, nullptr, nullptr, nullptr, spec_.units, {}};
    if (is_last) {
      diff.last = static_cast<const T*>(args.diff_last_state);
    } else {
      diff = next_gradient(static_cast<std::byte*>(args.scratch));
    }
    diff.mask = mask_of(args.mask, args.scratch, step);
    if (!args.diff_dst) return diff;
    if (spec_.return_sequences) {
      diff.dst = static_cast<const T*>(args.diff_dst) + step * spec_.units;
      diff.dst_stride = spec_.steps * spec_.units;
    } else if (is_last) {
      diff.dst = static_cast<const T*>(args.diff_dst);
    }
    return diff;
  }

  void backward_step(const BackwardArguments& args, int64_t step) {
    auto* const scratch = static_cast<std::byte*>(args.scratch);
    const auto* const kept = static_cast<const std::byte*>(args.saved);
    const int64_t first = step * spec_.batch * columns_;
    const T* const gates = at<T>(kept, saved_.gates) + first;
    T *const diff_gates = at<T>(scratch, work_.diff_gates) + first, *const current =
                                                                        at<T>(scratch, work_.current);
    const StateGradient<T> diff = gradient_of(args, step);
    float* const direct = has_direct() ? at<float>(scratch, work_.direct) : nullptr;
    math::with_gate_activations(spec_.activation, spec_.recurrent_activation, [&](auto function, auto gate) {
      using F = decltype(function);
      using G = decltype(gate);
      if (spec_.kind == RecurrenceKind::lstm) {
        const float* const cells = at<float>(kept, saved_.cells) + step * n_;
        each(n_, LstmBackward<T, F, G>{function, gate, spec_.units, gates, diff_gates, current, cells,
                                       cells + n_, at<float>(scratch, work_.diff_cell), direct, diff});
      } else if (spec_.kind == RecurrenceKind::simple) {
        each(n_, SimpleBackward<T, F>{function, spec_.units, gates, diff_gates, current, direct, diff});
      } else {
        float* const diff_inner = at<float>(scratch, work_.candidate_sums);
        T* const current_candidate = at<T>(scratch, work_.current_inner);
        GruBackward<T, F, G> body{
            function,
            gate,
            spec_.units,
            spec_.reset_after,
            false,
            gates,
            at<T>(kept, saved_.inner) + step * n_,
            at<T>(kept, saved_.states) + step * n_,
            diff_gates,
            at<T>(scratch, work_.diff_state_gates) + step * spec_.batch * state_columns_,
            current,
            resets_before() ? at<T>(scratch, work_.diff_candidate) + step * n_ : nullptr,
            current_candidate,
            diff_inner,
            static_cast<const T*>(args.state_factors),
            direct,
            diff};
        each(n_, body);
        if (spec_.reset_after) return;
        by_candidate_kernel_->run(current_candidate, at<T>(scratch, work_.candidate_kernel), nullptr,
                                  diff_inner, nullptr);
        body.second = true;
        each(n_, body);
      }
    });
    if (step == 0 && !args.diff_initial_state) return;
    float* const product = at<float>(scratch, work_.product);
    if (by_gates_) {
      by_gates_->backward(current, args.state_factors, product, scratch);
    } else {
      by_state_kernel_->run(current, state_kernel(args.recurrent_kernel, scratch), nullptr, product, nullptr);
    }
  }

  void weight_gradients(const BackwardArguments& args) {
    auto* const scratch = static_cast<std::byte*>(args.scratch);
    const auto* const kept = static_cast<const std::byte*>(args.saved);
    T *const inputs = at<T>(scratch, work_.inputs), *const diff_gates = at<T>(scratch, work_.diff_gates);
    const T* const diff_state_gates = is_gru() ? at<T>(scratch, work_.diff_state_gates) : diff_gates;
    transpose(args.src, args.input_factors, inputs, true);
    of_kernel_->run(inputs, diff_gates, nullptr, args.diff_kernel, nullptr);
    const T* const states = at<T>(kept, saved_.states);
    if (by_gates_) {
      by_gates_->kernel_gradient(states, diff_state_gates, args.state_factors, args.diff_recurrent_kernel,
                                 scratch);
    } else if (!resets_before()) {
      of_state_kernel_->run(states, diff_state_gates, nullptr, args.diff_recurrent_kernel, nullptr);
    } else {
      const int64_t units = spec_.units;
      float* const of_state = at<float>(scratch, work_.diff_state_kernel);
      of_state_kernel_->run(states, diff_state_gates, nullptr, of_state, nullptr);
      each(units * 2 * units,
           CopyColumns<float>{of_state, args.diff_recurrent_kernel, 2 * units, 2 * units, columns_});
    }
    if (resets_before()) {
      const int64_t units = spec_.units;
      float* const of_candidate = at<float>(scratch, work_.diff_candidate_kernel);
      of_candidate_kernel_->run(at<T>(kept, saved_.inner), at<T>(scratch, work_.diff_candidate), nullptr,
                                of_candidate, nullptr);
      each(units * units,
           CopyColumns<float>{of_candidate, args.diff_recurrent_kernel + 2 * units, units, units, columns_});
    }
    if (!args.diff_bias) return;
    ops_.column_sum(args.diff_bias, diff_gates, rows_, columns_);
    if (spec_.bias_rows() == 2) ops_.column_sum(args.diff_bias + columns_, diff_state_gates, rows_, columns_);
  }

  CudaOps& ops_;
  RecurrenceSpec spec_;
  // rows_ is batch * steps; n_ is the number of elements of a state; columns_ is the number of columns of the
  // kernels.
  int64_t rows_, n_, columns_;
  int64_t state_columns_;  // number of columns of the (first) matrix product with the state
  ArrayPlaces kept_, scratch_;
  struct {
    size_t gates = 0, states = 0, inner = 0, cells = 0;
  } saved_;  // offsets in kept_; arrays are [steps, batch, ...], but states and cells [steps + 1, batch, ...]
  struct {
    size_t inputs = 0, current = 0, current_inner = 0, sums = 0, candidate_sums = 0, first_valid = 0,
           state_kernel = 0, candidate_kernel = 0, diff_gates = 0, diff_state_gates = 0, direct = 0,
           product = 0, diff_cell = 0, diff_candidate = 0, diff_state_kernel = 0, diff_candidate_kernel = 0;
  } work_;                                   // offsets in scratch_
  std::optional<GateProducts<T>> by_gates_;  // used instead of by_state_ if the state has factors
  std::unique_ptr<Matmul> by_inputs_, by_state_, by_inner_;
  std::unique_ptr<Matmul> by_kernel_, of_kernel_, of_state_kernel_, by_state_kernel_, of_candidate_kernel_,
      by_candidate_kernel_;
};

}  // namespace

std::unique_ptr<Recurrence> CudaOps::recurrence(const RecurrenceSpec& spec) {
  const OnDevice on(context_.index());  // the calling thread may belong to another GPU
  std::unique_ptr<Recurrence> made;
  with_type(math_.type,
            [&](auto type) { made = std::make_unique<CudaRecurrence<decltype(type)>>(*this, spec); });
  return made;
}

}  // namespace dtrain::cuda
