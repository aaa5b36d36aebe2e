// Compares attention with a plain loop in double precision. The gradients of this loop are compared with
// finite differences.
#include "ops/attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "ops/fixture.h"

namespace dtrain {
using namespace test;

namespace {

constexpr uint64_t kStep = 7, kFirstSample = 5;
const Philox kRandom = Philox::of(3, 4);

/// The arrays of one call.
struct AttentionData {
  Floats query, key, value, diff_dst;
  std::optional<std::vector<uint8_t>> mask;

  AttentionData(const AttentionSpec& s, const Device& device, bool masked)
      : query(device.random(s.batch * s.queries * s.query_step(), 1)),
        key(device.random(s.batch * s.keys * s.key_step(), 2)),
        value(device.random(s.batch * s.keys * s.value_step(), 3)),
        diff_dst(device.random(s.batch * s.queries * s.heads * s.value_dim, 4)) {
    if (!masked) return;
    // The first sample has no valid key; the other samples have some valid keys.
    mask.emplace(static_cast<size_t>(s.batch * s.keys), uint8_t{0});
    for (size_t i = static_cast<size_t>(s.keys); i < mask->size(); ++i) (*mask)[i] = i % 3 != 1;
  }
};

struct AttentionResults {
  Doubles dst, diff_query, diff_key, diff_value;
};

/// Computes the attention of one query by the formula, and adds its output and its part of the gradients to
/// `out`.
void add_query(const AttentionSpec& s, const AttentionData& in, int64_t b, int64_t h, int64_t i,
               AttentionResults& out) {
  const auto at = [](int64_t place) { return static_cast<size_t>(place); };
  const int64_t g = h / s.group(), dst = ((b * s.queries + i) * s.heads + h) * s.value_dim,
                query = (b * s.queries + i) * s.query_step() + h * s.key_dim;
  const auto key = [&](int64_t j) { return (b * s.keys + j) * s.key_step() + g * s.key_dim; };
  const auto value = [&](int64_t j) { return (b * s.keys + j) * s.value_step() + g * s.value_dim; };
  const double scale = 1 / std::sqrt(static_cast<double>(s.key_dim));
  Doubles weights(at(s.keys)), factors(at(s.keys), 1.0);
  double sum = 0;
  for (int64_t j = 0; j < s.keys; ++j) {
    double score = 0;
    for (int64_t c = 0; c < s.key_dim; ++c)
      score += static_cast<double>(in.query[at(query + c)]) * static_cast<double>(in.key[at(key(j) + c)]);
    const bool hidden = (s.causal && j > s.first_query + i) || (in.mask && !(*in.mask)[at(b * s.keys + j)]);
    sum += weights[at(j)] = hidden ? 0 : std::exp(score * scale);
    if (s.dropout <= 0) continue;
    const auto row = static_cast<uint64_t>((s.first_query + i) * s.heads + h);
    const auto words = kRandom(
        kStep + (row << 32), (kFirstSample + static_cast<uint64_t>(b)) << 32 | static_cast<uint64_t>(j / 4));
    factors[at(j)] = uniform01(words.v[j % 4]) >= s.dropout ? 1 / (1 - static_cast<double>(s.dropout)) : 0;
  }
  if (sum == 0) return;
  double dot = 0;
  for (int64_t c = 0; c < s.value_dim; ++c) {
    for (int64_t j = 0; j < s.keys; ++j)
      out.dst[at(dst + c)] +=
          weights[at(j)] / sum * factors[at(j)] * static_cast<double>(in.value[at(value(j) + c)]);
    dot += out.dst[at(dst + c)] * static_cast<double>(in.diff_dst[at(dst + c)]);
  }
  for (int64_t j = 0; j < s.keys; ++j) {
    const double weight = weights[at(j)] / sum;
    double diff = 0;
    for (int64_t c = 0; c < s.value_dim; ++c) {
      const double d = static_cast<double>(in.diff_dst[at(dst + c)]);
      diff += d * static_cast<double>(in.value[at(value(j) + c)]);
      out.diff_value[at(value(j) + c)] += weight * factors[at(j)] * d;
    }
    const double of_score = weight * (diff * factors[at(j)] - dot) * scale;
    for (int64_t c = 0; c < s.key_dim; ++c) {
      out.diff_query[at(query + c)] += of_score * static_cast<double>(in.key[at(key(j) + c)]);
      out.diff_key[at(key(j) + c)] += of_score * static_cast<double>(in.query[at(query + c)]);
    }
  }
}

AttentionResults expected_attention(const AttentionSpec& s, const AttentionData& in) {
  AttentionResults out{Doubles(in.diff_dst.size()), Doubles(in.query.size()), Doubles(in.key.size()),
                       Doubles(in.value.size())};
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) add_query(s, in, b, h, i, out);
  return out;
}

struct AttentionRun {
  Floats dst, diff_query, diff_key, diff_value;
  bool operator==(const AttentionRun&) const = default;
};

AttentionRun run_attention(const AttentionSpec& spec, const AttentionData& in, const Device& device) {
  const auto operation = device.ops().attention(spec);
  const TypedArray query = device.typed(in.query), key = device.typed(in.key), value = device.typed(in.value),
                   diff_dst = device.typed(in.diff_dst), dst = device.typed(in.diff_dst.size()),
                   diff_query = device.typed(in.query.size()), diff_key = device.typed(in.key.size()),
                   diff_value = device.typed(in.value.size());
  const Array<uint8_t> mask = device.array(in.mask.value_or(std::vector<uint8_t>{}));
  const Array<uint64_t> step = device.array(std::vector<uint64_t>{kStep});
  const Array<float> logsumexp = device.floats(static_cast<size_t>(spec.batch * spec.heads * spec.queries)),
                     scratch = device.memory(operation->scratch_bytes());
  const AttentionDropout dropout{kRandom, step.data(), kFirstSample};
  const uint8_t* const key_mask = in.mask ? mask.data() : nullptr;
  operation->forward({.query = query.data(),
                      .key = key.data(),
                      .value = value.data(),
                      .key_mask = key_mask,
                      .dst = dst.data(),
                      .logsumexp = spec.training ? logsumexp.data() : nullptr,
                      .dropout = dropout,
                      .scratch = scratch.data()});
  AttentionRun run;
  run.dst = dst.read();
  if (!spec.training) return run;
  operation->backward({.query = query.data(),
                       .key = key.data(),
                       .value = value.data(),
                       .key_mask = key_mask,
                       .dst = dst.data(),
                       .logsumexp = logsumexp.data(),
                       .diff_dst = diff_dst.data(),
                       .diff_query = diff_query.data(),
                       .diff_key = diff_key.data(),
                       .diff_value = diff_value.data(),
                       .dropout = dropout,
                       .scratch = scratch.data()});
  run.diff_query = diff_query.read();
  run.diff_key = diff_key.read();
  run.diff_value = diff_value.read();
  return run;
}

void check_attention(const AttentionSpec& spec, bool masked, const Device& device) {
  CAPTURE(spec.queries);
  CAPTURE(spec.keys);
  CAPTURE(spec.causal);
  CAPTURE(spec.kv_heads);
  CAPTURE(spec.dropout);
  CAPTURE(masked);
  const AttentionData in(spec, device, masked);
  const AttentionResults expected = expected_attention(spec, in);
  const AttentionRun run = run_attention(spec, in, device);
  check_close(run.dst, expected.dst, device.tolerance(2e-5, 4));
  check_close(run.diff_query, expected.diff_query, device.tolerance(5e-5, 16));
  check_close(run.diff_key, expected.diff_key, device.tolerance(5e-5, 16));
  check_close(run.diff_value, expected.diff_value, device.tolerance(5e-5, 16));
  // The backward pass of cuDNN adds numbers in an undefined order, so two runs may differ in rounding.
  if (!device.is_gpu() || device.math.deterministic) CHECK(run_attention(spec, in, device) == run);
  AttentionSpec inference = spec;
  inference.training = false;
  CHECK(run_attention(inference, in, device).dst == run.dst);
}

AttentionSpec sized(int64_t queries, int64_t keys, int64_t key_dim, int64_t value_dim) {
  return {.batch = 2,
          .queries = queries,
          .keys = keys,
          .heads = 4,
          .kv_heads = 4,
          .key_dim = key_dim,
          .value_dim = value_dim};
}

/// Checks that attention gives the same results for separate arrays and for arrays that are columns of one
/// larger array.
void check_columns_of_one_array(AttentionSpec spec, const Device& device) {
  const AttentionData in(spec, device, false);
  const AttentionRun expected = run_attention(spec, in, device);
  const size_t query_columns = static_cast<size_t>(spec.query_step()),
               value_columns = static_cast<size_t>(spec.value_step()),
               columns = 2 * query_columns + value_columns,
               rows = static_cast<size_t>(spec.batch * spec.keys);
  Floats all(rows * columns);
  for (size_t r = 0; r < rows; ++r) {
    std::copy_n(in.query.begin() + static_cast<ptrdiff_t>(r * query_columns), query_columns,
                all.begin() + static_cast<ptrdiff_t>(r * columns));
    std::copy_n(in.key.begin() + static_cast<ptrdiff_t>(r * query_columns), query_columns,
                all.begin() + static_cast<ptrdiff_t>(r * columns + query_columns));
    std::copy_n(in.value.begin() + static_cast<ptrdiff_t>(r * value_columns), value_columns,
                all.begin() + static_cast<ptrdiff_t>(r * columns + 2 * query_columns));
  }
  spec.query_stride = spec.key_stride = spec.value_stride = static_cast<int64_t>(columns);
  spec.training = false;
  const auto operation = device.ops().attention(spec);
  const TypedArray joined = device.typed(all), dst = device.typed(in.diff_dst.size());
  const Array<float> scratch = device.memory(operation->scratch_bytes());
  operation->forward({.query = joined.data(),
                      .key = joined.from(query_columns),
                      .value = joined.from(2 * query_columns),
                      .dst = dst.data(),
                      .scratch = scratch.data()});
  CHECK(dst.read() == expected.dst);
}

}  // namespace

