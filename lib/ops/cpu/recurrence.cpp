// Recurrent layers on CPUs. The rows of the batch are divided into blocks, one per thread. A thread runs all
// steps of its block, so threads need not synchronize between the steps of a sequence. The inputs of several
// steps (a chunk) are gathered and multiplied by the kernel in one matrix product. Each step then adds the
// product of the state and the recurrent kernel.
#include "ops/recurrence.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/sequence_rows.h"

namespace dtrain::cpu {
namespace {

/// A row-major matrix within an array; `stride` is the number of elements from one row to the next.
struct ConstStridedMatrix {
  const float* data;
  int64_t stride;
  bool transposed = false;
};
struct StridedMatrix {
  float* data;
  int64_t stride;
};

/// Divides an array into parts, each aligned to a cache line.
class FloatParts {
 public:
  /// Adds a part of n floats and returns its offset.
  size_t add(int64_t n) {
    const size_t offset = size_;
    size_ += (static_cast<size_t>(n) + 15) / 16 * 16;
    return offset;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

class CpuRecurrence final : public Recurrence {
 public:
  CpuRecurrence(CpuOps& ops, const RecurrenceSpec& spec)
      : ops_(ops),
        spec_(spec),
        sequences_(spec),
        width_(RecurrentStep::width(spec)),
        blocks_(static_cast<int>(std::min<int64_t>(ops.threads(), spec.batch))),
        chunk_(steps_per_chunk()),
        kept_steps_(spec.training ? spec.steps : chunk_),
        most_rows_((spec.batch + blocks_ - 1) / blocks_) {
    const int64_t rows = most_rows_, units = spec.units;
    states_.gates = kept_.add(kept_steps_ * rows * width_);
    states_.state = kept_.add((kept_steps_ + 1) * rows * units);
    if (spec.has_cell()) states_.cell = kept_.add((kept_steps_ + 1) * rows * units);

    work_.bias = scratch_.add(width_);
    work_.inputs = scratch_.add(chunk_ * rows * spec.inputs);
    if (spec.has_state_factors) work_.dropped = scratch_.add((spec.training ? chunk_ : 1) * rows * units);
    if (spec.training) {
      work_.diff_gates = scratch_.add(chunk_ * rows * width_);
      work_.diff_state = scratch_.add(rows * units);
      work_.diff_cell = scratch_.add(rows * units);
      work_.column_sums = scratch_.add(width_);
      work_.diff_bias = scratch_.add(width_);
      work_.diff_kernel = scratch_.add(spec.inputs * spec.gates() * units);
      work_.diff_recurrent_kernel = scratch_.add(units * spec.gates() * units);
    }
  }

  size_t scratch_bytes() const override {
    return (scratch_.size() + (spec_.training ? 0 : kept_.size())) * sizeof(float) *
           static_cast<size_t>(blocks_);
  }
  size_t saved_bytes() const override {
    return spec_.training ? kept_.size() * sizeof(float) * static_cast<size_t>(blocks_) : 0;
  }

  void forward(const ForwardArguments& args) override {
    each_block([&](int block, RowBlock rows) { forward(args, block, rows); });
  }

  void backward(const BackwardArguments& args) override {
    each_block([&](int block, RowBlock rows) { backward(args, block, rows); });
    if (!args.diff_recurrent_kernel) return;
    const int64_t columns = spec_.gates() * spec_.units;
    sum_blocks(args.diff_kernel, f32(args.scratch), work_.diff_kernel, spec_.inputs * columns);
    sum_blocks(args.diff_recurrent_kernel, f32(args.scratch), work_.diff_recurrent_kernel,
               spec_.units * columns);
    if (args.diff_bias) sum_bias(args);
  }

 private:
  /// Returns the number of steps per chunk. It is chosen so that a chunk fits in the second-level cache.
  int64_t steps_per_chunk() const {
    constexpr int64_t kFloats = 1 << 16;
    const int64_t rows = (spec_.batch + blocks_ - 1) / blocks_;
    return std::clamp<int64_t>(kFloats / (rows * std::max(spec_.inputs, width_)), 1,
                               std::max<int64_t>(1, spec_.steps));
  }

  /// Calls body(block, rows) for every block; the blocks are divided among the threads.
  template <class Body>
  void each_block(Body&& body) {
    failed_ = false;
    const auto block = [&](int index) {
      const int64_t first = share_begin(spec_.batch, 1, blocks_, index),
                    end = share_begin(spec_.batch, 1, blocks_, index + 1);
      body(index, RowBlock{first, end - first});
    };
    if (blocks_ == 1) {
      block(0);
    } else {
      openmp_region(blocks_, [&](int thread, int team) {
        for (int index = thread; index < blocks_; index += team) block(index);
      });
    }
    if (failed_) throw Error("oneDNN: a matrix product failed");
  }

  /// Computes c = a b + beta c, where c is [m, n] and a is [m, k].
  void multiply(int64_t m, int64_t n, int64_t k, const ConstStridedMatrix& a, const ConstStridedMatrix& b,
                float beta, const StridedMatrix& c) {
    const auto status = dnnl::sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
                                    a.stride, b.data, b.stride, beta, c.data, c.stride);
    if (status != dnnl::status::success) failed_ = true;
  }

  bool resets_before() const { return spec_.kind == RecurrenceSpec::Kind::gru && !spec_.reset_after; }
  bool is_gru() const { return spec_.kind == RecurrenceSpec::Kind::gru; }
  int64_t columns() const { return spec_.gates() * spec_.units; }  // number of columns of the kernels

  template <class T>
  T* part(T* memory, int block, const FloatParts& parts, size_t offset) const {
    return memory + static_cast<size_t>(block) * parts.size() + offset;
  }
  float* kept(void* saved, void* scratch, int block, size_t offset) const {
    if (spec_.training) return part(f32(saved), block, kept_, offset);
    return part(f32(scratch) + static_cast<size_t>(blocks_) * scratch_.size(), block, kept_, offset);
  }

  /// Writes the biases to dst in the order of math::GruGates (or of the layer's gates). If a GRU has two
  /// biases, a gate whose pre-activation is the sum of both products gets the sum of both biases.
  void arrange_bias(const float* bias, float* dst) const {
    const int64_t units = spec_.units;
    std::fill(dst, dst + width_, 0.0f);
    if (!bias) return;
    if (!is_gru()) {
      std::copy_n(bias, width_, dst);
      return;
    }
    std::copy_n(bias, 2 * units, dst);
    std::copy_n(bias + 2 * units, units, dst + 3 * units);
    if (!spec_.reset_after) return;
    const float* const recurrent = bias + 3 * units;
    for (int64_t j = 0; j < 2 * units; ++j) dst[j] += recurrent[j];
    std::copy_n(recurrent + 2 * units, units, dst + 2 * units);
  }

  /// Multiplies `rows` rows of inputs by the kernel and writes the products to `gates`. For a GRU, the
  /// columns of math::GruGates::inner are set to 0, because `inner` does not depend on the inputs.
  void multiply_inputs(const float* inputs, const void* kernel, int64_t rows, float* gates) {
    const int64_t k = spec_.inputs, units = spec_.units;
    const ConstStridedMatrix a{inputs, k};
    if (!is_gru()) return multiply(rows, width_, k, a, {f32(kernel), columns()}, 0, {gates, width_});
    multiply(rows, 2 * units, k, a, {f32(kernel), columns()}, 0, {gates, width_});
    multiply(rows, units, k, a, {f32(kernel) + 2 * units, columns()}, 0, {gates + 3 * units, width_});
    for (int64_t r = 0; r < rows; ++r) std::fill_n(gates + r * width_ + 2 * units, units, 0.0f);
  }

  void forward(const ForwardArguments& args, int block, const RowBlock& rows) {
    float* const bias = part(f32(args.scratch), block, scratch_, work_.bias);
    float* const inputs = part(f32(args.scratch), block, scratch_, work_.inputs);
    float* const gates = kept(args.saved, args.scratch, block, states_.gates);
    float* const states = kept(args.saved, args.scratch, block, states_.state);
    float* const cells = kept(args.saved, args.scratch, block, states_.cell);
    const int64_t n = rows.count * spec_.units;
    arrange_bias(args.bias, bias);
    sequences_.copy_rows(states, args.initial_state, rows);
    if (spec_.has_cell()) sequences_.copy_rows(cells, args.initial_cell, rows);
    int64_t last = 0;  // index of the newest state
    for (int64_t first = 0; first < spec_.steps; first += chunk_) {
      const int64_t count = std::min(chunk_, spec_.steps - first);
      if (!spec_.training && last > 0) {
        std::copy_n(states + last * n, n, states);
        if (spec_.has_cell()) std::copy_n(cells + last * n, n, cells);
        last = 0;
      }
      sequences_.gather_inputs(args.src, args.input_factors, rows, first, count, inputs);
      multiply_inputs(inputs, args.kernel, count * rows.count, gates + last * rows.count * width_);
      for (int64_t t = first; t < first + count; ++t, ++last) {
        const RecurrentStep step{.gates = gates + last * rows.count * width_,
                                 .bias = bias,
                                 .state_before = states + last * n,
                                 .state = states + (last + 1) * n,
                                 .cell_before = cells + last * n,
                                 .cell = cells + (last + 1) * n,
                                 .mask = sequences_.mask_of(args.mask, rows, t)};
        run_step(args, step, block, rows, t > 0 || args.initial_state);
        if (spec_.return_sequences)
          sequences_.write_output(f32(args.dst) + t * spec_.units, spec_.steps * spec_.units, step, rows);
        else if (t + 1 == spec_.steps)
          sequences_.write_output(f32(args.dst), spec_.units, step, rows);
      }
    }
    const auto write = [&](void* dst, const float* src) {
      if (dst) std::copy_n(src + last * n, n, f32(dst) + rows.first * spec_.units);
    };
    write(args.last_state, states);
    if (spec_.has_cell()) write(args.last_cell, cells);
  }

  /// Computes one step. `multiplies` is false if the previous state is 0, so its product with the recurrent
  /// kernel can be omitted.
  void run_step(const ForwardArguments& args, RecurrentStep step, int block, const RowBlock& of_batch,
                bool multiplies) {
    const int64_t rows = of_batch.count, units = spec_.units;
    const float* const kernel = f32(args.recurrent_kernel);
    const ConstStridedMatrix before{step.state_before, units};
    // A GRU whose reset gate comes before the matrix product needs two products: first the state times the
    // kernels of the update and reset gates, and later the reset state times the kernel of the candidate.
    const int64_t first = resets_before() ? 2 * units : columns();
    if (multiplies && !spec_.has_state_factors)
      multiply(rows, first, units, before, {kernel, columns()}, 1, {step.gates, width_});
    if (multiplies && spec_.has_state_factors) {
      float* const dropped = part(f32(args.scratch), block, scratch_, work_.dropped);
      for (int64_t column = 0; column < first; column += units) {
        multiply_rows(step.state_before, units, state_factors(args.state_factors, of_batch, column), of_batch,
                      1, dropped, units);
        multiply(rows, units, units, {dropped, units}, {kernel + column, columns()}, 1,
                 {step.gates + column, width_});
      }
    }
    ops_.kernels().recurrence_forward(spec_, step, rows);
    if (!resets_before()) return;
    if (spec_.has_state_factors)
      multiply_rows(step.gates + 2 * units, width_, state_factors(args.state_factors, of_batch, 2 * units),
                    of_batch, 1, step.gates + 2 * units, width_);
    if (multiplies)
      multiply(rows, units, units, {step.gates + 2 * units, width_}, {kernel + 2 * units, columns()}, 1,
               {step.gates + 3 * units, width_});
    step.second = true;
    ops_.kernels().recurrence_forward(spec_, step, rows);
  }

  void backward(const BackwardArguments& args, int block, const RowBlock& rows) {
    const auto work = [&](size_t offset) { return part(f32(args.scratch), block, scratch_, offset); };
    const auto kept_part = [&](size_t offset) { return part(f32(args.saved), block, kept_, offset); };
    const float *const gates = kept_part(states_.gates), *const states = kept_part(states_.state),
                       *const cells = kept_part(states_.cell);
    float *const diff_gates = work(work_.diff_gates), *const diff_state = work(work_.diff_state),
                 *const diff_cell = work(work_.diff_cell);
    const int64_t n = rows.count * spec_.units;
    sequences_.copy_rows(diff_state, args.diff_last_state, rows);
    sequences_.copy_rows(diff_cell, args.diff_last_cell, rows);
    bool is_first = true;
    for (int64_t end = spec_.steps; end > 0;) {
      const int64_t first = (end - 1) / chunk_ * chunk_, count = end - first;
      for (int64_t t = end - 1; t >= first; --t) {
        RecurrentBackwardStep step{.gates = gates + t * rows.count * width_,
                                   .diff_gates = diff_gates + (t - first) * rows.count * width_,
                                   .state_before = states + t * n,
                                   .cell_before = cells + t * n,
                                   .cell = cells + (t + 1) * n,
                                   .diff_state = diff_state,
                                   .diff_cell = diff_cell,
                                   .mask = sequences_.mask_of(args.mask, rows, t)};
        sequences_.set_output_gradient(args, rows, t, step);
        undo_step(args, step, block, rows, t > 0 || args.diff_initial_state);
      }
      add_gradients(args, block, rows, first, count, is_first);
      is_first = false;
      end = first;
    }
    const auto write = [&](void* dst, const float* src) {
      if (dst) std::copy_n(src, n, f32(dst) + rows.first * spec_.units);
    };
    write(args.diff_initial_state, diff_state);
    write(args.diff_initial_cell, diff_cell);
  }

  /// Computes the gradients of one step's gates and, if `continues`, of the previous state.
  void undo_step(const BackwardArguments& args, RecurrentBackwardStep step, int block,
                 const RowBlock& of_batch, bool continues) {
    const int64_t rows = of_batch.count, units = spec_.units;
    const float* const kernel = f32(args.recurrent_kernel);
    ops_.kernels().recurrence_backward(spec_, step, rows);
    if (resets_before()) {
      multiply(rows, units, units, {step.diff_gates + 3 * units, width_},
               {kernel + 2 * units, columns(), true}, 0, {step.diff_gates + 2 * units, width_});
      if (spec_.has_state_factors)
        multiply_rows(step.diff_gates + 2 * units, width_,
                      state_factors(args.state_factors, of_batch, 2 * units), of_batch, 1,
                      step.diff_gates + 2 * units, width_);
      step.second = true;
      ops_.kernels().recurrence_backward(spec_, step, rows);
    }
    if (!continues) return;
    const int64_t gates = resets_before() ? 2 * units : columns();
    const bool adds = is_gru() || args.mask;
    if (!spec_.has_state_factors)
      return multiply(rows, units, gates, {step.diff_gates, width_}, {kernel, columns(), true}, adds ? 1 : 0,
                      {step.diff_state, units});
    if (!adds) std::fill_n(step.diff_state, rows * units, 0.0f);
    float* const product = part(f32(args.scratch), block, scratch_, work_.dropped);
    for (int64_t column = 0; column < gates; column += units) {
      multiply(rows, units, units, {step.diff_gates + column, width_}, {kernel + column, columns(), true}, 0,
               {product, units});
      const float* const factors = state_factors(args.state_factors, of_batch, column);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < units; ++j)
          step.diff_state[r * units + j] += product[r * units + j] * factors[r * columns() + j];
    }
  }

