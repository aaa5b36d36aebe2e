#include "nn/initializers/draws.h"
#include "nn/initializers/table.h"

namespace dtrain {
namespace {

struct UniformOptions {
  double minval = -0.05, maxval = 0.05;
};

class RandomUniform : public Initializer {
 public:
  explicit RandomUniform(const UniformOptions& options) : options_(options) {}
  void fill(float* values, const Shape& shape, const Philox& random) const override {
    draw_uniform(values, shape.elements(), options_.minval, options_.maxval, random);
  }

 private:
  UniformOptions options_;
};

struct NormalOptions {
  double mean = 0, stddev = 0.05;
};

Schema<NormalOptions> normal_schema(const std::string& doc) {
  return Schema<NormalOptions>(doc)
      .optional("mean", &NormalOptions::mean, "mean of the distribution")
      .optional("stddev", &NormalOptions::stddev, "standard deviation of the distribution", at_least(0.0));
}

class RandomNormal : public Initializer {
 public:
  explicit RandomNormal(const NormalOptions& options) : options_(options) {}
  void fill(float* values, const Shape& shape, const Philox& random) const override {
    draw_normal(values, shape.elements(), options_.mean, options_.stddev, random);
  }

 private:
  NormalOptions options_;
};

class TruncatedNormal : public Initializer {
 public:
  explicit TruncatedNormal(const NormalOptions& options) : options_(options) {}
  void fill(float* values, const Shape& shape, const Philox& random) const override {
    draw_truncated_normal(values, shape.elements(), options_.mean, options_.stddev, random);
  }

 private:
  NormalOptions options_;
};

}  // namespace

void add_random(Registry<Initializer>& table) {
  table.add<RandomUniform>(
      "random_uniform",
      Schema<UniformOptions>("Random numbers from the uniform distribution in [minval, maxval).")
          .example("{minval: -0.1, maxval: 0.1}")
          .optional("minval", &UniformOptions::minval, "lower limit of the numbers")
          .optional("maxval", &UniformOptions::maxval, "upper limit of the numbers"));
  table.add<RandomNormal>("random_normal", normal_schema("Random numbers from a normal distribution."));
  table.add<TruncatedNormal>(
      "truncated_normal",
      normal_schema("Random numbers from a truncated normal distribution. Numbers that differ from the mean "
                    "by more than two standard deviations are drawn again."));
}

}  // namespace dtrain
