#include "ops/attention.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/cuda/current.h"
#include "ops/cuda/attention/attention_masks.h"
#include "ops/cuda/attention/dnn_attention.h"
#include "ops/cuda/attention/tiled_attention.h"
#include "ops/cuda/cuda_ops.h"

namespace dtrain::cuda {

/// cuDNN's plans for one spec. If cuDNN cannot compute a pass, its plan is nullopt.
struct AttentionPlan {
  std::optional<DnnAttention> forward, backward;
};

/// The plans that the prepared attention operations use. Layers with the same spec share a plan, because
/// cuDNN compiles its kernels when a plan is created, which takes a second or more.
class AttentionPlans {
 public:
  std::shared_ptr<const AttentionPlan> find(CudaOps& ops, const AttentionSpec& spec) {
    std::erase_if(plans_, [](const Entry& entry) { return entry.plan.expired(); });
    for (const Entry& entry : plans_)
      if (entry.spec == spec) return entry.plan.lock();
    const DnnDevice device(ops.context().dnn(), ops.context().capability());
    auto plan = std::make_shared<AttentionPlan>();
    plan->forward = DnnAttention::find(device, ops.math(), spec, DnnAttention::Direction::forward);
    if (spec.training)
      plan->backward = DnnAttention::find(device, ops.math(), spec, DnnAttention::Direction::backward);
    plans_.push_back({spec, plan});
    return plan;
  }

 private:
  struct Entry {
    AttentionSpec spec;
    std::weak_ptr<const AttentionPlan> plan;
  };
  std::vector<Entry> plans_;
};

namespace {

/// Offsets of arrays in scratch memory. Every array gets the alignment that cuDNN needs, even if the scratch
/// memory itself is not aligned.
class AlignedArrays {
 public:
  size_t add(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }
  size_t bytes() const { return bytes_ > 0 ? bytes_ + kAlignment : 0; }
  static void* at(void* memory, size_t offset) {
    const size_t address = reinterpret_cast<size_t>(memory);
    return static_cast<char*>(memory) + (kAlignment - address % kAlignment) % kAlignment + offset;
  }

 private:
  static constexpr size_t kAlignment = 256;
  size_t bytes_ = 0;
};

/// Attention by cuDNN. For a pass without a cuDNN plan, dtrain's own kernels are used. They define logsumexp
/// in the same way as cuDNN, so cuDNN may compute one of the passes while these kernels compute the other
/// pass.
class DnnBackedAttention final : public Attention {
 public:
  DnnBackedAttention(CudaOps& ops, const AttentionSpec& spec, std::shared_ptr<const AttentionPlan> plan)
      : ops_(ops), spec_(spec), plan_(std::move(plan)), tiled_(tiled_attention(ops, spec)) {
    ops.context().workspace();  // allocates now, because allocation is impossible during a capture
    const auto count = [](int64_t n) { return static_cast<size_t>(n); };
    const size_t queries = count(spec.batch * spec.heads * spec.queries);
    if (spec.masked) {
      bias_ = arrays_.add(count(spec.batch * bias_stride(spec)) * bytes_of(ops.compute_type()));
      first_keys_ = arrays_.add(count(spec.batch) * sizeof(int64_t));
    }
    if (!spec.training) logsumexp_ = arrays_.add(queries * sizeof(float));
    size_t workspace = 0;
    const auto reserve = [&](const std::optional<DnnAttention>& pass) {
      if (pass && pass->workspace_bytes() > ops.context().workspace_bytes())
        workspace = std::max(workspace, pass->workspace_bytes());
    };
    reserve(plan_->forward);
    reserve(plan_->backward);
    if (plan_->backward) {
      dots_ = arrays_.add(queries * sizeof(float));
      query_sums_ = arrays_.add(queries * count(spec.key_dim) * sizeof(float));
    }
    if (workspace > 0) workspace_ = arrays_.add(workspace);
  }

  size_t scratch_bytes() const override { return std::max(arrays_.bytes(), tiled_->scratch_bytes()); }

  void forward(const ForwardArguments& args) override {
    if (!plan_->forward) return tiled_->forward(args);
    DnnAttentionArrays arrays = arrays_of(args);
    arrays.dst = args.dst;
    arrays.logsumexp =
        spec_.training ? args.logsumexp : static_cast<float*>(AlignedArrays::at(args.scratch, logsumexp_));
    plan_->forward->run(ops_.context().dnn(), arrays, workspace(args.scratch));
    if (spec_.masked) clear_blind_queries(ops_, spec_, first_keys(args.scratch), args.dst, args.logsumexp);
  }

  void backward(const BackwardArguments& args) override {
    if (!plan_->backward) return tiled_->backward(args);
    DnnAttentionArrays arrays = arrays_of(args);
    arrays.dst = const_cast<void*>(args.dst);               // the backward pass only reads this array
    arrays.logsumexp = const_cast<float*>(args.logsumexp);  // the backward pass only reads this array
    arrays.diff_dst = args.diff_dst;
    arrays.dots = static_cast<float*>(AlignedArrays::at(args.scratch, dots_));
    arrays.query_sums = static_cast<float*>(AlignedArrays::at(args.scratch, query_sums_));
    arrays.diff_query = args.diff_query;
    arrays.diff_key = args.diff_key;
    arrays.diff_value = args.diff_value;
    plan_->backward->run(ops_.context().dnn(), arrays, workspace(args.scratch));
  }

 private:
  /// Returns the arrays of a call. If the spec has masks, also enqueues a kernel that converts the mask to a
  /// bias for the scores.
  template <class Arguments>
  DnnAttentionArrays arrays_of(const Arguments& args) {
    DnnAttentionArrays arrays;
    arrays.query = args.query;
    arrays.key = args.key;
    arrays.value = args.value;
    if (args.key_mask && !spec_.masked)
      throw Error("attention was prepared without masks, but a call has a mask");
    if (!spec_.masked) return arrays;
    void* const bias = AlignedArrays::at(args.scratch, bias_);
    key_bias(ops_, spec_, args.key_mask, bias, first_keys(args.scratch));
    arrays.bias = bias;
    return arrays;
  }
  int64_t* first_keys(void* scratch) const {
    return static_cast<int64_t*>(AlignedArrays::at(scratch, first_keys_));
  }
  void* workspace(void* scratch) const {
    return workspace_ ? AlignedArrays::at(scratch, *workspace_) : ops_.context().workspace();
  }

  CudaOps& ops_;
  AttentionSpec spec_;
  std::shared_ptr<const AttentionPlan> plan_;
  std::unique_ptr<Attention> tiled_;
  AlignedArrays arrays_;
  size_t bias_ = 0, first_keys_ = 0, logsumexp_ = 0, dots_ = 0, query_sums_ = 0;
  std::optional<size_t> workspace_;  // offset of the workspace; nullopt: the workspace of the context is used
};

}  // namespace

std::unique_ptr<Attention> CudaOps::attention(const AttentionSpec& spec) {
  const OnDevice on(context_.index());  // a plan may be created by the thread of another GPU
  if (math_.type == DType::float32 || spec.dropout > 0.0f) return tiled_attention(*this, spec);
  if (!attention_plans_) attention_plans_ = std::make_shared<AttentionPlans>();
  auto plan = attention_plans_->find(*this, spec);
  if (!plan->forward && !plan->backward) return tiled_attention(*this, spec);
  return std::make_unique<DnnBackedAttention>(*this, spec, std::move(plan));
}

}  // namespace dtrain::cuda
