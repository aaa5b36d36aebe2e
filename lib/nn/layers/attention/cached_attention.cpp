#include "nn/layers/attention/cached_attention.h"

#include <vector>

#include "nn/layers/attention/projections.h"
#include "nn/layers/common.h"

namespace dtrain {
namespace {

class PreparedCachedAttention : public PreparedLayer {
 public:
  PreparedCachedAttention(const LayerRequest& request, const CachedAttentionOptions& options)
      : ops_(request.ops), options_(options), batch_(request.batch) {
    ArrayOffsets scratch;
    const size_t step = options.use_bias ? 2 : 1;  // parameters per kernel
    const int64_t features = request.inputs[0].shape.back();
    projections_ = std::make_unique<Projections>(
        request, Projections::Extent{batch_, features},
        std::vector<Projections::Part>{{0, query_width()}, {step, key_width()}, {2 * step, value_width()}},
        options.use_bias, false, scratch);
    output_ = std::make_unique<Projections>(
        request, Projections::Extent{batch_, options.heads * options.value_dim},
        std::vector<Projections::Part>{{3 * step, request.output().shape.back()}}, options.use_bias, false,
        scratch);
    attention_ = ops_.attention({.batch = batch_,
                                 .queries = 1,
                                 .keys = options.positions,
                                 .heads = options.heads,
                                 .kv_heads = options.kv_heads,
                                 .key_dim = options.key_dim,
                                 .value_dim = options.value_dim,
                                 .training = false,
                                 .query_stride = projections_->width()});
    const size_t element = bytes_of(ops_.compute_type());
    projected_ = scratch.add(projections_->elements(), element);
    attended_ = scratch.add(batch_ * options.heads * options.value_dim, element);
    mask_ = scratch.add(batch_ * options.positions, 1);
    if (options.rotary_base) table_ = scratch.add(rotary(0, nullptr).table_floats(), sizeof(float));
    operation_ = scratch.add(static_cast<int64_t>(attention_->scratch_bytes()), 1);
    requirements_.scratch_bytes = scratch.bytes();
    // allocate() returns zeroed memory. This is necessary because attention also reads the positions that
    // have not been computed yet: their weight is 0, but their elements must be finite.
    const auto kept = [&](int64_t width) {
      return ops_.context().allocate(static_cast<size_t>(batch_ * options.positions * width) * element);
    };
    keys_ = kept(key_width());
    values_ = kept(value_width());
  }

  void forward(const LayerArguments& args) override {
    const auto* const at = static_cast<const int32_t*>(args.inputs.back());
    void* const query = in(args, projected_);
    void* const key = column(query, query_width());
    void* const value = column(query, query_width() + key_width());
    projections_->forward(args, args.inputs[0], query);
    if (options_.rotary_base) {
      auto* const table = static_cast<float*>(in(args, table_));
      ops_.rotate_positions(rotary(options_.heads, at), query, false, table);
      ops_.rotate_positions(rotary(options_.kv_heads, at), key, false, table);
    }
    put(keys_, key, at, key_width());
    put(values_, value, at, value_width());
    auto* const mask = static_cast<uint8_t*>(in(args, mask_));
    ops_.mask_later_positions(at, mask, batch_, options_.positions);
    attention_->forward({.query = query,
                         .key = keys_.data(),
                         .value = values_.data(),
                         .key_mask = mask,
                         .dst = in(args, attended_),
                         .scratch = in(args, operation_)});
    output_->forward(args, in(args, attended_), args.output());
  }

 private:
  int64_t query_width() const { return options_.heads * options_.key_dim; }
  int64_t key_width() const { return options_.kv_heads * options_.key_dim; }
  int64_t value_width() const { return options_.kv_heads * options_.value_dim; }
  static void* in(const LayerArguments& args, size_t offset) {
    return static_cast<std::byte*>(args.scratch) + offset;
  }
  void* column(void* row, int64_t columns) const {
    return static_cast<std::byte*>(row) + static_cast<size_t>(columns) * bytes_of(ops_.compute_type());
  }

  /// Describes the rotary embedding of the current rows. The rows of all samples are treated as one sequence,
  /// and `at` gives the position of each row.
  RotarySpec rotary(int64_t heads, const int32_t* at) const {
    return {.samples = 1,
            .positions = batch_,
            .heads = heads,
            .dim = options_.key_dim,
            .step = projections_->width(),
            .at = at,
            .base = *options_.rotary_base};
  }

  void put(const Buffer& kept, const void* rows, const int32_t* at, int64_t width) {
    ops_.put_rows(kept.data(), rows, projections_->width(), at, batch_, options_.positions, width);
  }

  Ops& ops_;
  CachedAttentionOptions options_;
  int64_t batch_;
  std::unique_ptr<Projections> projections_, output_;
  std::unique_ptr<Attention> attention_;
  Buffer keys_, values_;  // [batch, positions, kv_heads, key_dim or value_dim]
  size_t projected_ = 0, attended_ = 0, mask_ = 0, table_ = 0, operation_ = 0;  // offsets in scratch memory
};

class CachedAttention : public Layer {
 public:
  explicit CachedAttention(const CachedAttentionOptions& options) : options_(options) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs, const ReportError&) const override {
    return same_as(&inputs[0]);
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedCachedAttention>(request, options_);
  }

 private:
  CachedAttentionOptions options_;
};

}  // namespace

std::shared_ptr<const Layer> cached_attention(const CachedAttentionOptions& options) {
  return std::make_shared<CachedAttention>(options);
}

}  // namespace dtrain