TEST_CASE("the gradients of the attention test's reference match finite differences") {
  on_every_cpu([](const Device& device) {
    if (device.context().threads() > 1) return;
    AttentionSpec spec = sized(3, 5, 2, 3);
    spec.kv_heads = 2;
    spec.causal = true;
    AttentionData in(spec, device, false);
    const AttentionResults expected = expected_attention(spec, in);
    const auto loss = [&] {
      const AttentionResults out = expected_attention(spec, in);
      double sum = 0;
      for (size_t i = 0; i < out.dst.size(); ++i) sum += out.dst[i] * static_cast<double>(in.diff_dst[i]);
      return sum;
    };
    const auto check = [&](Floats& array, const Doubles& gradient) {
      for (size_t i = 0; i < array.size(); ++i) {
        const float before = array[i];
        array[i] = before + 0x1p-7f;
        const double high = loss();
        array[i] = before - 0x1p-7f;
        const double low = loss();
        array[i] = before;
        CHECK((high - low) / 0x1p-6 == doctest::Approx(gradient[i]).epsilon(1e-3).scale(1));
      }
    };
    check(in.query, expected.diff_query);
    check(in.key, expected.diff_key);
    check(in.value, expected.diff_value);
  });
}

DEVICE_TEST_CASE("attention and its gradients match the reference") {
  for (const bool causal : {false, true})
    for (const int64_t kv_heads : {4, 2, 1})
      for (const bool masked : {false, true}) {
        AttentionSpec spec = sized(5, 7, 3, 2);
        spec.causal = causal;
        spec.kv_heads = kv_heads;
        check_attention(spec, masked, device);
        spec.dropout = 0.3f;
        check_attention(spec, masked, device);
      }
}

