// Tests the search for attention plans: cuDNN searches plans for GPUs that are given by their properties.
// When a plan is created, cuDNN compiles the kernels of the plan and loads them with the driver. The tests
// therefore need the driver's library, but no GPU. In the test `ops_attention_plans`, support/fake_driver.cpp
// replaces this library.
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "ops/cuda/attention/dnn_attention.h"
#include "ops/cuda/described_gpus.h"

namespace dtrain::test {
namespace {

using cuda::DnnAttention;
using cuda::DnnDevice;

AttentionSpec spec_of(int64_t positions, int64_t dim) {
  return {.batch = 8,
          .queries = positions,
          .keys = positions,
          .heads = 8,
          .kv_heads = 8,
          .key_dim = dim,
          .value_dim = dim,
          .masked = false};
}

/// Returns the attention of a language model. Queries, keys and values are columns of one array.
AttentionSpec language_model() {
  AttentionSpec spec = spec_of(1024, 64);
  spec.causal = true;
  spec.query_stride = spec.key_stride = spec.value_stride = 3 * 8 * 64;
  return spec;
}

/// Returns an attention with padding in which several heads share keys and values. Its sizes are not
/// multiples of the tile sizes.
AttentionSpec padded() {
  AttentionSpec spec = spec_of(100, 32);
  spec.kv_heads = 2;
  spec.causal = spec.masked = true;
  return spec;
}

AttentionSpec crossed() {
  AttentionSpec spec = spec_of(77, 72);
  spec.keys = 33;
  spec.value_dim = 40;
  spec.masked = true;
  return spec;
}

/// Returns the attention of a step of text generation.
AttentionSpec one_query() {
  AttentionSpec spec = spec_of(300, 64);
  spec.queries = 1;
  spec.training = false;
  spec.masked = true;
  return spec;
}

bool has_plan(const DnnDevice& device, const GpuMath& math, const AttentionSpec& spec,
              DnnAttention::Direction direction) {
  const auto plan = DnnAttention::find(device, math, spec, direction);
  return plan && plan->workspace_bytes() <= DnnAttention::most_workspace(spec);
}

/// Returns true if the tests cannot run, because cuDNN or the replacement of the driver's library is missing.
/// Prints the reason.
bool is_skipped() {
  std::string why = why_not();
  if (why.empty() && !std::getenv("DTRAIN_FAKE_DRIVER"))
    why = "the test ops_attention_plans runs it with a replacement of the driver's library";
  if (!why.empty()) MESSAGE("skipped: " << why);
  return !why.empty();
}

}  // namespace

TEST_CASE("cuDNN has plans for attention in 16-bit types") {
  if (is_skipped()) return;
  using enum DnnAttention::Direction;
  for (const Gpu& gpu : kGpus) {
    CAPTURE(gpu.name);
    const DnnDevice device = DnnDevice::described(gpu.properties, gpu.capability);
    const GpuMath bfloat16{.type = DType::bfloat16}, float16{.type = DType::float16};
    for (const AttentionSpec& spec : {language_model(), padded(), crossed()}) {
      CAPTURE(spec.queries);
      CHECK(has_plan(device, bfloat16, spec, forward));
      CHECK(has_plan(device, bfloat16, spec, backward));
    }
    CHECK(has_plan(device, float16, padded(), forward));
    CHECK(has_plan(device, float16, padded(), backward));
    CHECK(has_plan(device, bfloat16, one_query(), forward));
    AttentionSpec wide = spec_of(128, 256);
    wide.heads = wide.kv_heads = 1;
    CHECK(has_plan(device, bfloat16, wide, forward));
    CHECK_FALSE(has_plan(device, bfloat16, wide, backward));
  }
}

TEST_CASE("passes that are affected by known bugs of cuDNN are rejected") {
  using enum DnnAttention::Direction;
  const auto reliable = [](AttentionSpec spec, DnnAttention::Direction direction, int capability,
                           size_t version) {
    return DnnAttention::is_reliable(spec, direction, capability, version);
  };
  for (const int capability : {80, 90, 100, 110, 120}) {
    CAPTURE(capability);
    for (const auto direction : {forward, backward}) {
      CHECK(reliable(language_model(), direction, capability, 91900));
      CHECK_FALSE(reliable(language_model(), direction, capability, 91500));
      AttentionSpec many = spec_of(16, 32), one_key = spec_of(16, 32);
      many.batch = 65535;
      CHECK(reliable(many, direction, capability, 91900));
      many.batch = 65536;
      CHECK_FALSE(reliable(many, direction, capability, 91900));
      one_key.keys = 1;
      CHECK_FALSE(reliable(one_key, direction, capability, 92600));
    }
    const bool affected = capability == 100 || capability == 110;
    for (const size_t version : {91900, 92400, 92500})
      CHECK(reliable(one_query(), forward, capability, version) == !affected);
    for (const size_t version : {91800, 92401, 92501})
      CHECK(reliable(one_query(), forward, capability, version));
    CHECK_FALSE(reliable(one_query(), backward, capability, 92600));
    for (const int64_t keys : {64, 192, 1088}) {
      AttentionSpec spec = spec_of(keys, 64);
      CHECK(reliable(spec, backward, capability, 92501) == (capability != 90));
      CHECK(reliable(spec, backward, capability, 92600));
      CHECK(reliable(spec, forward, capability, 92501));
      spec.causal = true;
      CHECK(reliable(spec, backward, capability, 92501));
    }
    CHECK(reliable(spec_of(128, 64), backward, capability, 91900));
    CHECK(reliable(spec_of(128, 136), backward, capability, 91900) == (capability != 90));
    CHECK(reliable(spec_of(128, 136), backward, capability, 92201));
  }
  AttentionSpec grouped = one_query();
  grouped.causal = true;
  CHECK(reliable(grouped, forward, 90, 91900));
  grouped.kv_heads = 2;
  CHECK_FALSE(reliable(grouped, forward, 90, 91900));
}

TEST_CASE("attention that cuDNN cannot compute as specified has no plan") {
  if (is_skipped()) return;
  using enum DnnAttention::Direction;
  const DnnDevice device = DnnDevice::described(kGpus[0].properties, kGpus[0].capability);
  const GpuMath bfloat16{.type = DType::bfloat16};
  const auto rejected = [&](const GpuMath& math, const AttentionSpec& spec,
                            DnnAttention::Direction direction) {
    return !DnnAttention::find(device, math, spec, direction);
  };
  CHECK(rejected({.type = DType::float32, .tf32 = true}, language_model(), forward));
  CHECK(rejected({.type = DType::bfloat16, .deterministic = true}, language_model(), backward));
  AttentionSpec dropped = language_model(), later = language_model(), odd = spec_of(64, 12);
  dropped.dropout = 0.1f;
  later.first_query = 1;
  for (const AttentionSpec& spec : {dropped, later, odd}) CHECK(rejected(bfloat16, spec, forward));
}

}  // namespace dtrain::test
