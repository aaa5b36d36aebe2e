// Tests batch normalization over the rows of one device, and over the rows of several replicas.
#include <numeric>

#include <doctest/doctest.h>

#include "ops/images.h"
#include "ops/math/normalization.h"

namespace dtrain::test {
namespace {

/// Reference results of batch normalization in double precision.
struct Normalized {
  Doubles mean, variance, dst, diff_src, diff_gamma, diff_beta;
};

using Mask = std::vector<uint8_t>;  // a byte per row; empty: no row is masked

Normalized reference(const BatchNormalizationSpec& spec, const Floats& x, const Floats& gamma,
                     const Floats& beta, const Floats& dy, const Mask& mask = {}) {
  const auto channels = static_cast<size_t>(spec.channels);
  const auto valid = [&](size_t i) { return mask.empty() || mask[i / channels] != 0; };
  double n = 0;
  for (size_t i = 0; i < x.size(); i += channels) n += valid(i) ? 1 : 0;
  Normalized r{Doubles(channels), Doubles(channels), Doubles(x.size()),
               Doubles(x.size()), Doubles(channels), Doubles(channels)};
  Doubles diff(x.size());
  const auto inverse = [&](size_t c) {
    return 1 / std::sqrt(r.variance[c] + static_cast<double>(spec.epsilon));
  };
  const auto normal = [&](size_t i) {
    return (static_cast<double>(x[i]) - r.mean[i % channels]) * inverse(i % channels);
  };
  const auto factor = [&](size_t c) { return spec.scale ? static_cast<double>(gamma[c]) : 1; };
  for (size_t i = 0; i < x.size(); ++i)
    if (valid(i)) r.mean[i % channels] += static_cast<double>(x[i]) / n;
  for (size_t i = 0; i < x.size(); ++i)
    if (valid(i))
      r.variance[i % channels] += std::pow(static_cast<double>(x[i]) - r.mean[i % channels], 2) / n;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % channels;
    const double y = normal(i) * factor(c) + (spec.center ? static_cast<double>(beta[c]) : 0);
    r.dst[i] = spec.relu ? std::max(y, 0.0) : y;
    diff[i] = spec.relu && y <= 0 ? 0 : static_cast<double>(dy[i]);
    r.diff_gamma[c] += diff[i] * normal(i);
    r.diff_beta[c] += diff[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % channels;
    const double by_statistics = valid(i) ? (r.diff_beta[c] + normal(i) * r.diff_gamma[c]) / n : 0;
    r.diff_src[i] = factor(c) * inverse(c) * (diff[i] - by_statistics);
  }
  return r;
}

constexpr float kShare = 0.3f;

/// Returns the statistics times kShare, which is the share of this replica in the moving averages.
Floats shared(Floats statistics) {
  for (float& value : statistics) value *= kShare;
  return statistics;
}

/// Checks all passes against the reference. `offset` is added to all values, to test values far from zero.
void check(Device& device, const BatchNormalizationSpec& spec, float offset = 0) {
  const Shape shape{spec.batch, spec.height, spec.width, spec.channels};
  const auto channels = static_cast<size_t>(spec.channels);
  Floats x = device.random(shape.elements(), 1, 3);
  for (float& value : x) value += offset;
  x = device.exact(x);
  const Floats dy = device.random(shape.elements(), 2);
  const Floats gamma = random_floats(spec.channels, 3), beta = random_floats(spec.channels, 4);
  const Array<float> own_gamma = device.array(gamma), own_beta = device.array(beta);
  const float *scale = spec.scale ? own_gamma.data() : nullptr,
              *shift = spec.center ? own_beta.data() : nullptr;
  const Floats addend = device.random(shape.elements(), 5);
  BatchNormalizationSpec linear = spec;
  linear.relu = spec.relu && !spec.adds;
  Normalized expected = reference(linear, x, gamma, beta, dy);
  if (spec.adds) {
    for (size_t i = 0; i < x.size(); ++i) {
      expected.dst[i] += static_cast<double>(addend[i]);
      if (spec.relu) expected.dst[i] = std::max(expected.dst[i], 0.0);
    }
  }

  const auto normalization = device.ops().batch_normalization(spec);
  const auto scratch = device.memory(normalization->scratch_bytes()),
             saved = device.memory(normalization->saved_bytes());
  // The addend and the destination may be the same array.
  const TypedArray own_x = laid_out(device, x, shape, spec.layout),
                   y = spec.adds ? device.typed(addend) : device.typed(x.size());
  const Array<float> mean = device.floats(channels), variance = device.floats(channels),
                     diff_gamma = device.floats(channels), diff_beta = device.floats(channels),
                     diff_mean = device.floats(channels), diff_variance = device.floats(channels);
  normalization->forward_training({.src = own_x.data(),
                                   .gamma = scale,
                                   .beta = shift,
                                   .dst = y.data(),
                                   .mean = mean.data(),
                                   .variance = variance.data(),
                                   .saved = saved.data(),
                                   .scratch = scratch.data(),
                                   .addend = spec.adds ? y.data() : nullptr});
  check_close(plain(device, y, shape, spec.layout), expected.dst, device.tolerance(1e-5));
  check_close(mean.read(), expected.mean, 1e-6);
  check_close(variance.read(), expected.variance, 1e-5);

  const TypedArray diff = laid_out(device, dy, shape, spec.layout), apart = device.typed(x.size());
  for (const TypedArray* to : {&apart, &diff}) {
    normalization->backward({.src = own_x.data(),
                             .gamma = scale,
                             .mean = mean.data(),
                             .variance = variance.data(),
                             .diff_dst = diff.data(),
                             .diff_src = to->data(),
                             .diff_gamma = spec.scale ? diff_gamma.data() : nullptr,
                             .diff_beta = spec.center ? diff_beta.data() : nullptr,
                             .diff_mean = diff_mean.data(),
                             .diff_variance = diff_variance.data(),
                             .share = kShare,
                             .saved = saved.data(),
                             .scratch = scratch.data()});
  }
  CHECK(diff.read() == apart.read());
  check_close(plain(device, diff, shape, spec.layout), expected.diff_src, device.tolerance(2e-5));
  if (spec.scale) check_close(diff_gamma.read(), expected.diff_gamma, 2e-5);
  if (spec.center) check_close(diff_beta.read(), expected.diff_beta, 2e-5);
  CHECK(diff_mean.read() == shared(mean.read()));
  CHECK(diff_variance.read() == shared(variance.read()));

  // Inference uses means that are rounded to float32, which is too imprecise with an offset.
  if (offset != 0) return;
  const TypedArray inferred = device.typed(spec.adds ? addend : Floats(x.size(), NAN));
  normalization->forward_inference({.src = own_x.data(),
                                    .gamma = scale,
                                    .beta = shift,
                                    .mean = mean.data(),
                                    .variance = variance.data(),
                                    .dst = inferred.data(),
                                    .scratch = scratch.data(),
                                    .addend = spec.adds ? inferred.data() : nullptr});
  check_close(plain(device, inferred, shape, spec.layout), expected.dst, device.tolerance(1e-5));
}

/// The part of a batch that one replica has, and the results of this replica.
struct Replica {
  Replica(Device& device, BatchNormalizationSpec spec, int64_t rows, int replicas, const Floats& x,
          const Floats& dy, const Mask& masks)
      : shape{rows, spec.height, spec.width, spec.channels}, channels(static_cast<size_t>(spec.channels)) {
    if (rows == 0) return;
    spec.batch = rows;
    if (spec.masked) mask = device.array(masks);
    op = device.ops().synchronized_batch_normalization(spec, replicas);
    scratch = device.memory(op->scratch_bytes());
    saved = device.memory(op->saved_bytes());
    src = laid_out(device, x, shape, spec.layout);
    diff = laid_out(device, dy, shape, spec.layout);
    dst = device.typed(x.size());
    diff_src = device.typed(x.size());
    for (Array<float>* one : {&mean, &variance, &diff_gamma, &diff_beta, &diff_mean, &diff_variance})
      *one = device.floats(channels);
  }

