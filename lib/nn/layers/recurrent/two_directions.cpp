#include "nn/layers/recurrent/two_directions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nn/layers/array_offsets.h"
#include "nn/layers/common.h"

namespace dtrain {
namespace {

/// One direction, with the offsets of its arrays.
struct OneDirection : PreparedDirection {
  // Arguments for the direction's layer. This is a member, so that calls do not allocate memory.
  LayerArguments args = {};
  size_t saved = 0;   // offset of the layer's saved memory
  size_t output = 0;  // offset of the layer's output in scratch memory, if the output is reversed
  // Offset of the layer's output with the steps in the order of the input. The output is in saved memory if
  // backward reads it, and in scratch memory otherwise.
  size_t ordered = 0;
  size_t gradient = 0;  // offset of the gradient of the output, in scratch memory
  // If the output is reversed: offset of its gradient with the steps in the order of processing.
  size_t reversed = 0;
};

class PreparedBidirectional : public PreparedLayer {
 public:
  PreparedBidirectional(const LayerRequest& request, MergeMode mode,
                        std::array<PreparedDirection, 2> directions, bool sequences)
      : ops_(request.ops),
        mode_(mode),
        steps_(sequences ? request.inputs[0].shape[0] : 1),
        batch_(request.batch),
        input_elements_(batch_elements(request, request.inputs[0].shape)),
        directions_{OneDirection{std::move(directions[0])}, OneDirection{std::move(directions[1])}},
        zeroes_masked_(request.is_masked(0) && sequences) {
    keeps_outputs_ = mode == MergeMode::mul && request.training;
    ArrayOffsets saved, scratch;
    size_t inner = 0;
    for (OneDirection& one : directions_) {
      allocate_arguments(one);
      const size_t bytes = bytes_of_output(one);
      one.saved = saved.add(one.layer->requirements().saved_bytes);
      one.output = scratch.add(bytes);
      // For MergeMode::mul, backward needs the outputs of both directions.
      one.ordered = (keeps_outputs_ ? saved : scratch).add(bytes);
      if (request.training) {
        one.gradient = scratch.add(bytes);
        one.reversed = scratch.add(bytes);
      }
      inner = std::max(inner, one.layer->requirements().scratch_bytes);
      requirements_.backward_reads_inputs |= one.layer->requirements().backward_reads_inputs;
    }
    if (request.training && request.input_needs_gradient[0])
      second_gradient_ = scratch.add(input_elements_, element_bytes());
    inner_ = scratch.add(inner);
    requirements_.saved_bytes = request.training ? saved.bytes() : 0;
    requirements_.scratch_bytes = scratch.bytes();
  }

  void forward(const LayerArguments& args) override {
    for (size_t d = 0; d < 2; ++d) {
      OneDirection& one = directions_[d];
      set_common(one, d, args);
      one.args.outputs[0] = output_of(d, args);
      one.layer->forward(one.args);
      void* const ordered = ordered_output(d, args);
      if (one.flips) flip(one, one.args.outputs[0], ordered);
      if (zeroes_masked_) ops_.apply_mask(ordered, args.mask(), ordered, rows(), one.units);
    }
    merge(args);
  }

  void backward(const LayerArguments& args) override {
    for (size_t d = 0; d < 2; ++d) {
      OneDirection& one = directions_[d];
      set_common(one, d, args);
      one.args.diff_outputs[0] = output_gradient(d, args);
      for (size_t i = 0; i < one.args.diff_inputs.size(); ++i)
        one.args.diff_inputs[i] = args.diff_inputs[input_at(d, i)];
      if (d == 1 && args.diff_inputs[0]) one.args.diff_inputs[0] = array_at(args.scratch, second_gradient_);
      one.layer->backward(one.args);
    }
    if (!args.diff_inputs[0]) return;
    const std::array<const void*, 2> both = {args.diff_inputs[0], array_at(args.scratch, second_gradient_)};
    ops_.sum(args.diff_inputs[0], both, {}, input_elements_);
  }

 private:
  static void allocate_arguments(OneDirection& one) {
    one.args.inputs.resize(one.inputs);
    one.args.diff_inputs.resize(one.inputs);
    one.args.masks.resize(1);
    one.args.outputs.resize(one.outputs);
    one.args.diff_outputs.resize(one.outputs);
    one.args.parameters.resize(one.parameters);
    one.args.weights.resize(one.parameters);
    one.args.diff_parameters.resize(one.parameters);
  }

  size_t element_bytes() const { return bytes_of(ops_.compute_type()); }
  int64_t rows() const { return batch_ * steps_; }
  size_t bytes_of_output(const OneDirection& one) const {
    return static_cast<size_t>(rows() * one.units) * element_bytes();
  }

  /// Returns the index of an input of one direction among all inputs. Input 0, the sequences, is the same for
  /// both directions.
  size_t input_at(size_t d, size_t i) const { return i == 0 || d == 0 ? i : i + directions_[0].inputs - 1; }
  /// Returns the index of a last state of one direction among all outputs. `i` counts the states of the
  /// direction from 1.
  size_t state_at(size_t d, size_t i) const {
    const size_t merged = mode_ == MergeMode::none ? 2 : 1;
    return merged + (i - 1) + (d == 0 ? 0 : directions_[0].outputs - 1);
  }

