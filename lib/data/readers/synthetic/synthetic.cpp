// The synthetic reader: random samples without a file, for measuring speed and for trying out a model.
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "data/readers/binding.h"
#include "data/readers/synthetic/random_fill.h"

namespace dtrain {

namespace {

enum class Distribution { uniform, normal };

}  // namespace

template <>
inline const EnumNames<Distribution> names_of<Distribution> = {{Distribution::uniform, "uniform"},
                                                               {Distribution::normal, "normal"}};

namespace {

struct SyntheticInput {
  Distribution distribution = Distribution::uniform;
  double low = 0, high = 1, mean = 0, stddev = 1;

  static const Schema<SyntheticInput>& schema() {
    static const auto all =
        Schema<SyntheticInput>("The distribution of the inputs.")
            .optional("distribution", &SyntheticInput::distribution, "distribution of the inputs")
            .optional("low", &SyntheticInput::low, "for `uniform`: the lowest value")
            .optional("high", &SyntheticInput::high, "for `uniform`: the upper bound, which is excluded")
            .optional("mean", &SyntheticInput::mean, "for `normal`: the mean")
            .optional("stddev", &SyntheticInput::stddev, "for `normal`: the standard deviation",
                      at_least(0.0))
            .rule([](const SyntheticInput& input, const ConfigNode& node, Diagnostics& diagnostics) {
              for (const double value :
                   {input.low, input.high, input.high - input.low, input.mean, input.stddev})
                if (!std::isfinite(static_cast<float>(value)))
                  return diagnostics.error(node, fmt::format("'low', 'high', 'mean', 'stddev' and high - low "
                                                             "must be in the range of float32, found {}",
                                                             value));
              if (input.low >= input.high)
                diagnostics.error(node, fmt::format("'low' must be less than 'high', but they are {} and {}",
                                                    input.low, input.high));
            });
    return all;
  }
};

struct SyntheticTarget {
  std::optional<int64_t> classes;
  std::optional<Shape> shape;

  static const Schema<SyntheticTarget>& schema() {
    static const auto all =
        Schema<SyntheticTarget>("The random numbers of a target.")
            .optional("classes", &SyntheticTarget::classes,
                      "the number of classes. The target is a random class index from 0 to classes - 1",
                      at_least(std::optional<int64_t>(1)))
            .optional("shape", &SyntheticTarget::shape,
                      "the shape of the target. Its values are uniformly distributed in [0, 1)")
            .rule([](const SyntheticTarget& target, const ConfigNode& node, Diagnostics& diagnostics) {
              if (target.classes.has_value() == target.shape.has_value())
                diagnostics.error(node,
                                  "give either 'classes' (for a class index) or 'shape' (for an array)");
              else if (target.classes && *target.classes > INT32_MAX)
                diagnostics.error(
                    node, fmt::format("expected at most {} classes, found {}", INT32_MAX, *target.classes));
            });
    return all;
  }
};

struct SyntheticOptions {
  int64_t samples = 0;
  SyntheticInput input;
  std::optional<SyntheticTarget> target;
  Named<SyntheticTarget> targets;
  uint64_t seed = 0;
};

/// Writes one row of numbers.
using FillRow = std::function<void(Philox, int64_t row, void* dst, int64_t count)>;

class SyntheticColumn final : public Column {
 public:
  SyntheticColumn(TensorSpec spec, int64_t size, Philox random, FillRow fill)
      : spec_(std::move(spec)), size_(size), random_(random), fill_(std::move(fill)) {}
  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return size_; }
  bool in_memory() const override { return true; }

 protected:
  void read_rows(std::span<const int64_t> rows, void* dst) const override {
    auto* out = static_cast<std::byte*>(dst);
    const int64_t elements = row_elements();
    const size_t bytes = row_bytes();
    for (const int64_t row : rows) {
      fill_(random_, row, out, elements);
      out += bytes;
    }
  }

