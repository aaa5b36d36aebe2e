#include "device/device.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace dtrain {

std::string DeviceId::str() const {
  return fmt::format("{}:{}", kind == Kind::cpu ? "cpu" : "gpu", index);
}

std::optional<DeviceId> DeviceId::parse(std::string_view text) {
  DeviceId id;
  if (text.starts_with("gpu:")) {
    id.kind = Kind::gpu;
  } else if (!text.starts_with("cpu:")) {
    return std::nullopt;
  }
  const std::string_view digits = text.substr(4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id.index);
  // Accepts only the format that str() returns: no sign and no leading zeros.
  if (error != std::errc() || id.index < 0 || id.str() != text) return std::nullopt;
  return id;
}

void MemoryCounter::add(size_t bytes) {
  const size_t now = now_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  size_t most = most_.load(std::memory_order_relaxed);
  while (most < now && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

size_t usable_gpu_bytes(size_t free) {
  constexpr size_t kKernels = size_t{192} << 20;
  return free - free / 32 - std::min(free / 16, kKernels);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      release_(std::exchange(other.release_, nullptr)),
      counter_(std::move(other.counter_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(bytes_, taken.bytes_);
  std::swap(release_, taken.release_);
  std::swap(counter_, taken.counter_);
  return *this;
}

Buffer::~Buffer() {
  if (data_) release_(data_, bytes_);
  if (counter_) counter_->remove(bytes_);
}

void Buffer::count_in(std::shared_ptr<MemoryCounter> counter) {
  counter->add(bytes_);
  counter_ = std::move(counter);
}

Buffer Context::allocate(size_t bytes) {
  Buffer buffer = take(bytes);
  buffer.count_in(counter_);
  return buffer;
}

}  // namespace dtrain