DEVICE_TEST_CASE("attention has the same results whether its sizes fill tiles or not") {
  check_attention(sized(1, 1, 1, 1), false, device);
  check_attention(sized(33, 130, 8, 17), true, device);
  check_attention(sized(64, 64, 40, 72), false, device);
  AttentionSpec causal = sized(70, 130, 33, 16);
  causal.causal = true;
  check_attention(causal, false, device);
  causal.first_query = 60;
  causal.dropout = 0.2f;
  check_attention(causal, true, device);
  AttentionSpec one = sized(3, 300, 4, 140);  // several threads share the keys of the only head
  one.batch = one.heads = one.kv_heads = 1;
  check_attention(one, false, device);
  AttentionSpec dropped = sized(35, 45, 66, 140);  // several tiles of queries, keys and columns
  dropped.batch = dropped.kv_heads = 1;
  dropped.heads = 2;
  dropped.dropout = 0.4f;
  check_attention(dropped, false, device);
}

// On a GPU, cuDNN computes these cases in 16-bit types. It computes the backward pass only if results may
// differ between runs.
DEVICE_TEST_CASE("attention with aligned heads matches the reference") {
  for (const bool causal : {false, true})
    for (const int64_t kv_heads : {4, 2, 1})
      for (const bool masked : {false, true}) {
        AttentionSpec spec = sized(9, 7, 8, 16);
        spec.causal = causal;
        spec.kv_heads = kv_heads;
        spec.masked = masked;
        check_attention(spec, masked, device);
      }
  check_attention(sized(1, 40, 16, 8), true, device);
  check_attention(sized(1, 1, 8, 8), false, device);
  check_attention(sized(70, 130, 72, 40), true, device);
  // The emulated cuDNN, and cuDNN on GPUs with a compute capability below 9.0, have an engine only for the
  // forward pass.
  check_attention(sized(5, 6, 136, 8), false, device);
  AttentionSpec later = sized(8, 40, 16, 16);
  later.causal = true;
  later.first_query = 30;
  check_attention(later, false, device);
}

