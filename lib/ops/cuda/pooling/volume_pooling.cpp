#include "ops/cuda/pooling/volume_pooling.h"

#include <algorithm>
#include <cstddef>

namespace dtrain::cuda {
namespace {

/// Pools a volume in two steps: first within each plane, then across the planes. For maximum pooling, the
/// maximum of a window is the largest of the maxima of its planes, and its first occurrence is in the first
/// plane with this maximum. For average pooling, the mean of a window is the mean of the means of its planes,
/// because every plane of the window has the same number of pixels.
class VolumePooling final : public Pooling {
 public:
  VolumePooling(Ops& ops, const PoolingSpec& spec) {
    PoolingSpec planes = spec;
    planes.batch = spec.batch * spec.depth;
    planes.depth = planes.pool_depth = planes.stride_depth = 1;
    planes.padding.front = planes.padding.back = 0;
    planes_ = ops.pooling(planes);
    // For this step, a volume is an image in which each plane is one row.
    across_ = ops.pooling({.kind = spec.kind,
                           .batch = spec.batch,
                           .height = spec.depth,
                           .width = spec.out_height() * spec.out_width(),
                           .channels = spec.channels,
                           .pool_height = spec.pool_depth,
                           .stride_height = spec.stride_depth,
                           .padding = {.top = spec.padding.front, .bottom = spec.padding.back},
                           .training = spec.training});
    const int64_t between = planes.batch * spec.out_height() * spec.out_width() * spec.channels;
    between_bytes_ = aligned(static_cast<size_t>(between) * bytes_of(ops.compute_type()));
  }

  size_t scratch_bytes() const override {
    return between_bytes_ + std::max(planes_->scratch_bytes(), across_->scratch_bytes());
  }
  size_t saved_bytes() const override { return planes_saved() + across_->saved_bytes(); }

  void forward(const void* src, void* dst, void* saved, void* scratch) override {
    planes_->forward(src, scratch, saved, rest(scratch));
    across_->forward(scratch, dst, saved ? static_cast<std::byte*>(saved) + planes_saved() : nullptr,
                     rest(scratch));
  }
  void backward(const void* diff_dst, void* diff_src, const void* saved, void* scratch) override {
    across_->backward(diff_dst, scratch,
                      saved ? static_cast<const std::byte*>(saved) + planes_saved() : nullptr, rest(scratch));
    planes_->backward(scratch, diff_src, saved, rest(scratch));
  }

 private:
  static size_t aligned(size_t bytes) {
    constexpr size_t kAlignment = 256;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  size_t planes_saved() const { return aligned(planes_->saved_bytes()); }
  /// Returns the scratch memory that follows the pooled planes.
  void* rest(void* scratch) const { return static_cast<std::byte*>(scratch) + between_bytes_; }

  std::unique_ptr<Pooling> planes_, across_;
  size_t between_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Pooling> volume_pooling(Ops& ops, const PoolingSpec& spec) {
  return std::make_unique<VolumePooling>(ops, spec);
}

}  // namespace dtrain::cuda
