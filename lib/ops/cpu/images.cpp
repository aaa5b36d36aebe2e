// Pooling, batch normalization and layout conversions with oneDNN.
#include <algorithm>

#include "ops/cpu/cpu_ops.h"
#include "ops/cpu/onednn/descriptors.h"
#include "ops/cpu/onednn/version.h"

namespace dtrain::cpu {
namespace {

class CpuPooling final : public Pooling {
 public:
  CpuPooling(const Engine& engine, const PoolingSpec& spec) : engine_(engine) {
    const auto forward = pooling_forward_desc(engine.engine, spec);
    const auto saved = forward.workspace_desc();
    saved_bytes_ = saved.get_size();
    forward_ = Call(engine, dnnl::pooling_forward(forward), forward.scratchpad_desc(),
                    {{DNNL_ARG_SRC, forward.src_desc()},
                     {DNNL_ARG_DST, forward.dst_desc()},
                     {DNNL_ARG_WORKSPACE, saved}});
    if (!spec.training) return;
    const auto backward = pooling_backward_desc(engine.engine, spec, forward);
    backward_ = Call(engine, dnnl::pooling_backward(backward), backward.scratchpad_desc(),
                     {{DNNL_ARG_DIFF_DST, backward.diff_dst_desc()},
                      {DNNL_ARG_DIFF_SRC, backward.diff_src_desc()},
                      {DNNL_ARG_WORKSPACE, saved}});
  }

  size_t scratch_bytes() const override {
    return std::max(forward_.scratch_bytes(), backward_.scratch_bytes());
  }
  size_t saved_bytes() const override { return saved_bytes_; }
  void forward(const void* src, void* dst, void* saved, void* scratch) override {
    forward_.run(engine_, {src, dst, saved}, scratch);
  }
  void backward(const void* diff_dst, void* diff_src, const void* saved, void* scratch) override {
    backward_.run(engine_, {diff_dst, diff_src, saved}, scratch);
  }

 private:
  const Engine& engine_;
  Call forward_, backward_;
  size_t saved_bytes_ = 0;
};

class CpuBatchNormalization final : public BatchNormalization {
 public:
  CpuBatchNormalization(Context& context, const Engine& engine, const BatchNormalizationSpec& spec)
      : engine_(engine), channels_(spec.channels), stand_ins_(context.allocate(4 * bytes_of(spec))) {
    const dnnl::memory::desc channels({spec.channels}, dnnl::memory::data_type::f32,
                                      dnnl::memory::format_tag::x);
    float* const stand_ins = stand_ins_.f32();
    ones_ = stand_ins;
    zeros_ = stand_ins + spec.channels;
    diff_ones_ = stand_ins + 2 * spec.channels;
    diff_zeros_ = stand_ins + 3 * spec.channels;
    std::fill_n(stand_ins, spec.channels, 1.0f);
    const auto call_of = [&](const dnnl::batch_normalization_forward::primitive_desc& forward) {
      return Call(engine, dnnl::batch_normalization_forward(forward), forward.scratchpad_desc(),
                  {{DNNL_ARG_SRC, forward.src_desc()},
                   {DNNL_ARG_SCALE, channels},
                   {DNNL_ARG_SHIFT, channels},
                   {DNNL_ARG_DST, forward.dst_desc()},
                   {DNNL_ARG_MEAN, channels},
                   {DNNL_ARG_VARIANCE, channels},
                   {DNNL_ARG_WORKSPACE, forward.workspace_desc()}});
    };
    inference_ = call_of(batch_normalization_forward_desc(engine.engine, spec, false));
    if (!spec.training) return;
    const auto forward = batch_normalization_forward_desc(engine.engine, spec, true);
    training_ = call_of(forward);
    saved_bytes_ = forward.workspace_desc().get_size();
    const auto backward = batch_normalization_backward_desc(engine.engine, spec, forward);
    backward_ = Call(engine, dnnl::batch_normalization_backward(backward), backward.scratchpad_desc(),
                     {{DNNL_ARG_SRC, backward.src_desc()},
                      {DNNL_ARG_SCALE, channels},
                      {DNNL_ARG_SHIFT, kBackwardTakesShift ? channels : dnnl::memory::desc()},
                      {DNNL_ARG_MEAN, channels},
                      {DNNL_ARG_VARIANCE, channels},
                      {DNNL_ARG_DIFF_DST, backward.diff_dst_desc()},
                      {DNNL_ARG_DIFF_SRC, backward.diff_src_desc()},
                      {DNNL_ARG_DIFF_SCALE, channels},
                      {DNNL_ARG_DIFF_SHIFT, channels},
                      {DNNL_ARG_WORKSPACE, forward.workspace_desc()}});
  }