DEVICE_TEST_CASE("queries before the first valid key of causal attention give zeros") {
  AttentionSpec spec = sized(6, 6, 16, 8);
  spec.causal = true;
  AttentionData in(spec, device, true);
  in.mask = std::vector<uint8_t>{0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0};
  const AttentionResults expected = expected_attention(spec, in);
  const AttentionRun run = run_attention(spec, in, device);
  const size_t blind = static_cast<size_t>(2 * spec.heads * spec.value_dim);
  CHECK(Floats(run.dst.begin(), run.dst.begin() + static_cast<ptrdiff_t>(blind)) == Floats(blind, 0.0f));
  check_close(run.dst, expected.dst, device.tolerance(2e-5, 4));
  check_close(run.diff_query, expected.diff_query, device.tolerance(5e-5, 16));
  check_close(run.diff_key, expected.diff_key, device.tolerance(5e-5, 16));
  check_close(run.diff_value, expected.diff_value, device.tolerance(5e-5, 16));
}

DEVICE_TEST_CASE("queries, keys and values of attention may be columns of one array") {
  for (const int64_t dim : {3, 8}) check_columns_of_one_array(sized(6, 6, dim, 2 * dim), device);
}

TEST_CASE("on a CPU, a query has the same bits alone and within a sequence") {
  on_every_cpu([](const Device& device) {
    AttentionSpec spec = sized(150, 150, 8, 6);
    spec.batch = 1;
    spec.causal = true;
    spec.training = false;
    const AttentionData in(spec, device, false);
    const Floats all = run_attention(spec, in, device).dst;
    const auto rows = [](const Floats& from, int64_t first, int64_t count, int64_t columns) {
      return Floats(from.begin() + first * columns, from.begin() + (first + count) * columns);
    };
    for (const int64_t position : {0, 1, 31, 32, 127, 128, 149}) {
      AttentionSpec step = spec;
      step.queries = 1;
      step.keys = position + 1;
      step.first_query = position;
      AttentionData one = in;
      one.query = rows(in.query, position, 1, spec.query_step());
      one.key = rows(in.key, 0, position + 1, spec.key_step());
      one.value = rows(in.value, 0, position + 1, spec.value_step());
      one.diff_dst.resize(static_cast<size_t>(spec.heads * spec.value_dim));
      CHECK(run_attention(step, one, device).dst == rows(all, position, 1, spec.heads * spec.value_dim));
    }
  });
}