 private:
  TensorSpec spec_;
  int64_t size_;
  Philox random_;
  FillRow fill_;
};

FillRow integers_from(int32_t low, uint32_t range) {
  return [=](Philox random, int64_t row, void* dst, int64_t count) {
    fill_integers(random, row, low, range, static_cast<int32_t*>(dst), count);
  };
}

FillRow uniform_from(float low, float high) {
  return [=](Philox random, int64_t row, void* dst, int64_t count) {
    fill_uniform(random, row, low, high, static_cast<float*>(dst), count);
  };
}

class SyntheticReader final : public Reader {
 public:
  explicit SyntheticReader(const SyntheticOptions& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    Columns columns;
    for (const TensorSpec& wanted : request.inputs)
      columns.push_back(column(wanted, columns.size(), input_fill(wanted, request)));
    if (request.targets.empty()) return columns;
    const auto targets = Binding<SyntheticTarget>{options_.target, options_.targets}.resolve(
        request.targets, "target", "targets", request);
    for (size_t i = 0; i < targets.size(); ++i)
      columns.push_back(target_column(request.targets[i], targets[i], columns.size()));
    return columns;
  }
  std::vector<std::string> files() const override { return {}; }
  bool has_shapes() const override { return false; }

 private:
  /// Returns a column of random rows. Each `index` has a separate random stream.
  std::shared_ptr<const Column> column(const TensorSpec& wanted, size_t index, FillRow fill) const {
    TensorSpec spec{"synthetic " + wanted.name, wanted.shape,
                    wanted.dtype == DType::float32 ? DType::float32 : DType::int32};
    return std::make_shared<SyntheticColumn>(std::move(spec), options_.samples,
                                             Philox::of(options_.seed, static_cast<uint32_t>(index)),
                                             std::move(fill));
  }

  FillRow input_fill(const TensorSpec& wanted, const ReadRequest& request) const {
    const SyntheticInput& input = options_.input;
    if (wanted.dtype != DType::float32) {
      const double most = input.high - input.low;
      if (input.distribution != Distribution::uniform || most < 2 || most > UINT32_MAX ||
          input.low < INT32_MIN || input.high - 1 > INT32_MAX ||
          input.low != static_cast<double>(static_cast<int64_t>(input.low)))
        request.fail(
            fmt::format("synthetic: the input '{}' has integers, so it needs a uniform distribution with at "
                        "least two int32 numbers from low to high - 1, found {}",
                        wanted.name,
                        input.distribution != Distribution::uniform
                            ? std::string("a normal distribution")
                            : fmt::format("{} to {}", input.low, input.high - 1)));
      return integers_from(static_cast<int32_t>(input.low), static_cast<uint32_t>(most));
    }
    if (input.distribution == Distribution::uniform)
      return uniform_from(static_cast<float>(input.low), static_cast<float>(input.high));
    return [mean = static_cast<float>(input.mean), stddev = static_cast<float>(input.stddev)](
               Philox random, int64_t row, void* dst, int64_t count) {
      fill_normal(random, row, mean, stddev, static_cast<float*>(dst), count);
    };
  }

  std::shared_ptr<const Column> target_column(const TensorSpec& wanted, const SyntheticTarget& target,
                                              size_t index) const {
    TensorSpec spec = wanted;
    if (target.classes) {
      spec.dtype = DType::int32;
      return column(spec, index, integers_from(0, static_cast<uint32_t>(*target.classes)));
    }
    spec.shape = *target.shape;
    spec.dtype = DType::float32;
    return column(spec, index, uniform_from(0, 1));
  }

  SyntheticOptions options_;
};

}  // namespace

void add_synthetic(Registry<Reader>& table) {
  Schema<SyntheticOptions> schema(
      "Random samples in the shapes of the model's inputs and targets. Each value depends only on the seed, "
      "the sample's number and the position in the array.");
  schema.example("{samples: 1000, target: {classes: 10}}");
  schema
      .required("samples", &SyntheticOptions::samples, "the number of samples",
                between<int64_t>(1, int64_t{1} << 32))
      .optional("input", &SyntheticOptions::input,
                "distribution of the inputs. Integer inputs need a uniform distribution with at least two "
                "integers in [low, high)")
      .optional("target", &SyntheticOptions::target, "the only target: {classes: n} or {shape: [...]}")
      .optional("targets", &SyntheticOptions::targets, "each target, by output name")
      .optional("seed", &SyntheticOptions::seed, "seed of the random numbers")
      .rule([](const SyntheticOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
        if (options.target && !options.targets.empty())
          diagnostics.error(node,
                            "give either 'target' (for the only target) or 'targets' (for several targets, "
                            "by name), not both");
      });
  table.add<SyntheticReader>("synthetic", schema);
}

}  // namespace dtrain