  size_t scratch_bytes() const override {
    return std::max({training_.scratch_bytes(), inference_.scratch_bytes(), backward_.scratch_bytes()});
  }
  size_t saved_bytes() const override { return saved_bytes_; }
  void forward_training(const TrainingArguments& args) override {
    training_.run(
        engine_,
        {args.src, scale(args.gamma), shift(args.beta), args.dst, args.mean, args.variance, args.saved},
        args.scratch);
  }
  void forward_inference(const InferenceArguments& args) override {
    inference_.run(
        engine_, {args.src, scale(args.gamma), shift(args.beta), args.dst, args.mean, args.variance, nullptr},
        args.scratch);
  }
  void backward(const BackwardArguments& args) override {
    backward_.run(engine_,
                  {args.src, scale(args.gamma), zeros_, args.mean, args.variance, args.diff_dst,
                   args.diff_src, args.diff_gamma ? args.diff_gamma : diff_ones_,
                   args.diff_beta ? args.diff_beta : diff_zeros_, args.saved},
                  args.scratch);
    give_statistics(args, channels_);
  }

 private:
  static size_t bytes_of(const BatchNormalizationSpec& spec) {
    return static_cast<size_t>(spec.channels) * sizeof(float);
  }
  const float* scale(const float* gamma) const { return gamma ? gamma : ones_; }
  const float* shift(const float* beta) const { return beta ? beta : zeros_; }

  const Engine& engine_;
  const int64_t channels_;
  // oneDNN always reads the scale and shift and always writes their gradients. stand_ins_ holds arrays that
  // are passed to oneDNN if the layer has no gamma or beta: ones, zeros, and memory for their gradients.
  Buffer stand_ins_;
  float *ones_, *zeros_, *diff_ones_, *diff_zeros_;
  Call training_, inference_, backward_;
  size_t saved_bytes_ = 0;
};

class CpuReorder final : public Reorder {
 public:
  CpuReorder(Context& context, const Engine& engine, const dnnl::memory::desc& from,
             const dnnl::memory::desc& to)
      : engine_(engine),
        call_(reorder_call(engine, from, to)),
        scratch_(call_.scratch_bytes() > 0 ? context.allocate(call_.scratch_bytes()) : Buffer()) {}

  void run(const void* src, void* dst) override { call_.run(engine_, {src, dst}, scratch_.data()); }

 private:
  const Engine& engine_;
  Call call_;
  Buffer scratch_;
};

}  // namespace

std::unique_ptr<Pooling> CpuOps::pooling(const PoolingSpec& spec) {
  return prepared("pooling", [&] { return std::make_unique<CpuPooling>(engine_, spec); });
}

std::unique_ptr<BatchNormalization> CpuOps::batch_normalization(const BatchNormalizationSpec& spec) {
  return prepared("batch normalization",
                  [&] { return std::make_unique<CpuBatchNormalization>(context_, engine_, spec); });
}

std::unique_ptr<Reorder> CpuOps::reorder(const Shape& shape, Layout from, Layout to) {
  const dnnl::memory::dims dims{shape[0], shape[3], shape[1], shape[2]};
  return std::make_unique<CpuReorder>(context_, engine_, image_desc(dims, from), image_desc(dims, to));
}

}  // namespace dtrain::cpu