DEVICE_TEST_CASE("a rotation by positions turns the halves of heads and back") {
  const RotarySpec spec{
      .samples = 2, .positions = 3, .heads = 2, .dim = 4, .step = 9, .first = 5, .base = 100};
  const Floats values = device.random(2 * 3 * 9, 1);
  const TypedArray data = device.typed(values);
  const Array<float> table = device.floats(static_cast<size_t>(spec.table_floats()));
  device.ops().rotate_positions(spec, data.data(), false, table.data());
  Doubles expected = doubles_of(values);
  for (size_t row = 0; row < 6; ++row)
    for (size_t head = 0; head < 2; ++head)
      for (size_t i = 0; i < 2; ++i) {
        const double angle = static_cast<double>(5 + row % 3) * std::pow(100.0, -static_cast<double>(i) / 2);
        double &x = expected[row * 9 + head * 4 + i], &y = expected[row * 9 + head * 4 + i + 2];
        const double rotated = x * std::cos(angle) - y * std::sin(angle);
        y = y * std::cos(angle) + x * std::sin(angle);
        x = rotated;
      }
  check_close(data.read(), expected, device.tolerance(1e-6, 2));
  device.ops().rotate_positions(spec, data.data(), true, table.data());
  check_close(data.read(), doubles_of(values), device.tolerance(1e-6, 4));
}

DEVICE_TEST_CASE("operations on one position of each sample equal those on whole sequences") {
  const Array<int32_t> at = device.array(std::vector<int32_t>{2, 0, 3});
  // The rotation and the encoding of a single position must equal those of the same position in a whole
  // sequence.
  const RotarySpec whole{.samples = 1, .positions = 4, .heads = 2, .dim = 4, .step = 8, .base = 100};
  RotarySpec some = whole;
  some.positions = 3;
  some.at = at.data();
  const Floats values = device.random(4 * 8, 1);
  const auto row_of = [](const Floats& from, size_t row) {
    return Floats(from.begin() + static_cast<int64_t>(row) * 8,
                  from.begin() + static_cast<int64_t>(row + 1) * 8);
  };
  Floats chosen;
  for (const size_t row : {2, 0, 3})
    for (const float value : row_of(values, row)) chosen.push_back(value);
  const TypedArray all = device.typed(values), rows = device.typed(chosen);
  const Array<float> table = device.floats(static_cast<size_t>(whole.table_floats()));
  device.ops().rotate_positions(whole, all.data(), false, table.data());
  device.ops().rotate_positions(some, rows.data(), false, table.data());
  const TypedArray waves = device.typed(size_t{4 * 8}), few_waves = device.typed(size_t{3 * 8});
  device.ops().sinusoidal_positions(waves.data(), nullptr, 4, 8, 100);
  device.ops().sinusoidal_positions(few_waves.data(), at.data(), 3, 8, 100);
  // put_rows() copies each row to its position. All other rows must stay unchanged.
  const TypedArray kept = device.typed(Floats(3 * 4 * 5, 0.0f));
  device.ops().put_rows(kept.data(), rows.data(), 8, at.data(), 3, 4, 5);
  const Array<uint8_t> mask = device.array(std::vector<uint8_t>(3 * 4, 7));
  device.ops().mask_later_positions(at.data(), mask.data(), 3, 4);
  const Floats rotated = rows.read(), put = kept.read();
  const std::vector<uint8_t> visible = mask.read();
  for (size_t s = 0; s < 3; ++s) {
    const auto position = static_cast<size_t>(at.read()[s]);
    CHECK(row_of(rotated, s) == row_of(all.read(), position));
    CHECK(row_of(few_waves.read(), s) == row_of(waves.read(), position));
    for (size_t row = 0; row < 4; ++row) {
      CHECK(visible[s * 4 + row] == (row <= position ? 1 : 0));
      for (size_t c = 0; c < 5; ++c)
        CHECK(put[(s * 4 + row) * 5 + c] == (row == position ? rotated[s * 8 + c] : 0.0f));
    }
  }
}

DEVICE_TEST_CASE("sinusoidal positions are sines and cosines in turn") {
  const TypedArray dst = device.typed(size_t{4 * 5});
  device.ops().sinusoidal_positions(dst.data(), nullptr, 4, 5, 100);
  Doubles expected;
  for (int position = 0; position < 4; ++position)
    for (int c = 0; c < 5; ++c) {
      const double angle = position * std::pow(100.0, -(c / 2 * 2) / 5.0);
      expected.push_back(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  check_close(dst.read(), expected, device.tolerance(1e-6, 1));
}

}  // namespace dtrain
