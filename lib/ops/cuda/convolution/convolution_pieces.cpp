#include "ops/cuda/convolution/convolution_pieces.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace dtrain::cuda {
namespace {

int64_t src_image(const ConvolutionSpec& spec) {
  return spec.src_pixels() * spec.channels;
}
int64_t dst_image(const ConvolutionSpec& spec) {
  return spec.dst_pixels() * spec.filters;
}
int64_t weights(const ConvolutionSpec& spec) {
  return spec.kernel_pixels() * spec.filter_channels() * spec.filters;
}

/// Returns the smallest number of images that together take a multiple of 16 bytes, if an image has
/// `elements` elements. A piece must have a multiple of this number of images, so that the next piece begins
/// at an address that cuDNN can read.
int64_t aligned_images(int64_t elements, DType type) {
  constexpr int64_t kAlignment = 16;
  return kAlignment / std::gcd(kAlignment, elements * static_cast<int64_t>(bytes_of(type)));
}

/// A convolution whose batch is split into pieces of `images` images; the last piece may be smaller. Images
/// have the plain layout, so the images of a piece are contiguous in memory.
class ConvolutionInPieces final : public Convolution {
 public:
  ConvolutionInPieces(Ops& ops, const ConvolutionSpec& spec, int64_t images, const MakeConvolution& make)
      : ops_(ops), spec_(spec), images_(images), whole_(make(batch_of(images))) {
    if (const int64_t rest = spec.batch % images; rest > 0) rest_ = make(batch_of(rest));
  }

  Layout src_layout() const override { return Layout::plain; }
  Layout dst_layout() const override { return Layout::plain; }
  /// Returns the total size of one piece's filter gradient and of the scratch memory of the piece itself. The
  /// scratch memory follows the gradient.
  size_t scratch_bytes() const override {
    return gradient_bytes() + most([](const Convolution& piece) { return piece.scratch_bytes(); });
  }
  /// Returns the size of one copy of the kernel, which all pieces share.
  size_t saved_bytes() const override {
    return most([](const Convolution& piece) { return piece.saved_bytes(); });
  }
  Remarks remarks() const override {
    Remarks remarks = whole_->remarks();
    if (remarks.warning.empty() && rest_) remarks.warning = rest_->remarks().warning;
    return remarks;
  }
  bool computes_bias_gradient() const override { return false; }

  void forward(const void* src, const void* kernel, const void* bias, void* dst, void* saved,
               void* scratch) override {
    each_piece([&](Convolution& piece, int64_t first) {
      piece.forward(src_at(src, first), kernel, bias, dst_at(dst, first), saved, own_scratch(scratch));
    });
  }
  void backward_data(const void* diff_dst, const void* kernel, void* diff_src, const void* saved,
                     void* scratch) override {
    each_piece([&](Convolution& piece, int64_t first) {
      piece.backward_data(dst_at(diff_dst, first), kernel, src_at(diff_src, first), saved,
                          own_scratch(scratch));
    });
  }
  void backward_filter(const void* src, const void* diff_dst, float* diff_kernel, float* diff_bias,
                       void* scratch) override {
    auto* part = static_cast<float*>(scratch);
    each_piece([&](Convolution& piece, int64_t first) {
      piece.backward_filter(src_at(src, first), dst_at(diff_dst, first), first == 0 ? diff_kernel : part,
                            diff_bias, own_scratch(scratch));
      if (first > 0) ops_.scale_add(diff_kernel, part, 1, 1, weights(spec_));
    });
  }

 private:
  ConvolutionSpec batch_of(int64_t images) const {
    ConvolutionSpec piece = spec_;
    piece.batch = images;
    return piece;
  }
  /// Returns the larger value of bytes(piece) for the two piece sizes.
  template <class Bytes>
  size_t most(Bytes&& bytes) const {
    return std::max(bytes(*whole_), rest_ ? bytes(*rest_) : 0);
  }
  size_t gradient_bytes() const {
    constexpr size_t kAlignment = 256;
    const size_t bytes = static_cast<size_t>(weights(spec_)) * sizeof(float);
    return spec_.training ? (bytes + kAlignment - 1) / kAlignment * kAlignment : 0;
  }
  void* own_scratch(void* scratch) const {
    return scratch ? static_cast<char*>(scratch) + gradient_bytes() : nullptr;
  }
  const void* src_at(const void* src, int64_t image) const { return at(src, image * src_image(spec_)); }
  void* src_at(void* src, int64_t image) const { return at(src, image * src_image(spec_)); }
  const void* dst_at(const void* dst, int64_t image) const { return at(dst, image * dst_image(spec_)); }
  void* dst_at(void* dst, int64_t image) const { return at(dst, image * dst_image(spec_)); }
  const void* at(const void* array, int64_t element) const {
    return static_cast<const char*>(array) + static_cast<size_t>(element) * bytes_of(ops_.compute_type());
  }
  void* at(void* array, int64_t element) const {
    return static_cast<char*>(array) + static_cast<size_t>(element) * bytes_of(ops_.compute_type());
  }
  /// Calls call(piece, index of the piece's first image) for each piece, in the order of the images.
  template <class Call>
  void each_piece(Call&& call) {
    for (int64_t first = 0; first < spec_.batch; first += images_)
      call(first + images_ <= spec_.batch ? *whole_ : *rest_, first);
  }

  Ops& ops_;
  ConvolutionSpec spec_;
  int64_t images_;
  // `whole_` computes pieces of `images_` images each. `rest_` computes the smaller last piece; it is null if
  // all pieces have the same size.
  std::unique_ptr<Convolution> whole_, rest_;
};

}  // namespace

int64_t images_per_piece(const ConvolutionSpec& spec, DType type, const PieceLimits& limits) {
  const int64_t image = std::max(src_image(spec), dst_image(spec));
  const int64_t most = std::min(limits.images, limits.elements / image);
  if (spec.batch <= most) return spec.batch;
  const int64_t unit = std::max(aligned_images(src_image(spec), type), aligned_images(dst_image(spec), type));
  if (most < unit)
    throw Unsupported(fmt::format(
        "cuDNN supports arrays of at most {} elements, but even the smallest possible part of this batch has "
        "more elements: {} image{} of up to {} elements each",
        limits.elements, unit, unit == 1 ? "" : "s", image));
  const int64_t greatest = most / unit * unit, pieces = (spec.batch + greatest - 1) / greatest;
  return ((spec.batch + pieces - 1) / pieces + unit - 1) / unit * unit;
}

std::unique_ptr<Convolution> convolution_in_pieces(Ops& ops, const ConvolutionSpec& spec,
                                                   const MakeConvolution& make, const PieceLimits& limits) {
  const int64_t images = images_per_piece(spec, ops.compute_type(), limits);
  if (images == spec.batch) return make(spec);
  return std::make_unique<ConvolutionInPieces>(ops, spec, images, make);
}

}  // namespace dtrain::cuda