  /// Returns the state factors of a block's rows, for the gate that begins at column `column`. Consecutive
  /// rows are columns() elements apart.
  const float* state_factors(const void* factors, const RowBlock& rows, int64_t column) const {
    return f32(factors) + rows.first * columns() + column;
  }

  /// Multiplies each row of src by the state factors of its sequence. src and dst are [steps, rows, units];
  /// src_stride and dst_stride are the number of floats from one row to the next.
  void multiply_rows(const float* src, int64_t src_stride, const float* factors, const RowBlock& rows,
                     int64_t steps, float* dst, int64_t dst_stride) const {
    for (int64_t row = 0; row < steps * rows.count; ++row) {
      const float* const factor = factors + row % rows.count * columns();
      for (int64_t j = 0; j < spec_.units; ++j)
        dst[row * dst_stride + j] = src[row * src_stride + j] * factor[j];
    }
  }

  /// Adds the contribution of `count` steps to the block's gradients of the weights, and writes the gradients
  /// of the inputs of these steps.
  void add_gradients(const BackwardArguments& args, int block, const RowBlock& rows, int64_t first,
                     int64_t count, bool is_first) {
    const auto work = [&](size_t offset) { return part(f32(args.scratch), block, scratch_, offset); };
    float *const inputs = work(work_.inputs), *const diff_gates = work(work_.diff_gates);
    const int64_t all = count * rows.count, units = spec_.units, in = spec_.inputs, n = columns();
    const ConstStridedMatrix diff{diff_gates, width_}, diff_candidate{diff_gates + 3 * units, width_};
    const float beta = is_first ? 0 : 1;
    if (args.diff_recurrent_kernel) {
      sequences_.gather_inputs(args.src, args.input_factors, rows, first, count, inputs);
      const ConstStridedMatrix from{inputs, in, true};
      float* const of_kernel = work(work_.diff_kernel);
      multiply(in, is_gru() ? 2 * units : n, all, from, diff, beta, {of_kernel, n});
      if (is_gru()) multiply(in, units, all, from, diff_candidate, beta, {of_kernel + 2 * units, n});

      const float* const saved = part(f32(args.saved), block, kept_, 0);
      const float* const states = saved + states_.state + first * rows.count * units;
      float* const of_recurrent = work(work_.diff_recurrent_kernel);
      const int64_t of_state = resets_before() ? 2 * units : n;
      if (!spec_.has_state_factors)
        multiply(units, of_state, all, {states, units, true}, diff, beta, {of_recurrent, n});
      for (int64_t column = 0; spec_.has_state_factors && column < of_state; column += units) {
        float* const dropped = work(work_.dropped);
        multiply_rows(states, units, state_factors(args.state_factors, rows, column), rows, count, dropped,
                      units);
        multiply(units, units, all, {dropped, units, true}, {diff_gates + column, width_}, beta,
                 {of_recurrent + column, n});
      }
      if (resets_before()) {
        const ConstStridedMatrix inner{saved + states_.gates + first * rows.count * width_ + 2 * units,
                                       width_, true};
        multiply(units, units, all, inner, diff_candidate, beta, {of_recurrent + 2 * units, n});
      }
      if (args.diff_bias)
        add_bias_gradients(diff_gates, all, work(work_.column_sums), work(work_.diff_bias), is_first);
    }
    if (!args.diff_src) return;
    multiply(all, in, is_gru() ? 2 * units : n, diff, {f32(args.kernel), n, true}, 0, {inputs, in});
    if (is_gru())
      multiply(all, in, units, diff_candidate, {f32(args.kernel) + 2 * units, n, true}, 1, {inputs, in});
    sequences_.scatter_inputs(inputs, args.input_factors, rows, first, count, args.diff_src);
  }

