#include "data/augment/mixing.h"

#include <algorithm>
#include <cmath>

#include "data/augment/options.h"

namespace dtrain {

namespace {

/// Draws a number from the gamma distribution with shape parameter a (G. Marsaglia and W. Tsang, "A simple
/// method for generating gamma variables", 2000).
double draw_gamma(double a, Draws& draws) {
  if (a < 1) {
    const double boost = std::pow(1 - static_cast<double>(draws.uniform()), 1 / a);
    return draw_gamma(a + 1, draws) * boost;
  }
  const double d = a - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draws.normal(), v = std::pow(1 + c * x, 3);
    const double u = 1 - static_cast<double>(draws.uniform());
    if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

struct MixUpOptions {
  double alpha = 0.2;
};

class MixUpBlend final : public Mixing {
 public:
  explicit MixUpBlend(double alpha) : alpha_(alpha) {}
  Blend draw(const PictureShape&, Draws& draws) const override {
    return {static_cast<float>(draw_beta(alpha_, draws))};
  }

 private:
  double alpha_;
};

class MixUp final : public Augmentation {
 public:
  explicit MixUp(const MixUpOptions& options) : mixing_(std::make_shared<MixUpBlend>(options.alpha)) {}
  void apply(ColumnPlan&, uint32_t) const override {}
  bool needs_pictures() const override { return false; }
  std::shared_ptr<const Mixing> mixing() const override { return mixing_; }

 private:
  std::shared_ptr<const Mixing> mixing_;
};

struct CutMixOptions {
  double factor = 1;
};

class CutMixBlend final : public Mixing {
 public:
  explicit CutMixBlend(double factor) : factor_(factor) {}

  /// Draws the rectangle in the same way as Keras: it has the aspect ratio of the image, its center is a
  /// random pixel, and its share of the image's area is drawn from the beta distribution. Parts of the
  /// rectangle beyond the image's edges are cut off, so the share of the partner becomes smaller.
  Blend draw(const PictureShape& shape, Draws& draws) const override {
    const double side = std::sqrt(1 - draw_beta(factor_, draws));
    const auto height = static_cast<int64_t>(side * static_cast<double>(shape.height));
    const auto width = static_cast<int64_t>(side * static_cast<double>(shape.width));
    const int64_t x = draws.below(shape.width), y = draws.below(shape.height);
    Blend blend;
    blend.is_rectangle = true;
    blend.top = std::clamp<int64_t>(y - height / 2, 0, shape.height);
    blend.bottom = std::clamp<int64_t>(y + height / 2, 0, shape.height);
    blend.left = std::clamp<int64_t>(x - width / 2, 0, shape.width);
    blend.right = std::clamp<int64_t>(x + width / 2, 0, shape.width);
    const double area = static_cast<double>((blend.bottom - blend.top) * (blend.right - blend.left));
    blend.weight = static_cast<float>(1 - area / static_cast<double>(shape.height * shape.width));
    return blend;
  }

 private:
  double factor_;
};

class CutMix final : public Augmentation {
 public:
  explicit CutMix(const CutMixOptions& options) : mixing_(std::make_shared<CutMixBlend>(options.factor)) {}
  void apply(ColumnPlan&, uint32_t) const override {}
  std::shared_ptr<const Mixing> mixing() const override { return mixing_; }

 private:
  std::shared_ptr<const Mixing> mixing_;
};

}  // namespace

double draw_beta(double a, Draws& draws) {
  const double x = draw_gamma(a, draws), y = draw_gamma(a, draws);
  if (x + y > 0) return x / (x + y);
  // Both x and y underflowed to 0. This happens only if the parameter is so small that nearly all results are
  // close to 0 or 1.
  return draws.uniform() < 0.5f ? 0 : 1;
}

void blend_pictures(const Mixing::Blend& blend, const PictureShape& shape, const float* partner,
                    float* picture) {
  if (!blend.is_rectangle) return blend_targets(blend, partner, shape.elements(), picture);
  for (int64_t y = blend.top; y < blend.bottom; ++y) {
    const int64_t first = y * shape.row_elements() + blend.left * shape.channels;
    std::copy_n(partner + first, (blend.right - blend.left) * shape.channels, picture + first);
  }
}

void blend_targets(const Mixing::Blend& blend, const float* partner, int64_t count, float* target) {
  const float mine = blend.weight, others = 1 - blend.weight;
  for (int64_t i = 0; i < count; ++i) target[i] = mine * target[i] + others * partner[i];
}

void add_mix_up(Registry<Augmentation>& table) {
  Schema<MixUpOptions> schema(
      "Blends the inputs and targets of each sample with those of another training sample. All inputs and "
      "targets must be float32; the transform one_hot converts class numbers.");
  schema.example("{alpha: 0.2}");
  schema.optional("alpha", &MixUpOptions::alpha,
                  "parameter of the beta distribution (alpha, alpha), from which the weight of the sample is "
                  "drawn. The other sample gets the rest of the weight",
                  between<double>(1e-3, 1e3));
  table.add<MixUp>("mix_up", schema);
}

void add_cut_mix(Registry<Augmentation>& table) {
  Schema<CutMixOptions> schema(
      "Replaces a rectangle of each image with the same rectangle of another training image. Targets, and "
      "inputs that are not images, are blended in proportion to the area of the rectangle. All inputs and "
      "targets must be float32; the transform one_hot converts class numbers.");
  schema.example("{factor: 1.0}");
  schema.optional("factor", &CutMixOptions::factor,
                  "parameter of the beta distribution (factor, factor). A number drawn from this "
                  "distribution is the fraction of the image that is kept; the rest is replaced",
                  between<double>(1e-3, 1e3));
  table.add<CutMix>("cut_mix", schema);
}

}  // namespace dtrain
