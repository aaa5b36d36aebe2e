#include "bench.h"

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "device/cuda/check.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kPattern = 1 << 20;
constexpr int kWindows = 7;
constexpr float kWindow = 20;  // milliseconds
constexpr int kMostRuns = 2000;

cuda::EventHandle make_timer() {
  cudaEvent_t event = nullptr;
  cuda::check(cudaEventCreate(&event), "creating an event");
  return cuda::EventHandle(event);
}

std::vector<float> pattern(float scale) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(kPattern);
  for (float& value : values) value = uniform(random);
  return values;
}

}  // namespace

Bench::Bench(const GpuMath& math)
    : math_(math), context_({DeviceId::Kind::gpu, 0}, false), begin_(make_timer()), end_(make_timer()) {
  context_.attach();
  ops_ = make_cuda_ops(context_, math_);
}

Buffer Bench::upload(int64_t n, size_t element, const void* values) {
  Buffer buffer = context_.allocate(static_cast<size_t>(n) * element);
  for (int64_t i = 0; i < n; i += kPattern)
    context_.copy_to_device(static_cast<std::byte*>(buffer.data()) + static_cast<size_t>(i) * element, values,
                            static_cast<size_t>(std::min(kPattern, n - i)) * element);
  return buffer;
}

Buffer Bench::floats(int64_t n, float scale) {
  return upload(n, sizeof(float), pattern(scale).data());
}

Buffer Bench::numbers(int64_t n, float scale) {
  if (math_.type == DType::float32) return floats(n, scale);
  // A bfloat16 number consists of the upper 16 bits of the float32 number.
  std::vector<uint16_t> halves;
  for (const float value : pattern(scale))
    halves.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
  return upload(n, sizeof(uint16_t), halves.data());
}

float Bench::milliseconds(const std::function<void()>& work, int runs) {
  cuda::check(cudaEventRecord(begin_.get(), context_.compute()), "timing");
  for (int i = 0; i < runs; ++i) work();
  cuda::check(cudaEventRecord(end_.get(), context_.compute()), "timing");
  cuda::check(cudaEventSynchronize(end_.get()), "timing");
  float took = 0;
  cuda::check(cudaEventElapsedTime(&took, begin_.get(), end_.get()), "timing");
  return took / static_cast<float>(runs);
}

double Bench::seconds(const std::function<void()>& work) {
  milliseconds(work, 3);
  const float once = std::max(milliseconds(work, 3), 1e-4f);
  const int runs = std::clamp(static_cast<int>(kWindow / once), 1, kMostRuns);
  std::vector<float> windows;
  for (int i = 0; i < kWindows; ++i) windows.push_back(milliseconds(work, runs));
  std::nth_element(windows.begin(), windows.begin() + kWindows / 2, windows.end());
  return static_cast<double>(windows[kWindows / 2]) * 1e-3;
}

std::string name_of(const GpuMath& math) {
  if (math.type == DType::bfloat16) return "bf16";
  return math.tf32 ? "tf32" : "float32";
}

Json row(const std::string& name, double seconds, double bytes, double operations) {
  Json made = Json::object().set("name", name).set("seconds", seconds);
  if (bytes > 0) made.set("bytes", bytes).set("gigabytes_per_second", bytes / seconds * 1e-9);
  if (operations > 0) made.set("operations", operations).set("teraflops", operations / seconds * 1e-12);
  return made;
}

}  // namespace dtrain::bench