  void add_bias_gradients(const float* diff_gates, int64_t rows, float* sums, float* diff_bias,
                          bool is_first) const {
    ops_.kernels().column_sum(is_first ? diff_bias : sums, diff_gates, width_, 0, width_, 0, rows);
    if (is_first) return;
    for (int64_t c = 0; c < width_; ++c) diff_bias[c] += sums[c];
  }

  /// Writes to dst the sum of the blocks' arrays of n floats at `offset`, added in the order of the blocks.
  void sum_blocks(float* dst, const float* scratch, size_t offset, int64_t n) const {
    parallel(ops_.threads(), n, 16, blocks_, [&](int64_t begin, int64_t end, int) {
      std::copy(part(scratch, 0, scratch_, offset) + begin, part(scratch, 0, scratch_, offset) + end,
                dst + begin);
      for (int block = 1; block < blocks_; ++block) {
        const float* const from = part(scratch, block, scratch_, offset);
        for (int64_t i = begin; i < end; ++i) dst[i] += from[i];
      }
    });
  }

  /// Writes the gradient of the bias, whose columns are in the same order as the kernels' columns.
  void sum_bias(const BackwardArguments& args) const {
    float* const sums = part(f32(args.scratch), 0, scratch_, work_.column_sums);
    sum_blocks(sums, f32(args.scratch), work_.diff_bias, width_);
    const int64_t units = spec_.units;
    float* const dst = args.diff_bias;
    if (!is_gru()) {
      std::copy_n(sums, width_, dst);
      return;
    }
    std::copy_n(sums, 2 * units, dst);
    std::copy_n(sums + 3 * units, units, dst + 2 * units);
    if (!spec_.reset_after) return;
    std::copy_n(sums, 2 * units, dst + 3 * units);
    std::copy_n(sums + 2 * units, units, dst + 5 * units);
  }

  CpuOps& ops_;
  RecurrenceSpec spec_;
  SequenceRows sequences_;
  int64_t width_;
  int blocks_;
  int64_t chunk_;              // number of steps whose inputs are multiplied by the kernel in one product
  int64_t kept_steps_;         // number of steps for which `kept_` has memory
  int64_t most_rows_;          // maximum number of rows of a block
  FloatParts kept_, scratch_;  // parts of the memory of one block
  struct {
    size_t gates = 0, state = 0, cell = 0;
  } states_;  // offsets in kept_: [steps, rows, width], [steps + 1, rows, units] for `state` and `cell`
  struct {
    size_t bias = 0, inputs = 0, dropped = 0, diff_gates = 0, diff_state = 0, diff_cell = 0, column_sums = 0,
           diff_bias = 0, diff_kernel = 0, diff_recurrent_kernel = 0;
  } work_;  // offsets in scratch_
  std::atomic<bool> failed_ = false;
};

}  // namespace

std::unique_ptr<Recurrence> CpuOps::recurrence(const RecurrenceSpec& spec) {
  return std::make_unique<CpuRecurrence>(*this, spec);
}

}  // namespace dtrain::cpu
