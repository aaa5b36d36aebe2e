// Attention on CPUs. The work is divided into parts, and each thread repeatedly takes the next free part. In
// the forward pass, a part is one query tile of one head. In the backward pass, a part consists of some key
// tiles of one head, together with all queries that use these keys. The order in which threads take parts
// does not change any sum.
#include "ops/attention.h"

#include <algorithm>
#include <atomic>

#include "ops/cpu/cpu_ops.h"

namespace dtrain::cpu {
namespace {

class CpuAttention final : public Attention {
 public:
  CpuAttention(CpuOps& ops, const AttentionSpec& spec)
      : ops_(ops),
        spec_(spec),
        work_floats_(AttentionTiles::padded(spec.training ? std::max(AttentionTiles::forward_floats(spec),
                                                                     AttentionTiles::backward_floats(spec))
                                                          : AttentionTiles::forward_floats(spec))),
        key_tiles_((spec.keys + AttentionTiles::kKeys - 1) / AttentionTiles::kKeys),
        key_parts_(std::clamp<int64_t>(ops.threads() / (spec.batch * spec.kv_heads), 1, key_tiles_)) {}

  size_t scratch_bytes() const override {
    const int64_t sums = spec_.training && key_parts_ > 1 ? key_parts_ * query_floats() : 0;
    return static_cast<size_t>(ops_.threads() * work_floats_ + sums) * sizeof(float);
  }

  void forward(const ForwardArguments& args) override {
    const int64_t tiles = (spec_.queries + AttentionTiles::kQueries - 1) / AttentionTiles::kQueries;
    const int64_t dst_step = spec_.heads * spec_.value_dim;
    each_part(spec_.batch * spec_.heads * tiles, args.scratch, [&](int64_t index, float* work) {
      const int64_t tile = index % tiles, h = index / tiles % spec_.heads,
                    sample = index / tiles / spec_.heads;
      const int64_t first = tile * AttentionTiles::kQueries;
      ops_.kernels().attention_forward(
          spec_, args.dropout,
          {head(args, sample, h), first, std::min(AttentionTiles::kQueries, spec_.queries - first),
           f32(args.dst) + sample * spec_.queries * dst_step + h * spec_.value_dim,
           args.logsumexp ? args.logsumexp + (sample * spec_.heads + h) * spec_.queries : nullptr},
          work);
    });
  }

  void backward(const BackwardArguments& args) override {
    float* const sums =
        key_parts_ > 1 ? f32(args.scratch) + ops_.threads() * work_floats_ : f32(args.diff_query);
    each_part(spec_.batch * spec_.kv_heads * key_parts_, args.scratch, [&](int64_t index, float* work) {
      const int64_t part = index % key_parts_, group = index / key_parts_;
      backward_part(args, group / spec_.kv_heads, group % spec_.kv_heads, part, sums, work);
    });
    if (key_parts_ > 1) sum_parts(sums, f32(args.diff_query));
  }

 private:
  /// Returns the number of floats of a contiguous array with all queries.
  int64_t query_floats() const { return spec_.batch * spec_.queries * spec_.heads * spec_.key_dim; }

  /// Calls body(index, work memory of the thread) for every index in [0, parts). The indices are divided
  /// among the threads.
  template <class Body>
  void each_part(int64_t parts, void* scratch, Body&& body) {
    const auto threads = static_cast<int>(std::min<int64_t>(ops_.threads(), parts));
    if (threads <= 1) {
      for (int64_t index = 0; index < parts; ++index) body(index, f32(scratch));
      return;
    }
    std::atomic<int64_t> next = 0;
    openmp_region(threads, [&](int thread, int) {
      for (int64_t index = next++; index < parts; index = next++)
        body(index, f32(scratch) + thread * work_floats_);
    });
  }

  template <class Arguments>
  AttentionHead head(const Arguments& args, int64_t sample, int64_t h) const {
    const int64_t kv_head = h / spec_.group();
    return {.query = f32(args.query) + sample * spec_.queries * spec_.query_step() + h * spec_.key_dim,
            .key = f32(args.key) + sample * spec_.keys * spec_.key_step() + kv_head * spec_.key_dim,
            .value = f32(args.value) + sample * spec_.keys * spec_.value_step() + kv_head * spec_.value_dim,
            .key_mask = args.key_mask ? args.key_mask + sample * spec_.keys : nullptr,
            .sample = args.dropout.first_sample + static_cast<uint64_t>(sample),
            .index = h};
  }

  /// Computes the gradients of the key tiles with the indices part, part + key_parts_, part + 2 * key_parts_,
  /// and so on. If key_parts_ is greater than 1, each part sums the gradients of the queries in a separate
  /// array.
  void backward_part(const BackwardArguments& args, int64_t sample, int64_t kv_head, int64_t part,
                     float* sums, float* work) const {
    const int64_t first_head = kv_head * spec_.group();
    const int64_t step = key_parts_ > 1 ? spec_.heads * spec_.key_dim : spec_.query_step();
    float* const diff_query =
        sums + part * query_floats() + sample * spec_.queries * step + first_head * spec_.key_dim;
    for (int64_t i = 0; i < spec_.queries; ++i)
      std::fill_n(diff_query + i * step, spec_.group() * spec_.key_dim, 0.0f);
    const int64_t dst_at = (sample * spec_.queries * spec_.heads + first_head) * spec_.value_dim;
    for (int64_t tile = part; tile < key_tiles_; tile += key_parts_) {
      const int64_t first = tile * AttentionTiles::kKeys;
      ops_.kernels().attention_backward(
          spec_, args.dropout,
          {.head = head(args, sample, first_head),
           .first = first,
           .count = std::min(AttentionTiles::kKeys, spec_.keys - first),
           .dst = f32(args.dst) + dst_at,
           .diff_dst = f32(args.diff_dst) + dst_at,
           .logsumexp = args.logsumexp + (sample * spec_.heads + first_head) * spec_.queries,
           .diff_query = diff_query,
           .diff_query_step = step,
           .diff_key = f32(args.diff_key) + sample * spec_.keys * spec_.key_step() + kv_head * spec_.key_dim,
           .diff_value =
               f32(args.diff_value) + sample * spec_.keys * spec_.value_step() + kv_head * spec_.value_dim},
          work);
    }
  }

  /// Adds the query gradients of all parts, in the order of the parts, and writes the sums to diff_query.
  void sum_parts(const float* sums, float* diff_query) const {
    const int64_t columns = spec_.heads * spec_.key_dim, n = query_floats();
    parallel(ops_.threads(), spec_.batch * spec_.queries, 1, columns * key_parts_,
             [&](int64_t begin, int64_t end, int) {
               for (int64_t r = begin; r < end; ++r) {
                 float* const dst = diff_query + r * spec_.query_step();
                 std::copy_n(sums + r * columns, columns, dst);
                 for (int64_t part = 1; part < key_parts_; ++part) {
                   const float* const from = sums + part * n + r * columns;
                   for (int64_t c = 0; c < columns; ++c) dst[c] += from[c];
                 }
               }
             });
  }

  CpuOps& ops_;
  AttentionSpec spec_;
  int64_t work_floats_;  // number of floats that one thread needs
  int64_t key_tiles_;
  int64_t key_parts_;  // number of parts into which the keys of a head are divided in the backward pass
};

}  // namespace

std::unique_ptr<Attention> CpuOps::attention(const AttentionSpec& spec) {
  return std::make_unique<CpuAttention>(*this, spec);
}

}  // namespace dtrain::cpu