  BatchNormalization::TrainingArguments forward(const float* gamma, const float* beta) const {
    return {.src = src.data(),
            .gamma = gamma,
            .beta = beta,
            .dst = dst.data(),
            .mean = mean.data(),
            .variance = variance.data(),
            .saved = saved.data(),
            .scratch = scratch.data(),
            .mask = mask.data()};
  }
  BatchNormalization::BackwardArguments backward(const float* gamma, bool scale, bool center,
                                                 void* to) const {
    return {.src = src.data(),
            .gamma = gamma,
            .mean = mean.data(),
            .variance = variance.data(),
            .diff_dst = diff.data(),
            .diff_src = to,
            .diff_gamma = scale ? diff_gamma.data() : nullptr,
            .diff_beta = center ? diff_beta.data() : nullptr,
            .diff_mean = diff_mean.data(),
            .diff_variance = diff_variance.data(),
            .share = kShare,
            .saved = saved.data(),
            .scratch = scratch.data(),
            .mask = mask.data()};
  }

  Shape shape;
  size_t channels;
  std::unique_ptr<SynchronizedBatchNormalization> op;  // null if the replica has no rows
  Array<float> scratch, saved, mean, variance, diff_gamma, diff_beta, diff_mean, diff_variance;
  TypedArray src, diff, dst, diff_src;
  Array<uint8_t> mask;  // empty unless spec.masked
};

/// Checks synchronized normalization of a batch that is divided among replicas. `shares` has the number of
/// samples of each replica.
void check_synchronized(Device& device, const BatchNormalizationSpec& spec,
                        const std::vector<int64_t>& shares, float offset = 0, const Mask& mask = {}) {
  REQUIRE(std::accumulate(shares.begin(), shares.end(), int64_t{0}) == spec.batch);
  const int64_t sample = spec.height * spec.width * spec.channels;
  Floats x = device.random(spec.batch * sample, 1, 3);
  for (float& value : x) value += offset;
  x = device.exact(x);
  const Floats dy = device.random(spec.batch * sample, 2);
  const Floats gamma = random_floats(spec.channels, 3), beta = random_floats(spec.channels, 4);
  const Array<float> own_gamma = device.array(gamma), own_beta = device.array(beta);
  const float *scale = spec.scale ? own_gamma.data() : nullptr,
              *shift = spec.center ? own_beta.data() : nullptr;
  const Normalized expected = reference(spec, x, gamma, beta, dy, mask);

  const auto count = static_cast<int>(shares.size());
  std::vector<Replica> replicas;
  const auto samples_of = [&](const auto& whole, int64_t begin, int64_t rows) {
    const auto size = static_cast<int64_t>(whole.size()) / spec.batch;
    return std::decay_t<decltype(whole)>(whole.begin() + begin * size, whole.begin() + (begin + rows) * size);
  };
  int64_t first = 0;
  for (const int64_t rows : shares) {
    replicas.emplace_back(device, spec, rows, count, samples_of(x, first, rows), samples_of(dy, first, rows),
                          samples_of(mask, first, rows));
    first += rows;
  }
  // Gathers the values of all replicas; replicas without rows contribute zeros.
  const auto gathered = [&](int64_t numbers, auto&& sum) {
    std::vector<double> all(static_cast<size_t>(count * numbers));
    for (size_t r = 0; r < replicas.size(); ++r) {
      if (!replicas[r].op) continue;
      const Array<double> mine = device.array(std::vector<double>(static_cast<size_t>(numbers), NAN));
      sum(replicas[r], mine.data());
      const std::vector<double> sums = mine.read();
      std::copy(sums.begin(), sums.end(), all.begin() + static_cast<long>(r) * numbers);
    }
    return device.array(all);
  };

  const Array<double> moments =
      gathered(math::moments_size(spec.channels), [&](const Replica& replica, double* mine) {
        replica.op->moments(replica.forward(scale, shift), mine);
      });
  Floats y;
  for (const Replica& replica : replicas) {
    if (!replica.op) continue;
    replica.op->forward(replica.forward(scale, shift), moments.data());
    const Floats own = plain(device, replica.dst, replica.shape, spec.layout);
    y.insert(y.end(), own.begin(), own.end());
    check_close(replica.mean.read(), expected.mean, 1e-6);
    check_close(replica.variance.read(), expected.variance, 1e-5);
    CHECK(replica.mean.read() == replicas[0].mean.read());  // same bits
    CHECK(replica.variance.read() == replicas[0].variance.read());
  }
  check_close(y, expected.dst, device.tolerance(1e-5));

  const Array<double> sums =
      gathered(math::gradient_sums_size(spec.channels), [&](const Replica& replica, double* mine) {
        replica.op->gradient_sums(replica.backward(scale, spec.scale, spec.center, nullptr), mine);
      });
  Floats diff_src;
  Floats diff_gamma(replicas[0].channels), diff_beta(replicas[0].channels);
  for (const Replica& replica : replicas) {
    if (!replica.op) continue;
    for (void* to : {replica.diff_src.data(), replica.diff.data()})  // in a separate array, then in place
      replica.op->backward(replica.backward(scale, spec.scale, spec.center, to), sums.data());
    CHECK(replica.diff.read() == replica.diff_src.read());
    CHECK(replica.diff_mean.read() == shared(replica.mean.read()));
    CHECK(replica.diff_variance.read() == shared(replica.variance.read()));
    const Floats own = plain(device, replica.diff_src, replica.shape, spec.layout);
    diff_src.insert(diff_src.end(), own.begin(), own.end());
    const Floats of_gamma = replica.diff_gamma.read(), of_beta = replica.diff_beta.read();
    for (size_t c = 0; c < replica.channels; ++c) {
      diff_gamma[c] += of_gamma[c];
      diff_beta[c] += of_beta[c];
    }
  }
  check_close(diff_src, expected.diff_src, device.tolerance(2e-5));
  if (spec.scale) check_close(diff_gamma, expected.diff_gamma, 2e-5);
  if (spec.center) check_close(diff_beta, expected.diff_beta, 2e-5);
}

/// Calls check(spec) for every layout and every combination of scale, center, relu and addition.
template <class Check>
void for_each_spec(const Device& device, int64_t batch, Check&& check) {
  for (const int64_t channels : {1, 5, 16, 32}) {
    for (const Layout layout : layouts_of(device, channels)) {
      for (const int parts : {0, 1, 2, 3}) {
        for (const bool relu : {false, true}) {
          CAPTURE(channels);
          CAPTURE(static_cast<int>(layout));
          CAPTURE(parts);
          CAPTURE(relu);
          BatchNormalizationSpec spec{.batch = batch, .height = 5, .width = 3, .channels = channels};
          spec.scale = (parts & 1) != 0;
          spec.center = (parts & 2) != 0;
          spec.relu = relu;
          spec.layout = layout;
          check(spec);
        }
      }
    }
  }
}

/// Returns the spec of a normalization of 40 rows with the same number of channels.
BatchNormalizationSpec rows_like(BatchNormalizationSpec spec) {
  spec.batch = 40;
  spec.height = spec.width = 1;
  return spec;
}

}  // namespace

DEVICE_TEST_CASE("batch normalization of images and rows matches the reference") {
  for_each_spec(device, 6, [&](const BatchNormalizationSpec& spec) {
    check(device, spec);
    if (spec.layout == Layout::plain) check(device, rows_like(spec));
  });
}

// This test runs only on GPUs. On a CPU, float32 sums over these many rows have rounding errors that
// exceed the tolerance, because positive and negative values nearly cancel.
DEVICE_TEST_CASE(
    "batch normalization of many rows matches the reference, also with a second reduction kernel") {
  if (!device.is_gpu()) return;
  for (const int64_t channels : {5, 16})
    check(device, {.batch = 200, .height = 16, .width = channels == 5 ? 8 : 16, .channels = channels});
}

DEVICE_TEST_CASE("batch normalization on a GPU keeps its precision for values far from zero") {
  if (!device.is_gpu() || device.math.type != DType::float32) return;
  for (const int64_t channels : {1, 5, 16, 32}) {
    CAPTURE(channels);
    const BatchNormalizationSpec spec{.batch = 64, .height = 20, .width = 9, .channels = channels};
    check(device, spec, 10000);
    check_synchronized(device, spec, {30, 34}, 10000);
  }
}

DEVICE_TEST_CASE(
    "batch normalization fused with an addition matches the reference on devices that support it") {
  CHECK(device.ops().adds_in_normalization() == device.is_gpu());
  if (!device.is_gpu()) return;
  for_each_spec(device, 6, [&](BatchNormalizationSpec spec) {
    spec.adds = true;
    check(device, spec);
    check(device, rows_like(spec));
  });
}

DEVICE_TEST_CASE("batch normalization over several replicas equals that of one device") {
  for_each_spec(device, 7, [&](const BatchNormalizationSpec& spec) {
    check_synchronized(device, spec, {3, 2, 2});
    if (!spec.scale || !spec.center) return;
    check_synchronized(device, spec, {7});
    check_synchronized(device, spec, {6, 0, 1, 0});
    if (spec.layout == Layout::plain) check_synchronized(device, rows_like(spec), {1, 20, 19});
  });
}

DEVICE_TEST_CASE("the statistics of batch normalization leave out masked rows") {
  // Calls check_synchronized() with a mask. valid(row) is false if the row is masked.
  const auto check_masked = [&](BatchNormalizationSpec spec, const std::vector<int64_t>& shares, auto&& valid,
                                float offset = 0) {
    CAPTURE(spec.channels);
    CAPTURE(spec.relu);
    spec.masked = true;
    Mask mask;
    for (int64_t row = 0; row < spec.batch * spec.height * spec.width; ++row) mask.push_back(valid(row));
    check_synchronized(device, spec, shares, offset, mask);
  };
  for (const int64_t channels : {1, 5, 16, 100}) {
    BatchNormalizationSpec spec{.batch = 30, .height = 4, .width = 3, .channels = channels};
    for (const bool relu : {false, true}) {
      spec.relu = relu;
      check_masked(spec, {30}, [](int64_t row) { return row % 3 != 0; });
      check_masked(spec, {10, 20}, [](int64_t row) { return row >= 120 && row % 5 == 1; });
      check_masked(spec, {30}, [](int64_t row) { return row % 45 == 27; });
    }
    spec.batch = 2;
    check_masked(spec, {2}, [](int64_t) { return false; });
    if (!device.is_gpu()) continue;
    spec.batch = 600;
    check_masked(spec, {600}, [](int64_t row) { return row % 7 > 2; });
    if (device.math.type == DType::float32)
      check_masked(
          spec, {600}, [](int64_t row) { return row % 7 > 2; }, 10000);
  }
  // On a GPU, a second kernel finishes the sums over these many rows.
  if (device.is_gpu())
    check_masked({.batch = 200, .height = 16, .width = 8, .channels = 5}, {200},
                 [](int64_t row) { return row % 2 != 0; });
}

TEST_CASE("synchronized normalization keeps its precision if the mean is much larger than the deviation") {
  on_every_cpu([](Device& device) {
    for (const Layout layout : layouts_of(device, 16)) {
      CAPTURE(static_cast<int>(layout));
      const BatchNormalizationSpec spec{
          .batch = 64, .height = 20, .width = 9, .channels = 16, .layout = layout};
      check_synchronized(device, spec, {30, 34}, 10000);
    }
  });
}

TEST_CASE("merged moments equal the moments of all values, also for empty parts") {
  math::Moments all;
  all.add({});
  CHECK(all.count == 0);
  const std::vector<std::vector<double>> parts{{}, {1e9 + 4, 1e9 + 7}, {1e9 + 13}, {}, {1e9 + 16}};
  for (const auto& part : parts) {
    math::Moments one;
    for (const double value : part) one.add({1, value, 0});
    all.add(one);
  }
  CHECK(all.count == 4);
  CHECK(all.mean == 1e9 + 10);
  CHECK(all.squares == 90);
}

}  // namespace dtrain::test