  void set_common(OneDirection& one, size_t d, const LayerArguments& args) const {
    LayerArguments& to = one.args;
    for (size_t i = 0; i < to.inputs.size(); ++i)
      to.inputs[i] = args.inputs.empty() ? nullptr : args.inputs[input_at(d, i)];
    for (size_t i = 1; i < to.outputs.size(); ++i) {
      to.outputs[i] = args.outputs.empty() ? nullptr : args.outputs[state_at(d, i)];
      to.diff_outputs[i] = args.diff_outputs.empty() ? nullptr : args.diff_outputs[state_at(d, i)];
    }
    to.masks[0] = args.mask();
    const size_t first = d == 0 ? 0 : directions_[0].parameters;
    for (size_t i = 0; i < one.parameters; ++i) {
      to.parameters[i] = args.parameters[first + i];
      to.weights[i] = args.weights[first + i];
      to.diff_parameters[i] = args.diff_parameters.empty() ? nullptr : args.diff_parameters[first + i];
    }
    to.saved = args.saved ? array_at(args.saved, one.saved) : nullptr;
    to.scratch = array_at(args.scratch, inner_);
    to.seed = args.seed;
    to.step = args.step;
    to.first_sample = args.first_sample;
    to.share = args.share;
  }

  /// Returns the memory of a direction's output, with the steps in the order of the input. The merge reads
  /// this array.
  void* ordered_output(size_t d, const LayerArguments& args) const {
    if (mode_ == MergeMode::none) return args.outputs[d];
    return array_at(keeps_outputs_ ? args.saved : args.scratch, directions_[d].ordered);
  }
  /// Returns the memory to which a direction's layer writes its output, with the steps in the order of
  /// processing.
  void* output_of(size_t d, const LayerArguments& args) const {
    return directions_[d].flips ? array_at(args.scratch, directions_[d].output) : ordered_output(d, args);
  }

  /// Copies `src` to `dst` and reverses the order of the steps.
  void flip(const OneDirection& one, const void* src, void* dst) const {
    const int64_t row = one.units, sequence = steps_ * row;
    const auto last = static_cast<size_t>((steps_ - 1) * row) * element_bytes();
    ops_.strided_sum({.extents = {1, 1, 1, batch_, steps_, row}, .strides = {0, 0, 0, sequence, -row, 1}},
                     static_cast<const std::byte*>(src) + last, dst);
  }

  void merge(const LayerArguments& args) const {
    if (mode_ == MergeMode::none) return;
    const std::array<const void*, 2> both = {ordered_output(0, args), ordered_output(1, args)};
    const int64_t n = rows() * directions_[0].units;
    switch (mode_) {
      case MergeMode::concat:
        return concatenate(args, both);
      case MergeMode::sum:
        return ops_.sum(args.output(), both, {}, n);
      case MergeMode::mul:
        return ops_.multiply(args.output(), both, n);
      case MergeMode::ave:
        return ops_.merge(MergeKind::average, args.output(), both, n);
      case MergeMode::none:
        return;
    }
  }

  int64_t columns() const { return directions_[0].units + directions_[1].units; }

  void concatenate(const LayerArguments& args, const std::array<const void*, 2>& both) const {
    size_t offset = 0;
    for (size_t d = 0; d < 2; ++d) {
      const int64_t units = directions_[d].units;
      ops_.copy_block(array_at(args.output(), offset), columns(), both[d], units, rows(), units);
      offset += static_cast<size_t>(units) * element_bytes();
    }
  }

  /// Returns the gradient of a direction's output, with the steps in the order of processing. Returns null if
  /// the gradient is zero.
  const void* output_gradient(size_t d, const LayerArguments& args) const {
    const OneDirection& one = directions_[d];
    const void* gradient = args.diff_outputs[mode_ == MergeMode::none ? d : 0];
    if (!gradient) return nullptr;
    void* const own = array_at(args.scratch, one.gradient);
    const int64_t n = rows() * one.units;
    if (mode_ == MergeMode::concat) {
      const auto offset = d == 0 ? 0 : static_cast<size_t>(directions_[0].units) * element_bytes();
      ops_.copy_block(own, one.units, static_cast<const std::byte*>(gradient) + offset, columns(), rows(),
                      one.units);
      gradient = own;
    } else if (mode_ == MergeMode::mul) {
      const std::array<const void*, 2> factors = {gradient, array_at(args.saved, directions_[1 - d].ordered)};
      ops_.multiply(own, factors, n);
      gradient = own;
    } else if (mode_ == MergeMode::ave) {
      const std::array<const void*, 2> values = {nullptr, nullptr};
      ops_.merge_backward(MergeKind::average, values, d, gradient, own, n);
      gradient = own;
    }
    if (zeroes_masked_) {
      ops_.apply_mask(gradient, args.mask(), own, rows(), one.units);
      gradient = own;
    }
    if (!one.flips) return gradient;
    flip(one, gradient, array_at(args.scratch, one.reversed));
    return array_at(args.scratch, one.reversed);
  }

  Ops& ops_;
  MergeMode mode_;
  int64_t steps_, batch_;  // steps_: number of steps of the output; 1 if the output is the last state
  int64_t input_elements_;
  std::array<OneDirection, 2> directions_;
  bool zeroes_masked_;  // whether the outputs of masked steps are set to 0, as in Keras
  bool keeps_outputs_ = false;
  size_t second_gradient_ = 0, inner_ = 0;  // offsets in scratch memory
};

}  // namespace

std::unique_ptr<PreparedLayer> prepare_two_directions(const LayerRequest& request, MergeMode mode,
                                                      std::array<PreparedDirection, 2> directions,
                                                      bool sequences) {
  return std::make_unique<PreparedBidirectional>(request, mode, std::move(directions), sequences);
}

}  // namespace dtrain
